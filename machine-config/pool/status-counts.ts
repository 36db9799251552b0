import { isDegraded, isDrifted, isGranted, isManaged, isUpdated } from './availability.js';
import { oldestFirst } from './candidates.js';
import type { NodeFacts, PoolFacts } from './facts.js';

/** The members of a pool, told apart as its status counts them. */
export interface MemberCounts {
  readonly total: number;
  readonly updated: number;
  readonly ready: number;
  readonly unavailable: number;
  /** Oldest first. */
  readonly degraded: readonly NodeFacts[];
  /** Oldest first. */
  readonly unmanaged: readonly NodeFacts[];
  /** Every member runs the target and takes pods. */
  readonly allUpdated: boolean;
}

function canTakePods(node: NodeFacts): boolean {
  return node.ready && !node.unschedulable;
}

/**
 * As the field counts it: a node that is on its way is unavailable, one that failed on its way and still works is not.
 * A member without a worker is judged by readiness alone, because it is not on its way anywhere.
 */
function countsAsUnavailable(node: NodeFacts): boolean {
  if (!canTakePods(node)) return true;
  if (!isManaged(node)) return false;
  const done = node.state === 'Done' && !isGranted(node);
  const failedOnTheWay = isDegraded(node) && !isDrifted(node) && (isGranted(node) || node.failure !== undefined);
  return !done && !failedOnTheWay;
}

const byAge = (nodes: NodeFacts[]) => oldestFirst(nodes, (node) => node);

export function countMembers(pool: PoolFacts, members: readonly NodeFacts[]): MemberCounts {
  const total = members.length;
  const updated = members.filter((node) => isUpdated(node, pool.target));
  const ready = updated.filter(canTakePods).length;
  const unavailable = members.filter(countsAsUnavailable).length;
  return {
    total,
    updated: updated.length,
    ready,
    unavailable,
    degraded: byAge(members.filter(isDegraded)),
    unmanaged: byAge(members.filter((node) => !isManaged(node))),
    allUpdated: pool.target !== undefined && updated.length === total && ready === total && unavailable === 0,
  };
}
