import { KINDS, type KubernetesClient } from '../activities/kubernetes/client.js';
import { failedWith } from '../activities/kubernetes/failures.js';
import type { ApiFlavour } from '../machine-config/api/flavour.js';
import type { MachineConfigPool } from '../machine-config/api/machine-config-pool.js';
import { managePoolId } from '../workflows/contract/ids.js';
import { DEFAULT_TUNING, type PoolTuning } from '../workflows/contract/inputs.js';
import { CommandError } from './command-error.js';
import type { Engine } from './engine.js';
import { reportPool, type PoolReport } from './pool-report.js';

/** A cluster with Drydock, for commands and scripts. */
export interface DrydockCluster {
  readonly kubernetes: KubernetesClient;
  readonly flavour: ApiFlavour;
}

export interface StartedRollout {
  readonly pool: string;
  readonly workflowId: string;
  /** What the engine answered. */
  readonly answer: string;
  /** True: it is rendered, and nothing rolls out until the pool is resumed. */
  readonly paused: boolean;
}

/** Reads a pool; rejects with a CommandError that names the pools there are. */
export async function getPool({ kubernetes, flavour }: DrydockCluster, name: string): Promise<MachineConfigPool> {
  try {
    return await kubernetes.get<MachineConfigPool>(flavour.machineConfigPool, { name });
  } catch (error) {
    if (!failedWith(error, 'NotFound')) throw error;
    throw await noSuchPool({ kubernetes, flavour }, name, error);
  }
}

async function noSuchPool(cluster: DrydockCluster, name: string, cause: unknown): Promise<CommandError> {
  const { kubernetes, flavour } = cluster;
  const { plural, group } = flavour.machineConfigPool;
  try {
    const names = (await kubernetes.list(flavour.machineConfigPool)).map(({ metadata }) => metadata.name).sort();
    const there = names.length === 0 ? 'there is none; run drydock install' : `there are ${names.join(', ')}`;
    return new CommandError('refused', `MachineConfigPool ${name} not found: ${there}`, { cause });
  } catch (error) {
    if (!failedWith(error, 'NotFound')) throw error;
    const message = `the cluster does not know ${plural}.${group}: run drydock install, or set --flavour`;
    return new CommandError('refused', message, { cause });
  }
}

/**
 * Asks the engine to render the pool and to roll out what is new, and tells its yes. A hint: stop, pause, windows and
 * maxUnavailable hold as always. Rejects with a CommandError when the pool is not there, or the engine says no or nothing.
 */
export async function startRollout(
  cluster: DrydockCluster,
  engine: Engine,
  name: string,
  tuning: PoolTuning = DEFAULT_TUNING,
): Promise<StartedRollout> {
  const pool = await getPool(cluster, name);
  const { metadata } = await cluster.kubernetes.get(KINDS.namespace, { name: 'kube-system' });
  const { sentence } = await engine.startPool({ cluster: metadata.uid ?? '', pool: name, tuning });
  return { pool: name, workflowId: managePoolId(name), answer: sentence, paused: pool.spec.paused === true };
}

/** Sets spec.paused. Paused, nothing new starts; running node updates finish. Doing it twice changes nothing. */
export async function setPaused(cluster: DrydockCluster, name: string, paused: boolean): Promise<PoolReport> {
  const { kubernetes, flavour } = cluster;
  try {
    const patch = { spec: { paused } };
    return reportPool(await kubernetes.patch<MachineConfigPool>(flavour.machineConfigPool, { name }, patch));
  } catch (error) {
    if (!failedWith(error, 'NotFound')) throw error;
    throw await noSuchPool(cluster, name, error);
  }
}

/** All pools, by name. Rejects with a CommandError where the API is not installed. */
export async function listPools({ kubernetes, flavour }: DrydockCluster): Promise<MachineConfigPool[]> {
  try {
    const pools = await kubernetes.list<MachineConfigPool>(flavour.machineConfigPool);
    return pools.sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1));
  } catch (error) {
    if (!failedWith(error, 'NotFound')) throw error;
    const { plural, group } = flavour.machineConfigPool;
    const message = `the cluster does not know ${plural}.${group}: run drydock install, or set --flavour`;
    throw new CommandError('refused', message, { cause: error });
  }
}
