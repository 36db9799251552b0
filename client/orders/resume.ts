import { poolFacts } from '../../activities/cluster/pool-view.js';
import { DRYDOCK_ANNOTATIONS } from '../../machine-config/api/flavour.js';
import type { RolloutPolicy } from '../../machine-config/api/rollout-policy.js';
import type { PoolFacts } from '../../machine-config/pool/facts.js';
import { haltOf } from '../../machine-config/pool/policy/failures.js';
import { CommandError } from '../command-error.js';
import { lookAtCluster, rolloutFactsOf } from '../pool-outlook.js';
import type { DrydockCluster } from '../rollouts.js';
import { changePool } from './pool-change.js';
import { timeAfterFailures } from './time-after-failures.js';

export interface Resumed {
  readonly pool: string;
  readonly config: string;
  /** Whose failures do not count any more. */
  readonly nodes: readonly string[];
}

/** Lets a rollout go on that has halted: what failed until now does not count any more. Rejects where none has halted. */
export function resumeRollout(cluster: DrydockCluster, name: string, now: Date): Promise<Resumed> {
  return changePool(cluster, name, async (pool) => {
    const rollout = rolloutFactsOf(pool, await lookAtCluster(cluster), now);
    const halt = rollout && haltOf(rollout.pool, rollout.members, rollout.now, rollout.limit);
    if (rollout === undefined || halt === undefined)
      throw new CommandError('refused', whyNothingToResume(poolFacts(pool)));
    const failed = halt.failed.map(({ node }) => node);
    return {
      annotations: { [DRYDOCK_ANNOTATIONS.resume]: timeAfterFailures(now, failed) },
      answer: { pool: name, config: rollout.target, nodes: failed.map((node) => node.name) },
    };
  });
}

function whyNothingToResume({ name, paused, rollingBack, target }: PoolFacts): string {
  if (paused) return `pool ${name} is paused, its rollout has not halted: go on with drydock pool resume ${name}`;
  if (rollingBack)
    return `pool ${name} goes back to ${target ?? ''}, after a rollout that failed: give it another config`;
  return `the rollout of pool ${name} has not halted; drydock rollout status ${name} says what it waits for`;
}

export interface RunNow {
  readonly pool: string;
  readonly config: string;
  /** False: it was said before. */
  readonly changed: boolean;
}

/** Lets the rollout to the present config go past its windows. Rejects where the pool has none. */
export function runNow(cluster: DrydockCluster, name: string): Promise<RunNow> {
  return changePool<RunNow>(cluster, name, (pool) => {
    const facts = poolFacts(pool);
    const config = configPastWindows(facts, facts.rollout?.windows);
    if (facts.runNow === config) return Promise.resolve({ answer: { pool: name, config, changed: false } });
    const annotations = { [DRYDOCK_ANNOTATIONS.runNow]: config };
    return Promise.resolve({ annotations, answer: { pool: name, config, changed: true } });
  });
}

function configPastWindows({ name, target }: PoolFacts, windows: RolloutPolicy['windows']): string {
  const why =
    windows === undefined
      ? `pool ${name} has no windows (spec.rollout.windows), so its rollout waits for none`
      : `nothing is rendered for pool ${name} yet`;
  if (windows === undefined || target === undefined) throw new CommandError('refused', why);
  return target;
}
