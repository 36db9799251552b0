/** What keeps an update from starting that the pool's policy, or people, decide: of a whole pool and of one node alike. */
export const POLICY_CODES = [
  /** Somebody stopped everything, on the MachineConfiguration of the cluster. */
  'Stopped',
  /** Somebody holds the node. */
  'Held',
  /** As many nodes have failed as the failure budget allows. */
  'Halted',
  /** The rest of the control plane is not well enough to spare a node. */
  'ControlPlane',
  /** The stage has to be approved by people first. */
  'ApprovalMissing',
  /** No window is open, or the windows cannot be read. */
  'WindowClosed',
  /** A pool that goes first is not Updated yet. */
  'AfterPool',
  /** As many pools as may be are in an update. */
  'PoolLimit',
  /** A gate is not passed, or could not be asked. */
  'GateClosed',
  /** The time after a node or a stage is not over. */
  'Soaking',
  /** A stage before it is not wholly updated. */
  'StageWaits',
  /** As many nodes of the zone are unavailable as may be. */
  'ZoneFull',
  /** As many nodes are in an update as the pace of the rollout allows by now. */
  'PaceFull',
] as const;
export type PolicyCode = (typeof POLICY_CODES)[number];

/** Why a pool, or a part of it, waits: one code for programs and one sentence for people. */
export const WAITING_CODES = [
  ...POLICY_CODES,
  'PoolPaused',
  'PoolDeleting',
  'NothingRendered',
  'RenderDegraded',
  'MaxUnavailableInvalid',
  'MaxUnavailableZero',
  'SlotsTaken',
  'UpdatesRunning',
  'NodesNotReady',
  'NodesCordoned',
  'NodesUnmanaged',
  'NodesDegraded',
  /** Their drain took too long, and the pool's policy gave them back for a while. */
  'NodesUndrained',
  /** Their worker did not answer lately. */
  'NodesUnreachable',
  /** Their hosts cannot do what the target asks of the operating system. */
  'NodesIncapable',
] as const;
export type WaitingCode = (typeof WAITING_CODES)[number];

export interface Waiting {
  readonly code: WaitingCode;
  /** One sentence that names the objects and what would help, at most 1,000 characters. */
  readonly sentence: string;
  /** Epoch milliseconds at which the turn is worth repeating even if nothing changes. */
  readonly until?: number;
}

/** A node whose update may start now. */
export interface NodeStart {
  readonly node: string;
  readonly nodeUid: string;
  readonly target: string;
  /** What it runs now. */
  readonly current: string;
  /** Patience with its reboot, where the pool says so; absent: as the rollout was told when it began. */
  readonly rebootLimitSeconds?: number;
}

export interface PoolCounts {
  readonly machines: number;
  readonly updated: number;
  readonly ready: number;
  readonly unavailable: number;
  readonly degraded: number;
  readonly unmanaged: number;
}

/** What `planTurn` decides. */
export interface Turn {
  /** At most 100, in the order in which they shall start. */
  readonly start: readonly NodeStart[];
  /** Nodes in flight whose update has become pointless: the Node is gone or is another machine of that name. */
  readonly cancel: readonly string[];
  /**
   * Nodes in flight whose grant is out of date and that have not begun to apply: the pool wants another config by now,
   * or is being deleted. Their update asks `assign` again.
   */
  readonly reconsider: readonly string[];
  readonly waiting: Waiting | null;
  /** Updated nodes that have just passed the gates after a node, and give their slot back by that: to be noted on them. */
  readonly passed?: readonly string[];
  /**
   * Nothing is in flight, and every managed member runs the target without a cordon of ours left, or the pool wants
   * nothing: it has no target or is being deleted. A paused or stopped pool with members to update is not done.
   */
  readonly done: boolean;
  readonly counts: PoolCounts;
  readonly target: string | null;
  readonly maxUnavailable: number;
}

/**
 * What `assign` decides on live data. Unless refused, `desiredConfig` of the Node shall be `target`: it is written when
 * it is anything else, and left alone when it is that already.
 */
export type Grant =
  /** `target` may be what the node runs: then somebody asked on the host that it is applied again. */
  | { readonly outcome: 'granted'; readonly target: string; readonly current: string }
  /** The node runs `target` already, or gave its slot back to stay there; only a cordon of ours may be left to lift. */
  | { readonly outcome: 'unneeded'; readonly target: string; readonly cordonedByUs: boolean }
  | { readonly outcome: 'refused'; readonly code: RefusalCode; readonly sentence: string };

export const REFUSAL_CODES = [
  ...POLICY_CODES,
  'NodeGone',
  'NodeReplaced',
  'NotMember',
  'PoolPaused',
  'PoolDeleting',
  'NothingRendered',
  'NotManaged',
  'NotReady',
  'CordonedByOthers',
  'NoSlot',
  'Backoff',
  'Drifted',
  'RolledBack',
  'CannotDo',
  'MaxUnavailableInvalid',
] as const;
export type RefusalCode = (typeof REFUSAL_CODES)[number];
