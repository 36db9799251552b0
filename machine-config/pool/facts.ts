import { DRYDOCK_ANNOTATIONS, type ApiFlavour } from '../api/flavour.js';
import type { RolloutPolicy } from '../api/rollout-policy.js';
import { isRecord } from '../ignition/findings.js';
import { jsonObject, rolloutFacts, timeIn, type Annotations } from './annotations.js';
import { OS_FIELDS, type OsField } from '../change/os-fields.js';

export const NODE_STATES = ['Done', 'Working', 'Degraded', 'Unreconcilable'] as const;
export type NodeState = (typeof NODE_STATES)[number];

/** The last failed update of a node, as the node worker wrote it. */
export interface NodeFailure {
  readonly target: string;
  /** How often in a row the update to `target` failed, 1 or more. */
  readonly attempts: number;
  /** ISO 8601. */
  readonly at: string;
  /** What kind of failure it was, a failure code of the workflows; absent in records of older workers. */
  readonly code?: string;
}

/** What a node worker tells of its host. */
export interface HostFacts {
  readonly os: string;
  /** As Go names it: `amd64`, `arm64`. */
  readonly arch: string;
  readonly backend: string;
  /** Why the host cannot do a field; those that it can do are absent. */
  readonly cannot: Readonly<Partial<Record<OsField, string>>>;
}

/** All that pool decisions need to know of a Node. */
export interface NodeFacts {
  readonly name: string;
  readonly uid: string;
  /** ISO 8601. */
  readonly createdAt: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly deleting: boolean;
  readonly unschedulable: boolean;
  /** As the reference system judges it: Ready True, DiskPressure and NetworkUnavailable False; no condition at all is not ready. */
  readonly ready: boolean;
  /** The condition that makes it not ready, for sentences; absent when ready. */
  readonly notReadyBecause?: string;
  readonly bootId: string;
  /** Version of the registered node worker; absent: unmanaged. */
  readonly worker?: string;
  readonly current?: string;
  readonly desired?: string;
  readonly state?: NodeState;
  readonly reason?: string;
  readonly applying?: string;
  /** We cordoned it, for this rendered config. */
  readonly cordonedFor?: string;
  readonly failure?: NodeFailure;
  /** Somebody asked on the host that its config is applied again: the boot ID in which that was. See isForced. */
  readonly force?: string;
  /** The `force` for which a slot was granted. */
  readonly forceGranted?: string;
  /** Absent: the worker has not told it yet. */
  readonly host?: HostFacts;
  /** All annotations, for orders that follow one. */
  readonly annotations?: Readonly<Record<string, string>>;
  /** Epoch milliseconds since which the condition Ready has its present status. */
  readonly readinessSince?: number;
  /** Why people hold it back. */
  readonly hold?: string;
  /** Our cordon was left to whoever holds it. */
  readonly heldCordon?: boolean;
  /** The rendered config to which it may be updated although others cordoned it. */
  readonly release?: string;
  /** Epoch milliseconds: failures before this do not count. */
  readonly retryAt?: number;
  /** Epoch milliseconds at which its drain began. */
  readonly drainSince?: number;
  readonly drainBlocked?: DrainBlocked;
  readonly lastUpdate?: LastUpdate;
  /** `namespace/Kind/name` of what owns the pods that the last drain evicted. */
  readonly evictedOwners?: readonly string[];
  /** The rendered config for which the gates after the node have been passed. */
  readonly gatesPassed?: string;
  /** The rendered config for which it is cordoned and not drained. */
  readonly noDrain?: string;
  /** It carries our taint for nodes that wait for their update. */
  readonly waitsTainted?: boolean;
}

/** What a drain waits for, as the node worker wrote it at the end of a slice. */
export interface DrainBlocked {
  /** At most 500 characters. */
  readonly sentence: string;
  /** `namespace/name`; the first ten. */
  readonly pods: readonly string[];
  /** `namespace/name` of PodDisruptionBudgets; the first ten. */
  readonly budgets: readonly string[];
}

/** The last update that a node finished. */
export interface LastUpdate {
  readonly target: string;
  /** Epoch milliseconds at which it was done. */
  readonly at: number;
  /** How long each step took. */
  readonly seconds: Readonly<Record<string, number>>;
}

/** Which stages people have approved. */
export interface Approval {
  readonly config: string;
  readonly stages: readonly string[];
  readonly by?: string;
}

/** All that pool decisions need to know of a MachineConfigPool. */
export interface PoolFacts {
  readonly name: string;
  readonly uid: string;
  readonly paused: boolean;
  readonly deleting: boolean;
  /** As written; see resolveMaxUnavailable. */
  readonly maxUnavailable?: number | string;
  /** Name of the rendered config that the members shall run; absent until the first render. */
  readonly target?: string;
  /** spec.rollout. */
  readonly rollout?: RolloutPolicy;
  readonly approval?: Approval;
  /** Epoch milliseconds: failures before this do not count for the budget. */
  readonly resumedAt?: number;
  /** The rendered config whose rollout does not wait for a window. */
  readonly runNow?: string;
  /** Epoch milliseconds at which the rollout to the present target began, from the pool's status. */
  readonly rolloutStartedAt?: number;
  /** The target is the last good config, to which a rollout goes back that failed. */
  readonly rollingBack?: boolean;
}

/** What holds for all pools, and how the other pools stand. */
export interface ClusterFacts {
  /** Why everything is stopped. */
  readonly stop?: string;
  /** How many pools may have nodes in an update at once. */
  readonly maxPools?: number;
  /** All pools but this one. */
  readonly others: readonly OtherPool[];
  /** How many Nodes of the whole cluster can take pods, this pool's included. */
  readonly schedulable?: number;
  /** Name of the Node, if it is only one that can take pods. */
  readonly onlySchedulable?: string | undefined;
}

