import { isDeepStrictEqual } from 'node:util';
import { DRYDOCK_ANNOTATIONS, type ApiFlavour } from '../../machine-config/api/flavour.js';
import { MACHINE_CONFIGURATION_NAME } from '../../machine-config/api/machine-configuration.js';
import { matchesSelector } from '../../machine-config/api/label-selector.js';
import { holdsGrant } from '../../machine-config/pool/availability.js';
import type { NodeFacts } from '../../machine-config/pool/facts.js';
import { poolOf } from '../../machine-config/pool/membership.js';
import type { PoolChanged } from '../../workflows/contract/messages.js';
import type { CacheChange } from '../kubernetes/watch-cache.js';
import type {
  MachineConfigResource,
  MachineConfigurationResource,
  NodeResource,
  PoolResource,
} from './control-dependencies.js';
import { stopReason } from './stop-switch.js';
import { factsOf, poolSelectors } from './pool-view.js';

/** A pool and what about it has changed. */
export interface Hint {
  readonly pool: string;
  /** `progress`: of a node whose update is on its way, and will tell by itself how it ended; worth a look, not at once. */
  readonly what: PoolChanged['what'] | 'progress';
}

/**
 * The pools for which a change of a Node matters: those it was and is in. Heartbeats, images and the like do not count,
 * only what pool decisions are made of.
 */
export function hintsOfNode(
  change: CacheChange<NodeResource>,
  pools: readonly PoolResource[],
  flavour: ApiFlavour,
): Hint[] {
  const seen = [change.before, change.type === 'DELETED' ? undefined : change.object].map(
    (node) => node && factsOf(node, flavour),
  );
  if (isDeepStrictEqual(withoutForeign(seen[0]), withoutForeign(seen[1]))) return [];
  const selectors = poolSelectors(pools);
  const names = new Set<string>();
  for (const node of [...seen, factsOf(change.object, flavour)]) {
    const membership = node && poolOf(node, selectors);
    if (membership?.kind === 'pool') names.add(membership.pool);
  }
  const [before, after] = seen;
  const what = isProgress(before, after) ? 'progress' : 'nodes';
  return [...names].map((pool) => ({ pool, what }));
}

/** Others annotate Nodes all the time; an order that follows one of theirs takes it up with the next turn. */
function withoutForeign(node: NodeFacts | undefined): Partial<NodeFacts> | undefined {
  return node && { ...node, annotations: {} };
}

/** It is the same node with the same labels, and has, had or gets a slot. */
function isProgress(before: NodeFacts | undefined, after: NodeFacts | undefined): boolean {
  if (before === undefined || after === undefined || before.uid !== after.uid || after.deleting) return false;
  return (holdsGrant(before) || holdsGrant(after)) && isDeepStrictEqual(before.labels, after.labels);
}

/** A changed spec is rendered and rolled out anew; our own writes of status and target only need a look at the nodes. */
export function hintsOfPool(change: CacheChange<PoolResource>): Hint[] {
  const pool = change.object.metadata.name;
  const { before, object, type } = change;
  if (before === undefined || type === 'DELETED') return [{ pool, what: 'config' }];
  const isSameSpec = isDeepStrictEqual(before.spec, object.spec) && !object.metadata.deletionTimestamp;
  if (isSameSpec && isDeepStrictEqual(orders(before), orders(object))) return [];
  const wishes = ({ spec }: PoolResource) => ({ ...spec, configuration: undefined });
  return [{ pool, what: isDeepStrictEqual(wishes(before), wishes(object)) ? 'nodes' : 'config' }];
}

/** What people, or a roll-back, say about a rollout in annotations of the pool. */
function orders({ metadata: { annotations } }: PoolResource): unknown[] {
  const { approval, resume, runNow, rolledBackFrom } = DRYDOCK_ANNOTATIONS;
  return [approval, resume, runNow, rolledBackFrom].map((key) => annotations?.[key]);
}

/**
 * The pools that select a MachineConfig by its labels of before or now. A rendered config is watched for the pool that
 * owns it, so that one that was changed or deleted is made good.
 */
export function hintsOfMachineConfig(
  change: CacheChange<MachineConfigResource>,
  pools: readonly PoolResource[],
): Hint[] {
  const { before, object, type } = change;
  if (before !== undefined && type !== 'DELETED' && isDeepStrictEqual(meaning(before), meaning(object))) return [];
  const owner = object.metadata.ownerReferences?.find(
    ({ kind, controller }) => kind === 'MachineConfigPool' && controller,
  );
  if (owner !== undefined) return before === undefined ? [] : [{ pool: owner.name, what: 'config' }];
  const labels = [before?.metadata.labels, object.metadata.labels].map((each) => each ?? {});
  return pools
    .filter(({ spec }) => labels.some((each) => matchesSelector(spec.machineConfigSelector, each)))
    .map(({ metadata }) => ({ pool: metadata.name, what: 'config' }));
}

/** What changes cost, and whether everything is stopped, is the same for all pools. Our own writes of its status do not count. */
export function hintsOfMachineConfiguration(
  change: CacheChange<MachineConfigurationResource>,
  pools: readonly PoolResource[],
): Hint[] {
  const { before, object, type } = change;
  if (object.metadata.name !== MACHINE_CONFIGURATION_NAME) return [];
  const after = type === 'DELETED' ? undefined : object;
  const isSame = before !== undefined && after !== undefined && isDeepStrictEqual(before.spec, after.spec);
  // What is stopped or let go concerns the rollouts alone: nothing is rendered anew for it.
  if (isSame && stopReason(before) === stopReason(after)) return [];
  return pools.map(({ metadata }) => ({ pool: metadata.name, what: isSame ? 'nodes' : 'config' }));
}

function meaning({ metadata, spec }: MachineConfigResource): unknown {
  return { labels: metadata.labels, annotations: metadata.annotations, spec };
}
