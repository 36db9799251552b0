import type { ApiFlavour } from '../../machine-config/api/flavour.js';
import type { MachineConfigPool } from '../../machine-config/api/machine-config-pool.js';
import { osDemands, type OsDemands } from '../../machine-config/pool/capabilities.js';
import { nodeFacts, type NodeFacts, type PoolFacts } from '../../machine-config/pool/facts.js';
import { membersOf, type PoolSelector } from '../../machine-config/pool/membership.js';
import type { CachedObjects, MachineConfigResource, NodeResource, PoolResource } from './control-dependencies.js';

export function poolSelectors(pools: readonly MachineConfigPool[]): PoolSelector[] {
  return pools.map(({ metadata, spec }) => ({ name: metadata.name, nodeSelector: spec.nodeSelector }));
}

export function poolFacts(pool: PoolResource): PoolFacts {
  const { metadata, spec } = pool;
  const target = spec.configuration?.name;
  return {
    name: metadata.name,
    uid: metadata.uid ?? '',
    paused: spec.paused === true,
    deleting: metadata.deletionTimestamp !== undefined,
    ...(spec.maxUnavailable === undefined ? {} : { maxUnavailable: spec.maxUnavailable }),
    ...(target === undefined || target === '' ? {} : { target }),
  };
}

/** What the pool's target asks of the operating system of its members; undefined: not seen yet, or there is none. */
export function targetDemands(
  pool: PoolResource,
  configs: CachedObjects<MachineConfigResource>,
): OsDemands | undefined {
  const config = configs.get(pool.spec.configuration?.name ?? '');
  return config && osDemands(config.spec);
}

/** The facts of a pool's members, out of all nodes and all pools. */
export function memberFacts(
  pool: string,
  nodes: readonly NodeResource[],
  pools: readonly PoolResource[],
  flavour: ApiFlavour,
): NodeFacts[] {
  const facts = nodes.map((node) => nodeFacts(node, flavour));
  return membersOf(pool, facts, poolSelectors(pools));
}
