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
  readonly machineConfigNode: ResourceKind;
  readonly kubeletConfig: ResourceKind;
  readonly containerRuntimeConfig: ResourceKind;
  readonly controllerConfig: ResourceKind;
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
  /** On a MachineConfigPool: JSON, see machine-config/pool/grant-record.ts; makes granting a compare-and-swap on the pool. */
  lastGrant: 'drydock.dev/last-grant',
  /**
   * On a Node, by people: why Drydock leaves it as it is. Nothing starts on it; an update that is on its way is finished
   * and leaves it cordoned.
   */
  hold: 'drydock.dev/hold',
  /** On a Node, by the worker: the cordon that is left is one of ours that a hold kept, so `node release` lifts it. */
  heldCordon: 'drydock.dev/held-cordon',
  /** On a Node, by people: the rendered config to which it may be updated although somebody else cordoned it. */
  release: 'drydock.dev/release',
  /** On a Node, by people: ISO 8601; failures before this time do not count any more. */
  retry: 'drydock.dev/retry',
  /** On a Node, by the worker in the patch of the cordon: ISO 8601, when its drain began. */
  drainSince: 'drydock.dev/drain-since',
  /** On a Node, by the worker: JSON, what our cordon replaced of annotations of others, to be put back. */
  replaced: 'drydock.dev/replaced',
  /** On a Node, by the worker while it drains: JSON `{sentence, pods, budgets}`, what its drain waits for. */
  drainBlocked: 'drydock.dev/drain-blocked',
  /** On a Node, by the worker when it is done: JSON `{target, at, seconds}`, its last update; `seconds` by step. */
  lastUpdate: 'drydock.dev/last-update',
  /** On a Node, by the worker: JSON list of `namespace/Kind/name`, what owns the pods that were evicted from it. */
  evictedOwners: 'drydock.dev/evicted-owners',
  /** On a Node, by `assign` with a grant: the rendered config for which it is cordoned and not drained, being the only node that takes pods. */
  noDrain: 'drydock.dev/no-drain',
  /** On a MachineConfigNode, by the control worker: the boot in which the present update of its node was granted. */
  bootBefore: 'drydock.dev/boot-before',
  /** On a Node, by the control worker: the rendered config for which the gates after the node have been passed. */
  gatesPassed: 'drydock.dev/gates-passed',
  /** On a MachineConfigPool, by people: JSON `{config, stages}`, the stages that are approved for a rendered config. */
  approval: 'drydock.dev/approval',
  /** On a MachineConfigPool: the user who wrote `approval`; an admission policy demands that it is the one who writes. */
  approvedBy: 'drydock.dev/approved-by',
  /** On a MachineConfigPool, by people: ISO 8601; failures before this time do not count for the failure budget any more. */
  resume: 'drydock.dev/resume',
  /** On a MachineConfigPool, by people: the rendered config whose rollout does not wait for a window. */
  runNow: 'drydock.dev/run-now',
  /** On a MachineConfigPool, by the control worker: the rendered config that failed and from which the pool goes back. */
  rolledBackFrom: 'drydock.dev/rolled-back-from',
  /** On MachineConfiguration `cluster`, by people: why nothing starts anywhere, and nothing reboots. */
  stop: 'drydock.dev/stop',
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
    machineConfigNode: resource('machineconfignodes', 'MachineConfigNode'),
    kubeletConfig: resource('kubeletconfigs', 'KubeletConfig'),
    containerRuntimeConfig: resource('containerruntimeconfigs', 'ContainerRuntimeConfig'),
    controllerConfig: resource('controllerconfigs', 'ControllerConfig'),
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
