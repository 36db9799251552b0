import { lstat, readFile, readlink } from 'node:fs/promises';
import { join } from 'node:path';

/** What a path of a node shall be after the demo, worked out by hand from the files in machine-configs/. */
type Expected =
  | { readonly path: string; readonly contents: string; readonly mode: number }
  | { readonly path: string; readonly link: string }
  | { readonly path: string; readonly includes: string };

/** The key of the configs, of nobody. */
export const SSH_KEY =
  'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIDemoKeyOfNobodyForTheDrydockDemo0123456789 operator@site.example';

const EXPECTED: Readonly<Record<string, readonly Expected[]>> = {
  worker: [
    {
      path: 'etc/chrony.conf',
      contents: 'server ntp1.site.example iburst\nserver ntp2.site.example iburst\ndriftfile /var/lib/chrony/drift\n',
      mode: 0o644,
    },
    { path: 'etc/motd', contents: 'This node is kept by Drydock.\n', mode: 0o644 },
    {
      path: 'etc/sysctl.d/90-site.conf',
      contents:
        '# Written once, read by every service of the site.\nnet.ipv4.neigh.default.gc_thresh1=4096\n' +
        'net.ipv4.neigh.default.gc_thresh2=8192\nnet.ipv4.neigh.default.gc_thresh3=12288\nvm.max_map_count=262144\n',
      mode: 0o644,
    },
    {
      path: 'etc/systemd/system/kubelet.service.d/20-site.conf',
      contents: '[Service]\nEnvironment=SITE_ZONE=lab\n',
      mode: 0o644,
    },
    { path: 'etc/systemd/system/site-report.service', includes: 'ExecStart=/usr/bin/true' },
    {
      path: 'etc/systemd/system/multi-user.target.wants/site-report.service',
      link: '/etc/systemd/system/site-report.service',
    },
    { path: 'etc/systemd/system/rpcbind.service', link: '/dev/null' },
    { path: 'home/core/.ssh/authorized_keys.d/ignition', includes: SSH_KEY },
    { path: 'proc/cmdline', includes: 'transparent_hugepage=never console=ttyS0,115200' },
  ],
  master: [
    {
      path: 'etc/kubernetes/audit/policy.yaml',
      contents: 'apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n- level: Metadata\n',
      mode: 0o600,
    },
    { path: 'etc/motd', contents: 'A machine of the lab.\n', mode: 0o644 },
    { path: 'home/core/.ssh/authorized_keys.d/ignition', includes: SSH_KEY },
  ],
};

/** These are elsewhere on a real machine: sshd and the kernel say where. */
const ONLY_SIMULATED = ['home/core/.ssh/authorized_keys.d/ignition', 'proc/cmdline'];

/** As `diskDifferences`, for a real machine of the pool `worker`; what sshd and the kernel say is not compared. */
export async function realDiskDifferences(root: string): Promise<string[]> {
  const onDisk = (EXPECTED['worker'] ?? []).filter(({ path }) => !ONLY_SIMULATED.includes(path));
  return differences(root, onDisk);
}

/** Compares a node's disk, byte for byte and without Drydock's own code, with what it shall be; one line a difference. */
export async function diskDifferences(root: string, pool: string): Promise<string[]> {
  return differences(root, EXPECTED[pool] ?? []);
}

async function differences(root: string, list: readonly Expected[]): Promise<string[]> {
  const found = await Promise.all(list.map((expected) => difference(root, expected)));
  return found.flatMap((line) => (line === undefined ? [] : [line]));
}

async function difference(root: string, expected: Expected): Promise<string | undefined> {
  const path = join(root, expected.path);
  try {
    if ('link' in expected) {
      const target = await readlink(path);
      return target === expected.link ? undefined : `/${expected.path} leads to ${target}, not ${expected.link}`;
    }
    const contents = await readFile(path, 'utf8');
    if ('includes' in expected)
      return contents.includes(expected.includes) ? undefined : `/${expected.path} lacks a line`;
    if (contents !== expected.contents) return `/${expected.path} has other contents`;
    const mode = (await lstat(path)).mode & 0o7777;
    return mode === expected.mode ? undefined : `/${expected.path} has mode ${mode.toString(8)}`;
  } catch (error) {
    return `/${expected.path}: ${error instanceof Error ? error.message : String(error)}`;
  }
}
