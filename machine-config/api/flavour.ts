/**
 * The API's flavour: one setting that decides the group and version of every kind, the prefix of the annotations and
 * labels, and the user whose SSH keys a MachineConfig carries.
 */
export const FLAVOUR_NAMES = ['openshift', 'alauda'] as const;
export type FlavourName = (typeof FLAVOUR_NAMES)[number];

/** A kind as the Kubernetes API addresses it. */
export interface ResourceKind {
  /** Empty for the core group. */
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  readonly kind: string;
  readonly namespaced: boolean;
}

/** `group/version`, or the version alone for the core group. */
export function apiVersionOf(resource: Pick<ResourceKind, 'group' | 'version'>): string {
  return resource.group === '' ? resource.version : `${resource.group}/${resource.version}`;
}

export interface ApiFlavour {
  readonly name: FlavourName;
  /** Group of MachineConfig and MachineConfigPool, and prefix of annotations and labels. */
  readonly group: string;
  readonly version: string;
  readonly machineConfig: ResourceKind;
  readonly machineConfigPool: ResourceKind;
  readonly machineConfiguration: ResourceKind;
  /** The one user whose SSH keys and password a MachineConfig may set. */
  readonly sshUser: string;
  readonly annotations: NodeAnnotationKeys;
  /** Label of a MachineConfig that says for which role it is. */
  readonly roleLabel: string;
  /** Label of the pools that `install` creates. */
  readonly builtInPoolLabel: string;
  /** Annotation of a generated MachineConfig: the version of what generated it. */
  readonly generatedByAnnotation: string;
}

/** Annotations of a Node: the first four are the field's own, the others are Drydock's. */
export interface NodeAnnotationKeys {
  /** Name of the rendered config that the node runs. Written by the node worker. */
  readonly currentConfig: string;
  /** Name of the rendered config that the node was granted. Written by `assign` only. */
  readonly desiredConfig: string;
  /** `Done`, `Working`, `Degraded` or `Unreconcilable`. Written by the node worker. */
  readonly state: string;
  /** Why it is Degraded, at most 2,000 characters; empty when Done. Written by the node worker. */
  readonly reason: string;
}

/** Drydock's own annotations; the same in every flavour. */
export const DRYDOCK_ANNOTATIONS = {
  /** Version of the node worker that registered this Node. A member without it is unmanaged. */
  worker: 'drydock.dev/worker',
  /** Name of the rendered config whose application to the disk has begun; from here on nothing retargets the node. */
  applying: 'drydock.dev/applying',
  /** Written in the same patch as our cordon: the rendered config that we cordoned for. */
  cordonedFor: 'drydock.dev/cordoned-for',
  /** JSON `{os, arch, backend, cannot}`: what the host is, and why it cannot do which field. Written by the node worker. */
  host: 'drydock.dev/host',
  /**
   * Somebody asked on the host, by the force file, that the config is applied again as a whole although the disk is not
   * as it says: the boot ID in which that was asked. Written by the node worker, removed when the update is done.
   */
  force: 'drydock.dev/force',
  /** The value of `force` for which a slot was granted; of another value it says nothing. Written by `assign` only. */
  forceGranted: 'drydock.dev/force-granted',
  /** On a rendered config: JSON, the disruption policies in force for it, as the nodes take them. */
  disruptionPolicies: 'drydock.dev/disruption-policies',
  /** JSON `{target, attempts, at, code}`: the failed update of this node, kept until one succeeds. */
  failure: 'drydock.dev/failure',
  /** On a MachineConfigPool: JSON `{node, at, target, force}`, the slot granted last; makes granting a compare-and-swap on the pool. */
  lastGrant: 'drydock.dev/last-grant',
} as const;

/** What a node runs that was never given a config: nothing. */
export const EMPTY_CONFIG_NAME = 'drydock-empty';

function makeFlavour(
  name: FlavourName,
  group: string,
  version: string,
  operator: { group: string; version: string },
  sshUser: string,
): ApiFlavour {
  const resource = (plural: string, kind: string): ResourceKind => ({
    group,
    version,
    plural,
    kind,
    namespaced: false,
  });
  return {
    name,
    group,
    version,
    machineConfig: resource('machineconfigs', 'MachineConfig'),
    machineConfigPool: resource('machineconfigpools', 'MachineConfigPool'),
    machineConfiguration: { ...resource('machineconfigurations', 'MachineConfiguration'), ...operator },
    sshUser,
    annotations: {
      currentConfig: `${group}/currentConfig`,
      desiredConfig: `${group}/desiredConfig`,
      state: `${group}/state`,
      reason: `${group}/reason`,
    },
    roleLabel: `${group}/role`,
    builtInPoolLabel: `${group}/mco-built-in`,
    generatedByAnnotation: `${group}/generated-by-controller-version`,
  };
}

const FLAVOURS: Record<FlavourName, ApiFlavour> = {
  openshift: makeFlavour(
    'openshift',
    'machineconfiguration.openshift.io',
    'v1',
    { group: 'operator.openshift.io', version: 'v1' },
    'core',
  ),
  alauda: makeFlavour(
    'alauda',
    'machineconfiguration.alauda.io',
    'v1alpha1',
    { group: 'machineconfiguration.alauda.io', version: 'v1alpha1' },
    'boot',
  ),
};

export function apiFlavour(name: FlavourName): ApiFlavour {
  return FLAVOURS[name];
}
