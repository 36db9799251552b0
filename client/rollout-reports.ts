import type { MachineConfigPool } from '../machine-config/api/machine-config-pool.js';
import type { NodeUpdateStatus } from '../workflows/contract/messages.js';
import type { Engine, EngineView } from './engine.js';
import { lookAtCluster, rolloutFactsOf } from './pool-outlook.js';
import { reportPool, type PoolReport } from './pool-report.js';
import { rolloutProgress, type RolloutProgress } from './rollout-progress.js';
import { getPool, type DrydockCluster } from './rollouts.js';

/** What Kubernetes and Temporal know of a pool, side by side. */
export interface RolloutReport extends PoolReport {
  readonly engine: EngineView;
  /** Absent: nothing is rendered. */
  readonly progress?: RolloutProgress;
  /** What the running updates say; asked for single pools only. */
  readonly updates?: readonly NodeUpdateStatus[];
}

/** How many running updates are asked what they do. */
const MOST_UPDATES = 30;

export interface ReportsInput {
  readonly engine: Engine;
  /** Absent: all pools. */
  readonly name?: string | undefined;
  readonly now: Date;
}

/** All pools by name, or the one that is named; what Temporal does not tell is in `engine.problem`. */
export async function rolloutReports(cluster: DrydockCluster, input: ReportsInput): Promise<RolloutReport[]> {
  const { engine, name, now } = input;
  const named = name === undefined ? undefined : await getPool(cluster, name);
  const look = await lookAtCluster(cluster);
  const report = async (pool: MachineConfigPool): Promise<RolloutReport> => {
    const facts = rolloutFactsOf(pool, look, now);
    const progress = facts === undefined ? {} : { progress: rolloutProgress(facts, look.stop) };
    return { ...reportPool(pool), ...progress, engine: await engine.view(pool.metadata.name) };
  };
  if (named === undefined) return Promise.all(look.pools.map(report));
  const one = await report(named);
  const updates = await engine.nodeUpdates((one.engine.status?.inFlight ?? []).slice(0, MOST_UPDATES));
  return [{ ...one, updates }];
}
