import { isUpdated } from '../availability.js';
import type { NodeFacts, PoolFacts } from '../facts.js';
import { policyOf, updatedAt } from './rollout-facts.js';

/**
 * Whether this rollout has updated the node, and the gates after a node have not been passed for it: until then it keeps
 * its slot.
 */
export function awaitsGates(node: NodeFacts, pool: PoolFacts): boolean {
  const gates = policyOf(pool).gates?.afterNode;
  if (gates === undefined || gates.length === 0 || node.gatesPassed === pool.target) return false;
  return isUpdated(node, pool.target) && updatedAt(node, pool) !== undefined;
}
