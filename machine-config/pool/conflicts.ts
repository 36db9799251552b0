import { matchesSelector } from '../api/label-selector.js';
import type { NodeFacts } from './facts.js';
import { CONTROL_PLANE_POOL } from './max-unavailable.js';
import { poolOf, WORKER_POOL, type PoolSelector } from './membership.js';

/** A node that several custom pools select, and that is held until its labels are clear. */
export interface MembershipConflict {
  readonly node: string;
  readonly pools: readonly string[];
  /** Names the node and the pools, and says what to do. */
  readonly sentence: string;
}

/** The conflicts that a pool is part of, by node name. One that conflicts with none costs a match for each node at most. */
export function conflictsOf(
  pool: string,
  nodes: readonly Pick<NodeFacts, 'name' | 'labels'>[],
  pools: readonly PoolSelector[],
): MembershipConflict[] {
  const own = pools.find(({ name }) => name === pool);
  if (own === undefined || [CONTROL_PLANE_POOL, WORKER_POOL].includes(pool)) return [];
  return nodes
    .filter(({ labels }) => matchesSelector(own.nodeSelector, labels))
    .flatMap((node) => {
      const membership = poolOf(node, pools);
      if (membership.kind !== 'conflict' || !membership.pools.includes(pool)) return [];
      return [{ node: node.name, pools: membership.pools, sentence: membership.sentence }];
    })
    .sort((a, b) => (a.node < b.node ? -1 : 1));
}
