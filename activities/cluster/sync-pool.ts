import { needsRollout } from '../../machine-config/pool/plan-turn.js';
import type { SyncPoolInput, SyncPoolResult } from '../../workflows/contract/activities.js';
import { failedWith } from '../kubernetes/failures.js';
import { refuseOtherCluster, type ControlDependencies, type PoolResource } from './control-dependencies.js';
import { syncNodeAccess } from './node-access.js';
import { writePoolStatus } from './pool-status.js';
import { memberFacts, poolFacts } from './pool-view.js';
import { noteRollBack } from './roll-back.js';

/**
 * Brings what Kubernetes shows of a pool up to date: its status, whether it goes back from a config that failed, its
 * members' permission to read their configs, and their MachineConfigNodes. Writes nothing where nothing changed.
 *
 * @throws WrongCluster, and the client's failures; a Conflict is retried.
 */
export async function syncPool(dependencies: ControlDependencies, input: SyncPoolInput): Promise<SyncPoolResult> {
  const { cluster, flavour, nodes, pools, events, machineConfigNodes } = dependencies;
  refuseOtherCluster(cluster, input.cluster);
  const read = await readPool(dependencies, input.pool);
  if (read === undefined) {
    events?.forget(input.pool);
    return { exists: false, needsRollout: false, target: null };
  }
  const members = memberFacts(input.pool, nodes.list(), pools.list(), flavour);
  const pool = await noteRollBack(dependencies, read, members);
  const facts = poolFacts(pool);
  if (!facts.deleting) await syncNodeAccess(dependencies, facts, members);
  machineConfigNodes?.look(input.pool, members);
  await writePoolStatus(dependencies, pool, members, { waiting: input.waiting });
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
