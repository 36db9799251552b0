import { holdsGrant } from '../availability.js';
import type { ClusterFacts, OtherPool, PoolFacts } from '../facts.js';
import { countOf, nameSome } from '../sentences.js';
import { policyOf, type RolloutFacts } from './rollout-facts.js';

/** The pools through which a pool waits for itself, from the first that it waits for; undefined: it does not. */
function circle(name: string, first: string, pools: ReadonlyMap<string, OtherPool>): string[] | undefined {
  const cameFrom = new Map<string, string | undefined>([[first, undefined]]);
  for (const pool of cameFrom.keys()) {
    if (pool === name) return pathTo(pool, cameFrom);
    for (const next of pools.get(pool)?.after ?? []) if (!cameFrom.has(next)) cameFrom.set(next, pool);
  }
  return undefined;
}

function pathTo(end: string, cameFrom: ReadonlyMap<string, string | undefined>): string[] {
  const path: string[] = [];
  for (let pool: string | undefined = end; pool !== undefined; pool = cameFrom.get(pool)) path.unshift(pool);
  return path;
}

function whyNotAfter(pool: PoolFacts, name: string, pools: ReadonlyMap<string, OtherPool>): string | undefined {
  const found = pools.get(name);
  if (found?.updated === true) return undefined;
  const start = `Pool ${pool.name} goes after pool ${name}`;
  const path = circle(pool.name, name, pools);
  if (path !== undefined) {
    return `${start}, and the pools wait for each other in a circle (${[pool.name, ...path].join(' after ')}): take one out of spec.rollout.after`;
  }
  if (found === undefined)
    return `${start}, and there is none of that name: create it, or take it out of spec.rollout.after`;
  return `${start}, which is not Updated yet: it starts when that one is, see what pool ${name} waits for`;
}

/**
 * Why a pool does not start yet that goes after others, in a sentence; undefined: they are all Updated, or there are
 * none. A name of which nothing is known keeps it waiting, and so do pools that wait for each other.
 */
export function whyNotAfterPools(pool: PoolFacts, cluster: ClusterFacts | undefined): string | undefined {
  const { after = [] } = policyOf(pool);
  if (after.length === 0) return undefined;
  // How the others stand is found out as it is read.
  const pools = new Map(cluster?.others.map((other) => [other.name, other]));
  for (const name of after) {
    const why = whyNotAfter(pool, name, pools);
    if (why !== undefined) return why;
  }
  return undefined;
}

/** Why the pool may not begin because of the pools that are in an update, in a sentence; undefined: it may, or it is one. */
export function whyNotAnotherPool({ pool, members, running, cluster }: RolloutFacts): string | undefined {
  const limit = cluster?.maxPools;
  if (limit === undefined || running.size > 0 || members.some(holdsGrant)) return undefined;
  const rolling = cluster?.others.filter((other) => other.rolling).map(({ name }) => name) ?? [];
  return rolling.length < limit ? undefined : waitsForOthers(pool.name, limit, rolling);
}

/** Why a pool waits that may not begin while those are in an update. */
export function waitsForOthers(pool: string, limit: number, rolling: readonly string[]): string {
  return (
    `Pool ${pool} waits until fewer than ${countOf(limit, 'pool')} ${limit === 1 ? 'is' : 'are'} in an update, now ` +
    `${nameSome([...rolling].sort())}: raise spec.rollout.maxPools of MachineConfiguration cluster to let it begin`
  );
}
