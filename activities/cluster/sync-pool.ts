import { needsRollout } from '../../machine-config/pool/plan-turn.js';
import type { SyncPoolInput, SyncPoolResult } from '../../workflows/contract/activities.js';
import { failedWith } from '../kubernetes/failures.js';
import { syncCertificateAccessAsSeen } from './certificate-access.js';
import { refuseOtherCluster, type ControlDependencies, type PoolResource } from './control-dependencies.js';
import { syncNodeAccess } from './node-access.js';
import { writePoolStatus } from './pool-status.js';
import { memberFacts, poolFacts } from './pool-view.js';
import { noteRollBack } from './roll-back.js';

/** How often a pool that was written meanwhile is looked at anew before Temporal retries the whole. */
const MOST_ATTEMPTS = 3;

/**
 * Brings what Kubernetes shows of a pool up to date: its status, whether it goes back from a config that failed, its
 * members' permission to read their configs and certificates, and their MachineConfigNodes. Writes nothing where nothing
 * changed. After a turn, which looked at no more than the watches either, the pool is taken from there, and read only if
 * it has been written, or deleted, meanwhile.
 *
 * @throws WrongCluster, and the client's failures; a Conflict is retried.
 */
export async function syncPool(dependencies: ControlDependencies, input: SyncPoolInput): Promise<SyncPoolResult> {
  refuseOtherCluster(dependencies.cluster, input.cluster);
  const seen = input.waiting === undefined ? undefined : dependencies.pools.get(input.pool);
  for (let attempt = 1; ; attempt += 1) {
    const pool = (attempt === 1 ? seen : undefined) ?? (await readPool(dependencies, input.pool));
    if (pool === undefined) break;
    try {
      return await syncAs(pool, dependencies, input);
    } catch (error) {
      // While nodes start the pool is written several times a second.
      if (attempt === MOST_ATTEMPTS || !failedWith(error, 'Conflict', 'NotFound')) throw error;
    }
  }
  dependencies.events?.forget(input.pool);
  return { exists: false, needsRollout: false, target: null };
}

async function syncAs(
  found: PoolResource,
  dependencies: ControlDependencies,
  input: SyncPoolInput,
): Promise<SyncPoolResult> {
  const { flavour, nodes, pools, machineConfigNodes } = dependencies;
  const members = memberFacts(input.pool, nodes.list(), pools.list(), flavour);
  const pool = await noteRollBack(dependencies, found, members);
  const facts = poolFacts(pool);
  if (!facts.deleting) await syncNodeAccess(dependencies, facts, members);
  await syncCertificateAccessAsSeen(dependencies);
  machineConfigNodes?.look(input.pool, members);
  await writePoolStatus(dependencies, pool, members, { waiting: input.waiting });
  const deleting = facts.deleting ? { deleting: true } : {};
  return { exists: true, needsRollout: needsRollout(facts, members), target: facts.target ?? null, ...deleting };
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
