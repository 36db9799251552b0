import { isDeepStrictEqual } from 'node:util';
import type { MachineConfigPoolStatus } from '../../machine-config/api/machine-config-pool.js';
import { needsRollout } from '../../machine-config/pool/plan-turn.js';
import { poolStatus } from '../../machine-config/pool/status.js';
import type { PoolStep, SyncPoolResult } from '../../workflows/contract/activities.js';
import { failedWith } from '../kubernetes/failures.js';
import { refuseOtherCluster, type ControlDependencies, type PoolResource } from './control-dependencies.js';
import { syncNodeAccess } from './node-access.js';
import { memberFacts, poolFacts } from './pool-view.js';

/**
 * Brings what Kubernetes shows of a pool up to date: its status, and its members' permission to read their configs.
 * Writes nothing where nothing changed.
 *
 * @throws WrongCluster, and the client's failures; a Conflict is retried.
 */
export async function syncPool(dependencies: ControlDependencies, input: PoolStep): Promise<SyncPoolResult> {
  const { cluster, client, flavour, nodes, pools } = dependencies;
  refuseOtherCluster(cluster, input.cluster);
  const pool = await readPool(dependencies, input.pool);
  if (pool === undefined) return { exists: false, needsRollout: false, target: null };
  const facts = poolFacts(pool);
  const members = memberFacts(input.pool, nodes.list(), pools.list(), flavour);
  if (!facts.deleting) await syncNodeAccess(client, flavour, facts, members);
  await writePoolStatus(dependencies, pool, members);
  return { exists: true, needsRollout: needsRollout(facts, members), target: facts.target ?? null };
}

/** Undefined: there is no pool of that name. */
export async function readPool(
  { client, flavour }: Pick<ControlDependencies, 'client' | 'flavour'>,
  name: string,
): Promise<PoolResource | undefined> {
  try {
    return await client.get<PoolResource>(flavour.machineConfigPool, { name });
  } catch (error) {
    if (failedWith(error, 'NotFound')) return undefined;
    throw error;
  }
}

/** `renderError`: what the last render said, null when it was good; absent: as the status has it already. */
export async function writePoolStatus(
  { client, flavour, now }: ControlDependencies,
  pool: PoolResource,
  members: ReturnType<typeof memberFacts>,
  renderError?: string | null,
): Promise<void> {
  const previous: MachineConfigPoolStatus | undefined = pool.status;
  const status = poolStatus({
    pool: poolFacts(pool),
    generation: pool.metadata.generation,
    configuration: pool.spec.configuration,
    members,
    previous,
    renderError,
    now: new Date(now()).toISOString(),
  });
  if (isDeepStrictEqual(status, previous)) return;
  await client.replace(flavour.machineConfigPool, { ...pool, status }, 'status');
}
