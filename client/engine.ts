import type { ManagePoolInput } from '../workflows/contract/inputs.js';
import type { LookNowAnswer, NodeUpdateStatus, RolloutStatus } from '../workflows/contract/messages.js';

/** Whether a workflow runs, as far as Temporal let us know. */
export type RunState = 'running' | 'notRunning' | 'unknown';

/** What Temporal knows of a pool. */
export interface EngineView {
  /** `pool/<pool>`, which watches over the pool. */
  readonly manager: RunState;
  /** `rollout/<pool>`. */
  readonly rollout: RunState;
  /** ISO 8601, of the present run of the rollout. */
  readonly startedAt?: string;
  /** What the running rollout says of itself; absent when no worker answered. */
  readonly status?: RolloutStatus;
  /** One sentence: why something of this is not known. */
  readonly problem?: string;
}

/** The part of Temporal that the commands use. */
export interface Engine {
  /**
   * Asks the manager of the pool to have it rendered and rolled out, and starts it if it is not running. Rejects with a
   * CommandError: `refused` with its reason if it says no, `unreachable` if nobody answers within 5 seconds.
   */
  startPool(input: ManagePoolInput): Promise<LookNowAnswer>;
  /** Never rejects: what is not known is said in `problem`. Each question waits 5 seconds at most. */
  view(pool: string): Promise<EngineView>;
  /** What the running updates of these nodes say; a node that does not answer is left out. */
  nodeUpdates(nodes: readonly string[]): Promise<NodeUpdateStatus[]>;
  close(): Promise<void>;
}

/** The view where Temporal was not reached at all. */
export function unreachableView(problem: string): EngineView {
  return { manager: 'unknown', rollout: 'unknown', problem };
}
