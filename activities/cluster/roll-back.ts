import { DRYDOCK_ANNOTATIONS } from '../../machine-config/api/flavour.js';
import type { NodeFacts } from '../../machine-config/pool/facts.js';
import { rollbackFrom } from '../../machine-config/pool/policy/failures.js';
import type { ControlDependencies, PoolResource } from './control-dependencies.js';
import { poolFacts } from './pool-view.js';

/**
 * Notes on a pool whose rollout has failed, and that asks for it, from which config it goes back; from then on its
 * target is the last good one. With another config in its spec the note is over. Returns the pool as it is then.
 *
 * @throws Conflict where the pool was written meanwhile, and the client's failures.
 */
export async function noteRollBack(
  { client, flavour, now }: Pick<ControlDependencies, 'client' | 'flavour' | 'now'>,
  pool: PoolResource,
  members: readonly NodeFacts[],
): Promise<PoolResource> {
  const noted = pool.metadata.annotations?.[DRYDOCK_ANNOTATIONS.rolledBackFrom];
  const isOver = noted !== undefined && noted !== pool.spec.configuration?.name;
  const failed = isOver ? null : rollbackFrom(poolFacts(pool), members, pool.status ?? {}, now());
  if (failed === undefined || pool.metadata.deletionTimestamp !== undefined) return pool;
  const { name, resourceVersion } = pool.metadata;
  const metadata = { resourceVersion, annotations: { [DRYDOCK_ANNOTATIONS.rolledBackFrom]: failed } };
  return client.patch<PoolResource>(flavour.machineConfigPool, { name }, { metadata });
}
