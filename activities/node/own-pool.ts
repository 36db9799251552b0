import { ApplicationFailure } from '@temporalio/common';
import { drainPolicy, type DrainPolicy } from '../../machine-config/drain/drain-policy.js';
import type { PoolFacts } from '../../machine-config/pool/facts.js';
import { poolInName } from '../../machine-config/render/name.js';
import type { PoolResource } from '../cluster/control-dependencies.js';
import { poolFacts } from '../cluster/pool-view.js';
import { failedWith } from '../kubernetes/failures.js';
import type { FailureCode } from '../../workflows/contract/failure-codes.js';
import type { NodeDependencies } from './dependencies.js';

export interface OwnPolicy {
  readonly policy: DrainPolicy;
  /** Absent: the pool is gone. */
  readonly pool?: PoolFacts;
  /** Why it is the default one, where that is not for want of another. */
  readonly warning?: string;
}

/**
 * The drain policy of the pool that granted `target`, as it is now. Which pool that is stands in the name of the granted
 * config, so that no task can name one that forces. A pool that is gone leaves the policy that waits.
 * Throws ApiUnavailable: until the pool is known nothing may be evicted, since it may name pods to be waited for. An
 * API server that has just started forbids what it permits a moment later, so that counts as unavailable too.
 */
export async function ownDrainPolicy(target: string, deps: NodeDependencies): Promise<OwnPolicy> {
  const name = poolInName(target);
  const waits = (why: string): OwnPolicy => ({
    policy: drainPolicy(undefined),
    warning: `${why}: the drain waits as long as it takes, as without a policy`,
  });
  if (name === undefined) return waits(`${target} is not the name of a rendered config, so its pool is not known`);
  try {
    const pool = await deps.client.get<PoolResource>(deps.flavour.machineConfigPool, { name });
    return { policy: drainPolicy(pool.spec.rollout), pool: poolFacts(pool) };
  } catch (error) {
    if (failedWith(error, 'Forbidden')) {
      throw ApplicationFailure.create({
        message: `the drain policy of pool ${name} may not be read, so nothing is evicted (${error.message}): if this lasts, see whether the control worker keeps the roles of the nodes`,
        type: 'ApiUnavailable' satisfies FailureCode,
        cause: error,
      });
    }
    if (!failedWith(error, 'NotFound')) throw error;
    return waits(`the drain policy of pool ${name} cannot be read (${error.message})`);
  }
}
