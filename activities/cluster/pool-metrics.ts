import type { ApiFlavour } from '../../machine-config/api/flavour.js';
import type { PoolConditionType } from '../../machine-config/api/machine-config-pool.js';
import type { NodeFacts } from '../../machine-config/pool/facts.js';
import { poolOf } from '../../machine-config/pool/membership.js';
import type { NodeResource, PoolResource } from './control-dependencies.js';
import type { Metric, Sample } from './metrics-text.js';
import { factsOf, poolSelectors } from './pool-view.js';

export interface MeasuredPools {
  readonly pools: readonly PoolResource[];
  readonly nodes: readonly NodeResource[];
  readonly flavour: ApiFlavour;
  /** Epoch milliseconds. */
  readonly now: number;
}

type Measure = (pool: PoolResource) => Sample[];

const gauge = (name: string, help: string, samples: readonly Sample[]): Metric => ({
  name,
  help,
  type: 'gauge',
  samples,
});

const ofPool = (pool: PoolResource, value: number | undefined): Sample[] =>
  value === undefined ? [] : [{ labels: { pool: pool.metadata.name }, value }];

function conditionOf(pool: PoolResource, type: PoolConditionType) {
  return pool.status?.conditions?.find((condition) => condition.type === type);
}

/** 1 or 0, whether a condition is True; nothing before the first status. */
const flag =
  (type: PoolConditionType): Measure =>
  (pool) => {
    const condition = conditionOf(pool, type);
    return ofPool(pool, condition && Number(condition.status === 'True'));
  };

function waiting(pool: PoolResource): Sample[] {
  const condition = conditionOf(pool, 'Waiting');
  if (condition?.status !== 'True') return [];
  return [{ labels: { pool: pool.metadata.name, code: condition.reason ?? '' }, value: 1 }];
}

function rolloutSeconds(pool: PoolResource, now: number): Sample[] {
  const last = pool.status?.rollouts?.at(-1);
  if (last === undefined) return [];
  const end = last.finishedAt === undefined ? now : Date.parse(last.finishedAt);
  return ofPool(pool, Math.max(0, Math.round((end - Date.parse(last.startedAt)) / 1000)));
}

/** By pool, its members whose drain is blocked. Most nodes are not looked at twice: no drain of theirs is. */
function blockedDrains({ pools, nodes, flavour }: MeasuredPools): Map<string, NodeFacts[]> {
  const selectors = poolSelectors(pools);
  const found = new Map<string, NodeFacts[]>(pools.map(({ metadata }) => [metadata.name, []]));
  for (const node of nodes) {
    const facts = factsOf(node, flavour);
    if (facts.drainBlocked === undefined) continue;
    const membership = poolOf(facts, selectors);
    if (membership.kind === 'pool') found.get(membership.pool)?.push(facts);
  }
  return found;
}

/** What the pools of the cluster show, for Prometheus. Names and labels are documented in docs/operating.md. */
export function poolMetrics(measured: MeasuredPools): Metric[] {
  const { pools, now } = measured;
  const each = (name: string, help: string, measure: Measure) => gauge(name, help, pools.flatMap(measure));
  const drains = blockedDrains(measured);
  const blocked = (pool: PoolResource) => drains.get(pool.metadata.name) ?? [];
  return [
    each('drydock_pool_machines', 'Nodes of the pool', (pool) => ofPool(pool, pool.status?.machineCount)),
    each('drydock_pool_machines_updated', 'Nodes that run the wanted config', (pool) =>
      ofPool(pool, pool.status?.updatedMachineCount),
    ),
    each('drydock_pool_machines_ready', 'Nodes that run the wanted config and take pods', (pool) =>
      ofPool(pool, pool.status?.readyMachineCount),
    ),
    each('drydock_pool_machines_unavailable', 'Nodes that are on their way, cordoned or not ready', (pool) =>
      ofPool(pool, pool.status?.unavailableMachineCount),
    ),
    each('drydock_pool_machines_degraded', 'Nodes that could not reach or keep their config', (pool) =>
      ofPool(pool, pool.status?.degradedMachineCount),
    ),
    each('drydock_pool_paused', '1: spec.paused is set', (pool) => ofPool(pool, Number(pool.spec.paused === true))),
    each('drydock_pool_updated', '1: every node runs the wanted config and takes pods', flag('Updated')),
    each('drydock_pool_updating', '1: nodes are being brought to the wanted config', flag('Updating')),
    each('drydock_pool_degraded', '1: rendering, a node, or the rollout as a whole failed', flag('Degraded')),
    each('drydock_pool_halted', '1: the failure budget is used up and nothing starts', flag('Halted')),
    each('drydock_pool_conflict', '1: another custom pool selects nodes of it', flag('MembershipConflict')),
    each('drydock_pool_waiting', '1: nothing starts, for the reason in code', waiting),
    each('drydock_pool_rollout_seconds', 'How long the present rollout has lasted, or the last one did', (pool) =>
      rolloutSeconds(pool, now),
    ),
    each('drydock_pool_drain_blocked_nodes', 'Nodes whose drain waits for something', (pool) =>
      ofPool(pool, blocked(pool).length),
    ),
    each('drydock_pool_drain_blocked_pods', 'Pods that these drains wait for, at most ten of a node', (pool) =>
      ofPool(pool, new Set(blocked(pool).flatMap(({ drainBlocked }) => drainBlocked?.pods ?? [])).size),
    ),
  ];
}
