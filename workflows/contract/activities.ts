import type { Grant, Turn, Waiting } from '../../machine-config/pool/turn.js';

/** Inputs and results of every activity: names, hashes, counts and paths, never contents. */

export interface PoolStep {
  /** uid of the namespace kube-system; a worker of another cluster refuses. */
  readonly cluster: string;
  readonly pool: string;
}

export interface NodeStep extends PoolStep {
  readonly node: string;
  readonly nodeUid: string;
}

/** A step towards a rendered config. */
export interface TargetStep extends NodeStep {
  /** Name of the rendered config; the node compares it with its own desiredConfig. */
  readonly target: string;
}

// ---- control worker -------------------------------------------------------------------------------------------

export interface PlanTurnInput extends PoolStep {
  /** Node name to the uid of the Node for which an update is running. */
  readonly inFlight: Readonly<Record<string, string>>;
  /** Nodes not to be started before the given epoch milliseconds. */
  readonly resting: Readonly<Record<string, number>>;
  /** Epoch milliseconds, the workflow's clock. */
  readonly now: number;
}

export interface AssignInput extends NodeStep {
  /**
   * `start`: take a slot and grant the pool's target. `continue`: the slot is held; grant the pool's present target
   * unless the node has begun to apply. `withdraw`: give the slot back, desired becomes current, unless begun.
   */
  readonly intent: 'start' | 'continue' | 'withdraw';
}

export type RenderPoolResult =
  | { readonly outcome: 'rendered'; readonly rendered: string; readonly changed: boolean; readonly sources: number }
  | { readonly outcome: 'refused'; readonly reason: string }
  | { readonly outcome: 'poolGone' };

export interface CollectRenderedResult {
  /** How many rendered configs were deleted. */
  readonly deleted: number;
}

/** Kinds of objects that MachineConfigs are generated from. */
export type SourceKind = 'KubeletConfig' | 'ContainerRuntimeConfig' | 'ControllerConfig';

export interface ReconcileSourcesInput {
  readonly cluster: string;
  readonly kind: SourceKind;
}

export interface ReconcileSourcesResult {
  /** The cluster knows the kind. */
  readonly known: boolean;
  /** How many objects of the kind there are. */
  readonly objects: number;
  /** Names of the MachineConfigs that are generated; at most 50. */
  readonly generated: readonly string[];
  /** `name: why not`, one line an object; at most 10. */
  readonly refused: readonly string[];
  /** How many MachineConfigs were written or deleted now. */
  readonly written: number;
}

export interface SyncPoolInput extends PoolStep {
  /** Why the turn that was just taken starts nothing, null if it waits for nothing; absent: no turn was taken. */
  readonly waiting?: Pick<Waiting, 'code' | 'sentence'> | null;
}

export interface SyncPoolResult {
  readonly exists: boolean;
  /** A member is not on the target, or a cordon of ours is left: a rollout has something to do or to wait for. */
  readonly needsRollout: boolean;
  readonly target: string | null;
  /** It is being deleted, which cannot be taken back. Absent: it is not. */
  readonly deleting?: boolean;
}

/** Whether a node that was changed may reboot now. */
export type RebootClearance =
  | { readonly clear: true }
  /** `sentence`: for what it waits, and what would help. `until`: epoch milliseconds at which asking again is worth it. */
  | { readonly clear: false; readonly sentence: string; readonly until?: number };

export interface CheckChildrenInput extends PoolStep {
  /** Node name to run id of its update; empty where only the workflow id is known. */
  readonly children: Readonly<Record<string, string>>;
}

export interface CheckChildrenResult {
  /** Nodes whose update, in that very run, is no longer running. */
  readonly closed: readonly string[];
}

export interface RenewBootstrapTokenInput {
  readonly cluster: string;
}

export type RenewBootstrapTokenResult =
  /** First boots are not wanted here: there is no Secret for a token, or none that may be written. */
  | { readonly outcome: 'absent' }
  | { readonly outcome: 'kept'; readonly dueInSeconds: number }
  | { readonly outcome: 'renewed'; readonly id: string; readonly dueInSeconds: number };

export interface ControlActivities {
  /** Decides what may happen next in a pool, over the watch cache; writes what the nodes show of it (gates passed, taints). */
  planTurn(input: PlanTurnInput): Promise<Turn>;
  /** The only writer of desiredConfig. Decides again on live data and writes with a resourceVersion precondition. */
  assign(input: AssignInput): Promise<Grant>;
  /** Whether anything speaks against the reboot of a node whose config is on its disk: all is stopped, its control plane is not well. */
  clearReboot(input: TargetStep): Promise<RebootClearance>;
  /** Selects, merges, validates and stores the pool's rendered config, and names it in pool.spec.configuration. */
  renderPool(input: PoolStep): Promise<RenderPoolResult>;
  /** Deletes rendered configs of the pool that neither a Node nor a pool names any more; some of them are kept. */
  collectRendered(input: PoolStep): Promise<CollectRenderedResult>;
  /** Generates the MachineConfigs of all objects of a kind, and says in their status what became of them. */
  reconcileSources(input: ReconcileSourcesInput): Promise<ReconcileSourcesResult>;
  /** Writes what Kubernetes shows of the pool, and the nodes' read permission on their configs; no write when nothing changed. */
  syncPool(input: SyncPoolInput): Promise<SyncPoolResult>;
  /** Asks Temporal, by describe, which updates have ended without a word. */
  checkChildren(input: CheckChildrenInput): Promise<CheckChildrenResult>;
  /** Makes the token with which machines join anew, if that is due; the token stays in its Secret. */
  renewBootstrapToken(input: RenewBootstrapTokenInput): Promise<RenewBootstrapTokenResult>;
}

