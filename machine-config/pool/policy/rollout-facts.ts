import type { RolloutPolicy } from '../../api/rollout-policy.js';
import { hasOurCordon, isApplying, isUpdated, needsUpdate } from '../availability.js';
import type { ClusterFacts, NodeFacts, PoolFacts } from '../facts.js';
import type { MaxUnavailable } from '../max-unavailable.js';

/** What the control plane says to the start of an update. */
export interface ControlPlaneFacts {
  /** Why no node of the control plane may start now, in a sentence. */
  readonly obstacle?: string;
  /** The node that goes last: the control worker that decides runs on it. */
  readonly last?: string;
}

/** All that the policy of a rollout is decided on. */
export interface RolloutFacts {
  readonly pool: PoolFacts;
  readonly target: string;
  readonly limit: MaxUnavailable;
  /** All members of the pool, managed or not. */
  readonly members: readonly NodeFacts[];
  /** Names of the nodes whose update is running. */
  readonly running: ReadonlySet<string>;
  /** Absent: not known, so that nothing may start that depends on it. */
  readonly cluster?: ClusterFacts | undefined;
  readonly controlPlane?: ControlPlaneFacts | undefined;
  /** Epoch milliseconds. */
  readonly now: number;
}

/** What a new config has to prove, the last good one has proved: a roll-back keeps the limits of the policy alone. */
const NOT_IN_A_ROLL_BACK: ReadonlySet<string> = new Set<keyof RolloutPolicy>(['stages', 'soak', 'gates', 'after']);

/** The policy in force: what is written, or in a roll-back what of it holds there. */
export function policyOf({ rollout = {}, rollingBack }: PoolFacts): RolloutPolicy {
  if (rollingBack !== true) return rollout;
  return Object.fromEntries(Object.entries(rollout).filter(([field]) => !NOT_IN_A_ROLL_BACK.has(field)));
}

/**
 * Its update was begun and has to be brought to an end: its disk is being changed, or our cordon is on it. No policy
 * leaves it as it is, since only its update brings it back.
 */
export function isBegun(node: NodeFacts): boolean {
  return isApplying(node) || hasOurCordon(node);
}

/** There is nothing to do on it any more. */
export function isFinished(node: NodeFacts, target: string): boolean {
  return isUpdated(node, target) && !needsUpdate(node, target);
}

/**
 * Epoch milliseconds at which this rollout updated it; undefined: it did not, or not yet. As long as nobody knows when
 * the rollout began, every update to its target counts.
 */
export function updatedAt(node: NodeFacts, pool: PoolFacts): number | undefined {
  const { lastUpdate } = node;
  if (pool.target === undefined || lastUpdate?.target !== pool.target) return undefined;
  if (!isUpdated(node, pool.target)) return undefined;
  return lastUpdate.at >= (pool.rolloutStartedAt ?? Number.NEGATIVE_INFINITY) ? lastUpdate.at : undefined;
}
