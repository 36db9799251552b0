import { isDeepStrictEqual } from 'node:util';
import type { MachineConfigPoolStatus } from '../../machine-config/api/machine-config-pool.js';
import { conflictsOf, type MembershipConflict } from '../../machine-config/pool/conflicts.js';
import type { NodeFacts } from '../../machine-config/pool/facts.js';
import { poolStatus, type PoolStatusFacts } from '../../machine-config/pool/status.js';
import type { ControlDependencies, PoolResource } from './control-dependencies.js';
import { factsOf, poolFacts, poolSelectors } from './pool-view.js';

/** What is told besides what the members show; see PoolStatusFacts. */
export type StatusNews = Pick<PoolStatusFacts, 'renderError' | 'waiting'>;

/**
 * Writes the status of a pool, if it has changed, and tells what has happened by that. Who else writes it at the same
 * time gets a Conflict, so that each change is told by one.
 *
 * @throws the client's failures.
 */
export async function writePoolStatus(
  dependencies: ControlDependencies,
  pool: PoolResource,
  members: readonly NodeFacts[],
  news: StatusNews,
): Promise<void> {
  const { client, flavour, now, events } = dependencies;
  const previous: MachineConfigPoolStatus | undefined = pool.status;
  const conflicts = conflictsWith(dependencies, pool);
  const status = poolStatus({
    pool: poolFacts(pool),
    generation: pool.metadata.generation,
    configuration: pool.spec.configuration,
    members,
    conflicts: conflicts.map(({ sentence }) => sentence),
    previous,
    ...news,
    now: new Date(now()).toISOString(),
  });
  if (!isDeepStrictEqual(status, previous)) {
    await client.replace(flavour.machineConfigPool, { ...pool, status }, 'status');
    events?.written(pool, status);
  }
  events?.looked(pool, status);
  events?.conflicts(pool, conflicts);
}

function conflictsWith({ nodes, pools, flavour }: ControlDependencies, pool: PoolResource): MembershipConflict[] {
  const facts = nodes.list().map((node) => factsOf(node, flavour));
  return conflictsOf(pool.metadata.name, facts, poolSelectors(pools.list()));
}