// ---- node worker ----------------------------------------------------------------------------------------------

/** What a change costs a node, from nothing to everything. */
export type Disruption = 'none' | 'services' | 'drain' | 'reboot';

export interface PrepareResult {
  readonly from: string;
  readonly target: string;
  readonly disruption: Disruption;
  /** How many files, units, keys and kernel arguments differ. */
  readonly changes: {
    readonly files: number;
    readonly units: number;
    readonly sshKeys: number;
    readonly kernelArguments: number;
  };
  /** Pods that a drain would evict now; from workers of version 0.1 alone. */
  readonly pods?: number;
  /** One line for the UI, names and counts only. */
  readonly summary: string;
  /** Paths of files that change; the first twenty. */
  readonly files?: readonly string[];
  /** Names of units of which anything changes; the first twenty. */
  readonly units?: readonly string[];
  /** What is done once the files are there, in words and in order, for example `restart chronyd.service`. */
  readonly actions?: readonly string[];
  /** What the update leaves out, or leaves as it is, in sentences; the first ten. */
  readonly warnings?: readonly string[];
  /** It is cordoned and not drained, since its pods could run nowhere else. */
  readonly noDrain?: true;
}

export interface CordonResult {
  /** False: somebody else had cordoned it; we shall not uncordon it. */
  readonly ours: boolean;
}

export interface DrainInput extends TargetStep {
  /** How long this slice may last. */
  readonly sliceSeconds: number;
}

export interface DrainBlocker {
  /** `namespace/name` of the pod. */
  readonly pod: string;
  /** For example `PDB shop/cart allows 0 disruptions`. */
  readonly why: string;
}

export interface DrainResult {
  readonly drained: boolean;
  readonly evicted: number;
  readonly remaining: number;
  /** At most 30. */
  readonly blockers: readonly DrainBlocker[];
  /** What it waits for, in one sentence; absent when drained, and from workers of version 0.1. */
  readonly sentence?: string;
  /** `namespace/name` of the PodDisruptionBudgets that refuse; at most 30. */
  readonly budgets?: readonly string[];
  /** What was not waited for any longer, or could not be read, in sentences. */
  readonly warnings?: readonly string[];
  /** The pool's policy says that the node is to be given back: why, and when it is tried again. */
  readonly giveBack?: { readonly reason: string; readonly retryAfterSeconds: number };
}

export interface ApplyResult {
  /** False: the change needs no reboot. */
  readonly reboot: boolean;
  /** The boot in which it was applied. */
  readonly bootId: string;
  readonly filesWritten: number;
  readonly unitsChanged: number;
}

export interface RebootResult {
  /** False: the host has rebooted since apply already. */
  readonly requested: boolean;
  readonly oldBootId: string;
}

export interface ConfirmResult {
  readonly bootId: string;
  readonly rebooted: boolean;
}

export interface UncordonResult {
  /** False: it was not cordoned by us, or somebody else holds it. */
  readonly uncordoned: boolean;
}

export interface NodeActivities {
  /** Reads the own Node and the target, plans the whole update and checks that it can be done. Writes nothing. */
  prepare(input: TargetStep): Promise<PrepareResult>;
  /** Cordons with our owner annotation in one patch. */
  cordon(input: TargetStep): Promise<CordonResult>;
  /** One slice of draining by the policy of the node's own pool; ends early when nothing is left, or at its limit. */
  drain(input: DrainInput): Promise<DrainResult>;
  /** Marks the Node as applying (compare-and-swap), then brings the disk to the target, all or nothing. */
  apply(input: TargetStep): Promise<ApplyResult>;
  /** Asks for one reboot, keyed by the boot ID in the journal. */
  reboot(input: TargetStep): Promise<RebootResult>;
  /** After the reboot: boot ID new, disk as the target says, Node Ready. Benign NotRebootedYet until then. */
  confirm(input: TargetStep): Promise<ConfirmResult>;
  /** Lifts our cordon and writes currentConfig and state Done in the same patch; ends the journal. */
  uncordon(input: TargetStep): Promise<UncordonResult>;
  /** Gives the node back without the update, before apply or after a failure that was undone: lifts our cordon, state as it was. */
  release(input: NodeStep): Promise<UncordonResult>;
}
