import type { IgnitionConfig } from '../ignition/config.js';
import type { Findings } from '../ignition/findings.js';
import { managedPaths } from '../ignition/validate-paths.js';

/** Paths, with everything below, that a MachineConfig may not write, and why. */
const PROTECTED_PATHS: Readonly<Record<string, string>> = {
  '/var/lib/drydock': "holds Drydock's own journal and backups",
  '/etc/drydock': "holds the node worker's own configuration",
  '/var/lib/kubelet/pki': "holds the kubelet's keys, with which the node worker signs in",
  '/var/lib/kubelet/kubeconfig': "is the kubelet's kubeconfig, with which the node worker signs in",
  '/run/machine-config-daemon-force': 'would force updates past the checks of another system',
};
const OWN_UNIT = /^drydock[-@.]/;

/** Which path it is, or lies below, that nothing of the cluster may write, and why; undefined: it is free. */
export function whyProtected(path: string): string | undefined {
  const found = Object.entries(PROTECTED_PATHS).find(([own]) => path === own || path.startsWith(`${own}/`));
  return found && `${found[0]} ${found[1]}`;
}

/** Refuses what would let a config change or cut off the worker that applies it. */
export function refuseProtected(config: IgnitionConfig, findings: Findings): void {
  for (const { path, at } of managedPaths(config)) {
    const why = whyProtected(path);
    if (why !== undefined) findings.refuse(at, `${why}; no MachineConfig may write there`);
  }
  config.systemd?.units?.forEach(({ name }, index) => {
    if (OWN_UNIT.test(name)) {
      findings.refuse(
        ['config', 'systemd', 'units', index, 'name'],
        "is a unit of Drydock's own; no MachineConfig may change it",
      );
    }
  });
}

/** Users: nodes set keys and password of one user, the flavour's, and nothing else. */
export function checkUsers(config: IgnitionConfig, sshUser: string, findings: Findings): void {
  const applied = ['name', 'sshAuthorizedKeys', 'passwordHash'];
  config.passwd?.users?.forEach((user, index) => {
    const at = ['config', 'passwd', 'users', index];
    if (user.name !== sshUser) {
      findings.refuse(
        [...at, 'name'],
        `is not ${sshUser}, the only user that nodes set keys and password of; write name: ${sshUser}`,
      );
      return;
    }
    for (const key of Object.keys(user)) {
      if (!applied.includes(key))
        findings.warn([...at, key], 'only has an effect at first boot; nodes that run ignore it');
    }
  });
}

/** Sections that only Ignition acts on, at first boot. */
export function warnOfFirstBootOnly(config: IgnitionConfig, findings: Findings): void {
  const { disks, raid, luks, filesystems } = config.storage ?? {};
  const only = 'only has an effect at first boot; nodes that run ignore it';
  for (const [key, section] of Object.entries({ disks, raid, luks, filesystems })) {
    if (section !== undefined) findings.warn(['config', 'storage', key], only);
  }
  if (config.passwd?.groups !== undefined) findings.warn(['config', 'passwd', 'groups'], only);
  if (config.kernelArguments !== undefined) {
    findings.warn(['config', 'kernelArguments'], `${only}; write spec.kernelArguments for those`);
  }
}
