import { failedWith } from '../../activities/kubernetes/failures.js';
import type { MachineConfigPool } from '../../machine-config/api/machine-config-pool.js';
import { CommandError } from '../command-error.js';
import { getPool, type DrydockCluster } from '../rollouts.js';

/** The control worker writes to a pool whenever it grants a slot. */
const MOST_ATTEMPTS = 5;

/** What is to be written on a pool; no annotations: it is as it shall be already. */
export interface PoolDecision<T> {
  readonly annotations?: Readonly<Record<string, string | null>>;
  readonly answer: T;
}

/**
 * Decides about a pool and writes that in the very version that it was decided on; a version that somebody else wrote
 * meanwhile is decided about again, as long as it wants the same config. Rejects with a CommandError otherwise.
 */
export async function changePool<T>(
  cluster: DrydockCluster,
  name: string,
  decide: (pool: MachineConfigPool) => Promise<PoolDecision<T>>,
): Promise<T> {
  const { kubernetes, flavour } = cluster;
  let pool = await getPool(cluster, name);
  const asked = pool.spec.configuration?.name;
  for (let attempt = 1; ; attempt++) {
    const { annotations, answer } = await decide(pool);
    if (annotations === undefined) return answer;
    const { resourceVersion } = pool.metadata;
    try {
      await kubernetes.patch(flavour.machineConfigPool, { name }, { metadata: { resourceVersion, annotations } });
      return answer;
    } catch (error) {
      if (!failedWith(error, 'Conflict') || attempt === MOST_ATTEMPTS) throw error;
    }
    pool = await getPool(cluster, name);
    const wanted = pool.spec.configuration?.name;
    if (wanted === asked) continue;
    const message = `MachineConfigPool ${name} wants ${wanted ?? 'nothing'} by now, no longer ${asked ?? 'nothing'}: look at that, then ask again`;
    throw new CommandError('refused', message);
  }
}
