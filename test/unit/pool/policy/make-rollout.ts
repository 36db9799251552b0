import type { NodeFacts, PoolFacts } from '../../../../machine-config/pool/facts.js';
import { decideGrant, type GrantFacts } from '../../../../machine-config/pool/grant.js';
import { planTurn, type PlanTurnFacts } from '../../../../machine-config/pool/plan-turn.js';
import { makePool, NEW, NOW, updatedTo } from '../make-node.js';

export const MINUTE = 60_000;

/** A node that the rollout updated so many milliseconds ago. */
export function updatedAgo(name: string, ago: number, more: Partial<NodeFacts> = {}): NodeFacts {
  return { ...updatedTo(name, NEW), lastUpdate: { target: NEW, at: NOW - ago, seconds: {} }, ...more };
}

/** A pool with a policy, whose rollout began a day ago. */
export function pooled(rollout: PoolFacts['rollout'] & object, more: Partial<PoolFacts> = {}): PoolFacts {
  return makePool({ rollout, maxUnavailable: 3, rolloutStartedAt: NOW - 24 * 60 * MINUTE, ...more });
}

export function plan(pool: PoolFacts, members: readonly NodeFacts[], more: Partial<PlanTurnFacts> = {}) {
  return planTurn({ pool, members, inFlight: [], gone: [], resting: {}, now: NOW, ...more });
}

export function starts(...given: Parameters<typeof plan>): string[] {
  return plan(...given).start.map(({ node }) => node);
}

/** What `assign` decides for a member, by itself. */
export function decide(
  pool: PoolFacts,
  members: readonly NodeFacts[],
  { name, ...more }: { name: string } & Partial<GrantFacts>,
) {
  const node = members.find((member) => member.name === name);
  if (node === undefined) throw new Error(`${name} is no member`);
  return decideGrant({
    intent: 'start',
    pool,
    poolName: pool.name,
    node,
    nodeName: name,
    nodeUid: node.uid,
    members,
    now: NOW,
    poolOf: () => ({ kind: 'pool', pool: pool.name }),
    ...more,
  });
}