export interface OtherPool {
  readonly name: string;
  /** Every managed member runs its target. */
  readonly updated: boolean;
  /** A member holds a slot. */
  readonly rolling: boolean;
  /** The pools that go before it, so that pools that wait for each other can be told; absent: none. */
  readonly after?: readonly string[];
}

/** The part of a Kubernetes Node that facts are read from (a V1Node fits). */
export interface NodeObject {
  metadata?: {
    name?: string;
    uid?: string;
    creationTimestamp?: Date | string;
    deletionTimestamp?: Date | string;
    labels?: Record<string, string>;
    annotations?: Record<string, string>;
  };
  spec?: { unschedulable?: boolean; taints?: { key: string; effect: string; value?: string }[] };
  status?: {
    conditions?: { type: string; status: string; lastTransitionTime?: string }[];
    nodeInfo?: { bootID?: string; containerRuntimeVersion?: string };
  };
}

function isoTime(value: Date | string | undefined): string {
  if (value === undefined) return '';
  return typeof value === 'string' ? value : value.toISOString();
}

function parseFailure(text: string | undefined): NodeFailure | undefined {
  const { target, attempts, at, code } = jsonObject(text) ?? {};
  if (typeof target !== 'string' || typeof attempts !== 'number' || typeof at !== 'string') return undefined;
  return { target, attempts, at, ...(typeof code === 'string' ? { code } : {}) };
}

function parseHost(text: string | undefined): HostFacts | undefined {
  const { os, arch, backend, cannot } = jsonObject(text) ?? {};
  if (typeof os !== 'string' || typeof arch !== 'string' || typeof backend !== 'string') return undefined;
  const reasons = isRecord(cannot) ? cannot : {};
  const known = OS_FIELDS.flatMap((field) => {
    const reason = reasons[field];
    return typeof reason === 'string' ? [[field, reason] as const] : [];
  });
  return { os, arch, backend, cannot: Object.fromEntries(known) };
}

function notReadyBecause(conditions: { type: string; status: string }[] | undefined): string | undefined {
  const statusOf = (type: string) => conditions?.find((condition) => condition.type === type)?.status;
  const ready = statusOf('Ready');
  if (ready !== 'True') return `Ready is ${ready ?? 'not reported'}`;
  for (const type of ['DiskPressure', 'NetworkUnavailable']) {
    const status = statusOf(type);
    if (status !== undefined && status !== 'False') return `${type} is ${status}`;
  }
  return undefined;
}

/** The annotations, without those that are empty: an empty one says no more than an absent one. */
function annotationsOf(node: NodeObject): Annotations {
  return Object.fromEntries(Object.entries(node.metadata?.annotations ?? {}).filter(([, value]) => value !== ''));
}

function annotationFacts(node: NodeObject, flavour: ApiFlavour) {
  const annotations = annotationsOf(node);
  const state = annotations[flavour.annotations.state];
  const failure = parseFailure(annotations[DRYDOCK_ANNOTATIONS.failure]);
  const host = parseHost(annotations[DRYDOCK_ANNOTATIONS.host]);
  const optional = {
    worker: annotations[DRYDOCK_ANNOTATIONS.worker],
    current: annotations[flavour.annotations.currentConfig],
    desired: annotations[flavour.annotations.desiredConfig],
    reason: annotations[flavour.annotations.reason],
    applying: annotations[DRYDOCK_ANNOTATIONS.applying],
    cordonedFor: annotations[DRYDOCK_ANNOTATIONS.cordonedFor],
    force: annotations[DRYDOCK_ANNOTATIONS.force],
    forceGranted: annotations[DRYDOCK_ANNOTATIONS.forceGranted],
  };
  return {
    ...Object.fromEntries(Object.entries(optional).filter(([, value]) => value !== undefined)),
    ...(isNodeState(state) ? { state } : {}),
    ...(failure === undefined ? {} : { failure }),
    ...(host === undefined ? {} : { host }),
    ...rolloutFacts(annotations),
  };
}

function readinessFacts(node: NodeObject) {
  const conditions = node.status?.conditions;
  const problem = notReadyBecause(conditions);
  const since = timeIn(conditions?.find(({ type }) => type === 'Ready')?.lastTransitionTime);
  return {
    ...(problem === undefined ? { ready: true } : { ready: false, notReadyBecause: problem }),
    ...(since === undefined ? {} : { readinessSince: since }),
  };
}

/** The taint of nodes that wait for their update, under the name that the field gave it. */
export const WAITING_TAINT = { key: 'UpdateInProgress', effect: 'PreferNoSchedule' } as const;

function isWaitingTaint({ key, effect }: { key: string; effect: string }): boolean {
  return key === WAITING_TAINT.key && effect === WAITING_TAINT.effect;
}

/** Reads a Node; what is missing or malformed is absent, never an error. */
export function nodeFacts(node: NodeObject, flavour: ApiFlavour): NodeFacts {
  const { metadata = {} } = node;
  return {
    name: metadata.name ?? '',
    uid: metadata.uid ?? '',
    createdAt: isoTime(metadata.creationTimestamp),
    labels: metadata.labels ?? {},
    deleting: metadata.deletionTimestamp !== undefined,
    unschedulable: node.spec?.unschedulable === true,
    bootId: node.status?.nodeInfo?.bootID ?? '',
    annotations: metadata.annotations ?? {},
    ...(node.spec?.taints?.some(isWaitingTaint) ? { waitsTainted: true } : {}),
    ...readinessFacts(node),
    ...annotationFacts(node, flavour),
  };
}

function isNodeState(value: string | undefined): value is NodeState {
  return (NODE_STATES as readonly (string | undefined)[]).includes(value);
}
