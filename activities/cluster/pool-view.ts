import { DRYDOCK_ANNOTATIONS, type ApiFlavour } from '../../machine-config/api/flavour.js';
import type { MachineConfigPool } from '../../machine-config/api/machine-config-pool.js';
import { osDemands, type OsDemands } from '../../machine-config/pool/capabilities.js';
import { approvalIn, timeIn } from '../../machine-config/pool/annotations.js';
import { nodeFacts, type NodeFacts, type PoolFacts } from '../../machine-config/pool/facts.js';
import { membersOf, type PoolSelector } from '../../machine-config/pool/membership.js';
import type { CachedObjects, MachineConfigResource, NodeResource, PoolResource } from './control-dependencies.js';

export function poolSelectors(pools: readonly MachineConfigPool[]): PoolSelector[] {
  return pools.map(({ metadata, spec }) => ({ name: metadata.name, nodeSelector: spec.nodeSelector }));
}

/** What the pool wants its nodes to run; one that failed and goes back wants what all nodes last ran. */
function targetOf({ metadata, spec, status }: PoolResource): string | undefined {
  const wanted = spec.configuration?.name;
  if (wanted === undefined || wanted === '') return undefined;
  const isGivenUp = metadata.annotations?.[DRYDOCK_ANNOTATIONS.rolledBackFrom] === wanted;
  return isGivenUp ? (status?.configuration?.name ?? wanted) : wanted;
}

export function poolFacts(pool: PoolResource): PoolFacts {
  const { metadata, spec, status } = pool;
  const target = targetOf(pool);
  const annotations = Object.fromEntries(
    Object.entries(metadata.annotations ?? {}).filter(([, value]) => value !== ''),
  );
  const optional = {
    maxUnavailable: spec.maxUnavailable,
    target,
    rollout: spec.rollout,
    approval: approvalIn(annotations),
    resumedAt: timeIn(annotations[DRYDOCK_ANNOTATIONS.resume]),
    runNow: annotations[DRYDOCK_ANNOTATIONS.runNow],
    rolloutStartedAt: timeIn(status?.rollouts?.findLast((rollout) => rollout.target === target)?.startedAt),
    rollingBack: target === undefined || target === spec.configuration?.name ? undefined : true,
  };
  return {
    name: metadata.name,
    uid: metadata.uid ?? '',
    paused: spec.paused === true,
    deleting: metadata.deletionTimestamp !== undefined,
    ...Object.fromEntries(Object.entries(optional).filter(([, value]) => value !== undefined)),
  };
}

/** What the pool's target asks of the operating system of its members; undefined: not seen yet, or there is none. */
export function targetDemands(
  pool: PoolResource,
  configs: CachedObjects<MachineConfigResource>,
): OsDemands | undefined {
  const config = configs.get(targetOf(pool) ?? '');
  return config && osDemands(config.spec);
}

/**
 * Facts by the object that they are of. Objects out of a watch or an answer are never changed, a new version is a new
 * object; so thousands of Nodes are read once, and not at each turn.
 */
const KNOWN_FACTS = new WeakMap<NodeResource, { readonly flavour: ApiFlavour; readonly facts: NodeFacts }>();

/** As nodeFacts, for objects that nobody changes. */
export function factsOf(node: NodeResource, flavour: ApiFlavour): NodeFacts {
  const known = KNOWN_FACTS.get(node);
  if (known?.flavour === flavour) return known.facts;
  const facts = nodeFacts(node, flavour);
  KNOWN_FACTS.set(node, { flavour, facts });
  return facts;
}

/** The facts of a pool's members, out of all nodes and all pools. */
export function memberFacts(
  pool: string,
  nodes: readonly NodeResource[],
  pools: readonly PoolResource[],
  flavour: ApiFlavour,
): NodeFacts[] {
  const facts = nodes.map((node) => factsOf(node, flavour));
  return membersOf(pool, facts, poolSelectors(pools));
}
