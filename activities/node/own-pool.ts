import type { MachineConfigPoolSpec } from '../../machine-config/api/machine-config-pool.js';
import { drainPolicy, type DrainPolicy } from '../../machine-config/drain/drain-policy.js';
import { poolInName } from '../../machine-config/render/name.js';
import type { KubernetesObject } from '../kubernetes/client.js';
import { failedWith } from '../kubernetes/failures.js';
import type { NodeDependencies } from './dependencies.js';

type Pool = KubernetesObject & { spec?: MachineConfigPoolSpec };

export interface OwnPolicy {
  readonly policy: DrainPolicy;
  /** Why it is the default one, where that is not for want of another. */
  readonly warning?: string;
}

/**
 * The drain policy of the pool that granted `target`, as it is now. Which pool that is stands in the name of the granted
 * config, so that no task can name one that forces. A pool that is gone, or may not be read, leaves the policy that waits.
 * Throws ApiUnavailable: until the pool is known nothing may be evicted, since it may name pods to be waited for.
 */
export async function ownDrainPolicy(target: string, deps: NodeDependencies): Promise<OwnPolicy> {
  const name = poolInName(target);
  const waits = (why: string): OwnPolicy => ({
    policy: drainPolicy(undefined),
    warning: `${why}: the drain waits as long as it takes, as without a policy`,
  });
  if (name === undefined) return waits(`${target} is not the name of a rendered config, so its pool is not known`);
  try {
    const pool = await deps.client.get<Pool>(deps.flavour.machineConfigPool, { name });
    return { policy: drainPolicy(pool.spec?.rollout) };
  } catch (error) {
    if (!failedWith(error, 'Forbidden', 'NotFound')) throw error;
    return waits(`the drain policy of pool ${name} cannot be read (${error.message})`);
  }
}
