import type { RolloutPolicy } from '../../api/rollout-policy.js';
import type { NodeFacts, PoolFacts } from '../facts.js';
import { failureThatCounts } from './failures.js';
import { policyOf, updatedAt } from './rollout-facts.js';

type Pace = NonNullable<RolloutPolicy['pace']>;

/** What a pace has come to. */
export interface PaceProgress {
  /** Nodes that this rollout has updated. */
  readonly updated: number;
  /** Nodes whose update failed and has not succeeded since. */
  readonly failed: number;
  /** How many may be unavailable at once; no pace goes beyond. */
  readonly limit: number;
}

/** Batch by batch: each is as large as the pace allows by then, and the next one larger. */
function grown({ growth, start = 1, step = 1 }: Pace, updated: number, limit: number): number {
  let size = Math.min(start, limit);
  let left = updated;
  while (left >= size && size < limit) {
    left -= size;
    size = Math.min(growth === 'Linear' ? size + step : size * 2, limit);
  }
  return size;
}

/**
 * How many nodes may be in an update at once. Constant stays at `start`, or at the limit where no start is written;
 * Linear adds `step` after each batch, Exponential doubles. Each failed node halves it. From 1 to `limit`.
 */
export function paceLimit(pace: Pace | undefined, { updated, failed, limit }: PaceProgress): number {
  if (pace === undefined) return limit;
  const size = pace.growth === 'Constant' ? Math.min(pace.start ?? limit, limit) : grown(pace, updated, limit);
  return Math.max(1, Math.floor(size / 2 ** failed));
}

/** As paceLimit, for the rollout of a pool. Where nobody knows when it began it is at its start. */
export function paceOf(pool: PoolFacts, members: readonly NodeFacts[], limit: number): number {
  const { pace } = policyOf(pool);
  if (pace === undefined) return limit;
  const isNew = pool.rolloutStartedAt === undefined;
  const updated = isNew ? 0 : members.filter((node) => updatedAt(node, pool) !== undefined).length;
  const failed = members.filter((node) => failureThatCounts(node, pool) !== undefined).length;
  return paceLimit(pace, { updated, failed, limit });
}
