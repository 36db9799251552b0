import type {
  DisruptionAction,
  EffectiveDisruptionAction,
  NodeDisruptionPolicy,
} from '../api/node-disruption-policy.js';

export interface FilePolicy {
  /** A file, or a directory with everything below it. */
  readonly path: string;
  readonly actions: readonly EffectiveDisruptionAction[];
}

interface UnitPolicy {
  readonly name: string;
  readonly actions: readonly EffectiveDisruptionAction[];
}

/** The policies in force: the defaults with those of MachineConfiguration `cluster` over them. */
export interface EffectivePolicies {
  readonly files: readonly FilePolicy[];
  readonly units: readonly UnitPolicy[];
  readonly sshkey: { readonly actions: readonly EffectiveDisruptionAction[] };
}

export const REGISTRIES_CONF = '/etc/containers/registries.conf';
const IMAGE_CREDENTIALS_DROPIN = '/etc/systemd/system/kubelet.service.d/40-kubelet-crio-image-credential-provider.conf';

const NONE: DisruptionAction = { type: 'None' };
const DAEMON_RELOAD: DisruptionAction = { type: 'DaemonReload' };
const reload = (serviceName: string): DisruptionAction => ({ type: 'Reload', reload: { serviceName } });
const restart = (serviceName: string): DisruptionAction => ({ type: 'Restart', restart: { serviceName } });

/** The built-in policies of the API; what they do not name costs a reboot. */
export const DEFAULT_POLICIES: EffectivePolicies = {
  files: [
    { path: '/var/lib/kubelet/config.json', actions: [NONE] },
    { path: '/etc/machine-config-daemon/no-reboot/containers-gpg.pub', actions: [reload('crio.service')] },
    { path: '/etc/containers/policy.json', actions: [reload('crio.service')] },
    { path: REGISTRIES_CONF, actions: [{ type: 'Special' }] },
    { path: '/etc/containers/registries.d', actions: [reload('crio.service')] },
    { path: '/etc/crio/policies', actions: [reload('crio.service')] },
    { path: '/etc/nmstate/openshift', actions: [NONE] },
    {
      path: '/etc/pki/ca-trust/source/anchors/openshift-config-user-ca-bundle.crt',
      actions: [restart('coreos-update-ca-trust.service'), restart('crio.service')],
    },
    { path: '/etc/kubernetes/credential-providers', actions: [restart('kubelet.service')] },
    { path: IMAGE_CREDENTIALS_DROPIN, actions: [DAEMON_RELOAD, restart('kubelet.service')] },
    { path: '/etc/iri-registry', actions: [restart('iri-registry.service')] },
    { path: '/usr/local/bin/load-registry-image.sh', actions: [restart('iri-registry.service')] },
    {
      path: '/etc/pki/ca-trust/source/anchors/iri-root-ca.crt',
      actions: [restart('coreos-update-ca-trust.service')],
    },
  ],
  units: [{ name: 'iri-registry.service', actions: [DAEMON_RELOAD, restart('iri-registry.service')] }],
  sshkey: { actions: [NONE] },
};

/** `/etc/foo/` as `/etc/foo`; the root stays `/`. */
function withoutTrailingSlash(path: string): string {
  return path.replace(/(?<=.)\/+$/u, '');
}

/** Entries of `own` replace those of the same key where these stand, the others follow in order. */
function override<T>(defaults: readonly T[], own: readonly T[], key: (entry: T) => string): T[] {
  const byKey = new Map(defaults.map((entry) => [key(entry), entry]));
  for (const entry of own) byKey.set(key(entry), entry);
  return [...byKey.values()];
}

/**
 * The policies of MachineConfiguration `cluster` over the built-in ones. An entry for the same path or unit replaces
 * the built-in one as a whole; the policy of SSH keys is replaced only by one with at least one action.
 */
export function mergePolicies(own: NodeDisruptionPolicy | undefined): EffectivePolicies {
  const files = (own?.files ?? []).map((file) => ({ ...file, path: withoutTrailingSlash(file.path) }));
  const sshkey = own?.sshkey?.actions ?? [];
  return {
    files: override<FilePolicy>(DEFAULT_POLICIES.files, files, (file) => file.path),
    units: override<UnitPolicy>(DEFAULT_POLICIES.units, own?.units ?? [], (unit) => unit.name),
    sshkey: sshkey.length > 0 ? { actions: sshkey } : DEFAULT_POLICIES.sshkey,
  };
}

/**
 * What is wrong with the paths of a MachineConfiguration's policies: such a policy would match nothing, and the change
 * it was written for would reboot the node. One line each.
 */
export function checkPolicyPaths(own: NodeDisruptionPolicy | undefined): string[] {
  return (own?.files ?? []).flatMap(({ path }, index) => {
    const field = `spec.nodeDisruptionPolicy.files[${index}].path ${JSON.stringify(path).slice(0, 200)}`;
    if (!path.startsWith('/')) return [`${field} is not absolute: write it from / on`];
    if (/[*?[\]{}]/u.test(path)) {
      return [`${field} has a wildcard, which paths of policies do not know: name the file, or the directory above it`];
    }
    const steps = withoutTrailingSlash(path).split('/').slice(1);
    const unclean = path !== '/' && steps.some((step) => step === '' || step === '.' || step === '..');
    return unclean ? [`${field} has an empty step, . or .. in it: write the path without`] : [];
  });
}

/** The policy for a changed file: that of its path, or of the nearest directory above it that has one. */
export function policyForFile(path: string, policies: EffectivePolicies): FilePolicy | undefined {
  for (let at = withoutTrailingSlash(path); at !== ''; at = parentOf(at)) {
    const found = policies.files.find((policy) => withoutTrailingSlash(policy.path) === at);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** `/etc/foo` for `/etc/foo/x`, `/` for `/etc`, and nothing above the root. */
function parentOf(path: string): string {
  if (path === '/') return '';
  const cut = path.lastIndexOf('/');
  return cut > 0 ? path.slice(0, cut) : cut === 0 ? '/' : '';
}
