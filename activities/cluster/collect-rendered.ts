import { namesIn, unusedConfigs } from '../../machine-config/render/unused-configs.js';
import type { CollectRenderedResult, PoolStep } from '../../workflows/contract/activities.js';
import { failedWith } from '../kubernetes/failures.js';
import { refuseOtherCluster, type ControlDependencies, type MachineConfigResource } from './control-dependencies.js';
import { readControllerConfig } from './controller-config.js';
import { readPool } from './sync-pool.js';

/** Kept of a pool where the ControllerConfig says nothing. */
const KEPT = 10;
/** Longer than a machine takes from being given a config to being a Node. */
const MIN_AGE_MS = 24 * 60 * 60_000;
/** Of one render; the next one goes on. */
const MAX_DELETIONS = 50;

/**
 * Deletes rendered configs of a pool that nothing names any more. Only ever called while no other render of the pool
 * runs, which could bring one of them back.
 *
 * @throws WrongCluster, and the client's failures.
 */
export async function collectRendered(
  dependencies: ControlDependencies,
  input: PoolStep,
): Promise<CollectRenderedResult> {
  const { cluster, client, flavour, configs, nodes, pools, now } = dependencies;
  refuseOtherCluster(cluster, input.cluster);
  const pool = await readPool(dependencies, input.pool);
  if (pool === undefined || pool.metadata.deletionTimestamp !== undefined) return { deleted: 0 };
  const isOwn = ({ metadata }: MachineConfigResource) =>
    metadata.ownerReferences?.some(({ kind, uid }) => kind === 'MachineConfigPool' && uid === pool.metadata.uid);
  const own = configs.list().filter(isOwn);
  // Most pools have few: then nobody has to look through all Nodes.
  const keep = (await readControllerConfig(dependencies))?.spec.keepRenderedConfigs ?? KEPT;
  if (own.length <= keep) return { deleted: 0 };
  const annotations = nodes.list().map(({ metadata }) => metadata.annotations);
  const unused = unusedConfigs({
    pool: input.pool,
    configs: own.map(({ metadata }) => ({
      name: metadata.name,
      createdAt: Date.parse(metadata.creationTimestamp ?? '') || now(),
    })),
    // The pool itself as it is now, beyond what the watches show of it.
    named: namesIn([pool, pools.list(), annotations]),
    keep,
    minAgeMs: MIN_AGE_MS,
    now: now(),
  });
  let deleted = 0;
  for (const name of unused.slice(0, MAX_DELETIONS)) {
    const uid = own.find(({ metadata }) => metadata.name === name)?.metadata.uid;
    try {
      await client.delete(flavour.machineConfig, { name, uid });
      deleted += 1;
    } catch (error) {
      // Somebody was faster, or made it anew.
      if (!failedWith(error, 'NotFound', 'Conflict')) throw error;
    }
  }
  return { deleted };
}
