import type { ApiFlavour } from '../api/flavour.js';
import { machineConfigurationSpecSchema, type MachineConfigurationSpec } from '../api/machine-configuration.js';
import type {
  DefaultDisruption,
  DisruptionAction,
  EffectiveDisruptionAction,
  NodeDisruptionPolicy,
} from '../api/node-disruption-policy.js';
import { formatPath, oneLine } from '../ignition/findings.js';

/** Who says what a change costs: what is built in, or MachineConfiguration `cluster`. */
export const POLICY_ORIGINS = ['default', 'user'] as const;
export type PolicyOrigin = (typeof POLICY_ORIGINS)[number];

export interface Policy {
  readonly actions: readonly EffectiveDisruptionAction[];
  readonly origin: PolicyOrigin;
}

export interface FilePolicy extends Policy {
  /** A file, or a directory with everything below it. */
  readonly path: string;
}

interface UnitPolicy extends Policy {
  readonly name: string;
}

/** The policies in force: the defaults with those of MachineConfiguration `cluster` over them. */
export interface EffectivePolicies {
  readonly files: readonly FilePolicy[];
  readonly units: readonly UnitPolicy[];
  readonly sshkey: Policy;
  /** For files and units that none of the others names. */
  readonly otherwise: { readonly files: Policy; readonly units: Policy };
}

export const REGISTRIES_CONF = '/etc/containers/registries.conf';
const IMAGE_CREDENTIALS_DROPIN = '/etc/systemd/system/kubelet.service.d/40-kubelet-crio-image-credential-provider.conf';

const NONE: DisruptionAction = { type: 'None' };
const REBOOT: DisruptionAction = { type: 'Reboot' };
const DAEMON_RELOAD: DisruptionAction = { type: 'DaemonReload' };
const reload = (serviceName: string): DisruptionAction => ({ type: 'Reload', reload: { serviceName } });
const restart = (serviceName: string): DisruptionAction => ({ type: 'Restart', restart: { serviceName } });

const byDefault = (...actions: EffectiveDisruptionAction[]): Policy => ({ actions, origin: 'default' });
const file = (path: string, ...actions: EffectiveDisruptionAction[]): FilePolicy => ({
  path,
  ...byDefault(...actions),
});

/** The built-in policies of `machineconfiguration.openshift.io`; what they do not name costs a reboot. */
export const DEFAULT_POLICIES: EffectivePolicies = {
  files: [
    file('/var/lib/kubelet/config.json', NONE),
    file('/etc/machine-config-daemon/no-reboot/containers-gpg.pub', reload('crio.service')),
    file('/etc/containers/policy.json', reload('crio.service')),
    file(REGISTRIES_CONF, { type: 'Special' }),
    file('/etc/containers/registries.d', reload('crio.service')),
    file('/etc/crio/policies', reload('crio.service')),
    file('/etc/nmstate/openshift', NONE),
    file(
      '/etc/pki/ca-trust/source/anchors/openshift-config-user-ca-bundle.crt',
      restart('coreos-update-ca-trust.service'),
      restart('crio.service'),
    ),
    file('/etc/kubernetes/credential-providers', restart('kubelet.service')),
    file(IMAGE_CREDENTIALS_DROPIN, DAEMON_RELOAD, restart('kubelet.service')),
    file('/etc/iri-registry', restart('iri-registry.service')),
    file('/usr/local/bin/load-registry-image.sh', restart('iri-registry.service')),
    file('/etc/pki/ca-trust/source/anchors/iri-root-ca.crt', restart('coreos-update-ca-trust.service')),
  ],
  units: [{ name: 'iri-registry.service', ...byDefault(DAEMON_RELOAD, restart('iri-registry.service')) }],
  sshkey: byDefault(NONE),
  otherwise: { files: byDefault(REBOOT), units: byDefault(REBOOT) },
};

/** Those of `machineconfiguration.alauda.io`: files cost nothing, units a reboot. */
const ALAUDA_POLICIES: EffectivePolicies = {
  files: [],
  units: [],
  sshkey: byDefault(NONE),
  otherwise: { files: byDefault(NONE), units: byDefault(REBOOT) },
};

/** The built-in policies that come with a group. */
export function defaultPolicies(flavour: Pick<ApiFlavour, 'name'>): EffectivePolicies {
  return flavour.name === 'alauda' ? ALAUDA_POLICIES : DEFAULT_POLICIES;
}

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

/** A policy counts only with at least one action. */
function ownOr(actions: readonly DisruptionAction[] | undefined, fallback: Policy): Policy {
  return actions === undefined || actions.length === 0 ? fallback : { actions, origin: 'user' };
}

/**
 * The policies of MachineConfiguration `cluster` over the built-in ones. An entry for the same path or unit replaces
 * the built-in one as a whole; the policy of SSH keys, and that of whatever no policy names, is replaced only by one
 * with at least one action.
 */
export function mergePolicies(
  own: NodeDisruptionPolicy | undefined,
  defaults: EffectivePolicies = DEFAULT_POLICIES,
  otherwise?: DefaultDisruption,
): EffectivePolicies {
  const files = (own?.files ?? []).map(({ path, actions }) => ({
    path: withoutTrailingSlash(path),
    actions,
    origin: 'user' as const,
  }));
  const units = (own?.units ?? []).map(({ name, actions }) => ({ name, actions, origin: 'user' as const }));
  return {
    files: override<FilePolicy>(defaults.files, files, (entry) => entry.path),
    units: override<UnitPolicy>(defaults.units, units, (unit) => unit.name),
    sshkey: ownOr(own?.sshkey?.actions, defaults.sshkey),
    otherwise: {
      files: ownOr(otherwise?.files, defaults.otherwise.files),
      units: ownOr(otherwise?.units, defaults.otherwise.units),
    },
  };
}

/** The policies in force for a spec of MachineConfiguration `cluster`; undefined: there is none. */
export function policiesInForce(
  spec: MachineConfigurationSpec | undefined,
  flavour: Pick<ApiFlavour, 'name'>,
): EffectivePolicies {
  const { nodeDisruptionPolicy, defaultNodeDisruptionPolicySpecAction } = spec ?? {};
  return mergePolicies(nodeDisruptionPolicy, defaultPolicies(flavour), defaultNodeDisruptionPolicySpecAction);
}

const policyFields = machineConfigurationSpecSchema.pick({
  nodeDisruptionPolicy: true,
  defaultNodeDisruptionPolicySpecAction: true,
});

/**
 * What is wrong with the policies of a spec, one line each: what the API would refuse if its definition were ours, and
 * paths that match nothing.
 */
export function checkPolicies(spec: MachineConfigurationSpec | undefined): string[] {
  const { nodeDisruptionPolicy, defaultNodeDisruptionPolicySpecAction } = spec ?? {};
  const fields = Object.entries({ nodeDisruptionPolicy, defaultNodeDisruptionPolicySpecAction });
  const read = policyFields.safeParse(Object.fromEntries(fields.filter(([, value]) => value !== undefined)));
  if (!read.success) {
    return read.error.issues.map(({ path, message }) => {
      const steps = path.map((step) => (typeof step === 'number' ? step : String(step)));
      return oneLine(`${formatPath(['spec', ...steps])} ${message}`);
    });
  }
  return checkPolicyPaths(nodeDisruptionPolicy);
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
