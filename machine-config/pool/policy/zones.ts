import type { NodeFacts, PoolFacts } from '../facts.js';
import { resolveMaxUnavailable, type MaxUnavailable } from '../max-unavailable.js';
import { ZONE_LABEL } from './order.js';
import { policyOf } from './rollout-facts.js';

/** How many nodes may be unavailable in each zone. */
export interface ZoneLimits {
  /** The zone of a node; undefined: it is in none, and only the limit of the whole pool holds for it. */
  zoneOf(node: NodeFacts): string | undefined;
  limitOf(zone: string): number;
}

/** The limit of a zone of so many nodes; undefined: none is written. */
function limitIn(pool: PoolFacts, nodes: number): MaxUnavailable | undefined {
  const written = policyOf(pool).maxUnavailablePerZone?.maxUnavailable;
  return written === undefined ? undefined : resolveMaxUnavailable(written, nodes, '');
}

/** Why the limit of the zones cannot be followed, so that nothing starts; undefined: it can, or there is none. */
export function whyNoZoneLimit(pool: PoolFacts): string | undefined {
  const limit = limitIn(pool, 1);
  if (limit === undefined || limit.ok) return undefined;
  const written = JSON.stringify(policyOf(pool).maxUnavailablePerZone?.maxUnavailable).slice(0, 60);
  return (
    `spec.rollout.maxUnavailablePerZone.maxUnavailable of MachineConfigPool ${pool.name} is ${written}, so no update ` +
    `starts: write a whole number above 0 or a percentage, for example 1 or "10%"`
  );
}

/** A percentage is of the members with the same value of the label, rounded down and at least one. */
export function zoneLimits(pool: PoolFacts, members: readonly NodeFacts[]): ZoneLimits | undefined {
  const policy = policyOf(pool).maxUnavailablePerZone;
  if (policy === undefined) return undefined;
  const label = policy.label ?? ZONE_LABEL;
  const zoneOf = ({ labels }: NodeFacts) => (Object.hasOwn(labels, label) ? labels[label] : undefined) || undefined;
  const sizes = new Map<string, number>();
  for (const node of members) {
    const zone = zoneOf(node);
    if (zone !== undefined) sizes.set(zone, (sizes.get(zone) ?? 0) + 1);
  }
  return {
    zoneOf,
    limitOf: (zone) => {
      const limit = limitIn(pool, sizes.get(zone) ?? 0);
      return limit?.ok === true ? limit.limit : 0;
    },
  };
}
