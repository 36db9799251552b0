/** Why a pool, or a part of it, waits: one code for programs and one sentence for people. */
export const WAITING_CODES = [
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
