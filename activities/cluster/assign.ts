import { DRYDOCK_ANNOTATIONS } from '../../machine-config/api/flavour.js';
import { holdsGrant } from '../../machine-config/pool/availability.js';
import { nodeFacts, type NodeFacts } from '../../machine-config/pool/facts.js';
import {
  annotationsOfGrant,
  decideGrant,
  type GrantedAnnotations,
  type LastGrant,
} from '../../machine-config/pool/grant.js';
import { membersOf, poolOf } from '../../machine-config/pool/membership.js';
import type { Grant } from '../../machine-config/pool/turn.js';
import type { AssignInput } from '../../workflows/contract/activities.js';
import { KINDS } from '../kubernetes/client.js';
import { failedWith } from '../kubernetes/failures.js';
import {
  refuseOtherCluster,
  type ControlDependencies,
  type NodeResource,
  type PoolResource,
} from './control-dependencies.js';
import { poolFacts, poolSelectors, targetDemands } from './pool-view.js';

/** How often a write that met a newer version is decided anew before Temporal retries the whole. */
const CONFLICT_ATTEMPTS = 5;

/**
 * Grants, keeps or takes back the slot of a node, and is the only writer of desiredConfig. It derives permission from
 * live objects, whatever the workflow believes, and writes with the resourceVersion it has read, so that what it decided
 * on is still true when it is written. Two grants of one pool cannot overlap: each first records itself on the pool, with
 * the pool's resourceVersion as the precondition.
 *
 * @throws WrongCluster, and the client's failures.
 */
export async function assign(dependencies: ControlDependencies, input: AssignInput): Promise<Grant> {
  refuseOtherCluster(dependencies.cluster, input.cluster);
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await assignOnce(dependencies, input);
    } catch (error) {
      if (attempt === CONFLICT_ATTEMPTS || !failedWith(error, 'Conflict')) throw error;
    }
  }
}

async function assignOnce(dependencies: ControlDependencies, input: AssignInput): Promise<Grant> {
  const live = await readLive(dependencies, input);
  const grant = decide(dependencies, input, live);
  // A record whose Node was never written, since somebody changed the Node in between, must not count as a slot.
  const isOver = input.intent === 'withdraw' || grant.outcome === 'refused';
  if (isOver && live.pool && lastGrantOf(live.pool)?.node === input.node) await clearGrant(dependencies, live.pool);
  if (grant.outcome !== 'refused' && live.node) await write(dependencies, live, live.node, grant);
  return grant;
}

function decide({ flavour, configs, now }: ControlDependencies, input: AssignInput, live: LiveObjects): Grant {
  const selectors = poolSelectors(live.pools);
  const facts = live.nodes.map((node) => nodeFacts(node, flavour));
  return decideGrant({
    intent: input.intent,
    pool: live.pool && poolFacts(live.pool),
    poolName: input.pool,
    node: live.node && nodeFacts(live.node, flavour),
    nodeName: input.node,
    nodeUid: input.nodeUid,
    members: membersOf(input.pool, facts, selectors),
    lastGrant: live.pool && lastGrantOf(live.pool),
    demands: live.pool && targetDemands(live.pool, configs),
    now: now(),
    poolOf: (node) => poolOf(node, selectors),
  });
}

/** Makes the Node say what was decided; a slot that is taken is recorded on the pool first. */
async function write(
  dependencies: ControlDependencies,
  { pool }: LiveObjects,
  node: NodeResource,
  grant: Exclude<Grant, { outcome: 'refused' }>,
): Promise<void> {
  const { client, flavour } = dependencies;
  const facts = nodeFacts(node, flavour);
  const wanted = annotationsOfGrant(facts, grant);
  if (wanted === undefined) return;
  if (grant.outcome === 'granted' && pool && !holdsGrant(facts)) {
    await recordGrant(dependencies, pool, facts, wanted);
  }
  const { name, resourceVersion } = node.metadata;
  const annotations = {
    [flavour.annotations.desiredConfig]: wanted.desired,
    [DRYDOCK_ANNOTATIONS.forceGranted]: wanted.forceGranted,
  };
  await client.patch(KINDS.node, { name }, { metadata: { resourceVersion, annotations } });
}

interface LiveObjects {
  readonly pool: PoolResource | undefined;
  readonly pools: readonly PoolResource[];
  readonly node: NodeResource | undefined;
  readonly nodes: readonly NodeResource[];
}

/**
 * The pool is read before the nodes: a grant that is recorded on it in between makes our own record fail. All nodes are
 * read only to take a slot; whoever holds one already needs nobody else's facts.
 */
async function readLive({ client, flavour }: ControlDependencies, input: AssignInput): Promise<LiveObjects> {
  const pools = await client.list<PoolResource>(flavour.machineConfigPool);
  const pool = pools.find(({ metadata }) => metadata.name === input.pool);
  if (input.intent === 'start') {
    const nodes = await client.list<NodeResource>(KINDS.node);
    return { pool, pools, nodes, node: nodes.find(({ metadata }) => metadata.name === input.node) };
  }
  const node = await getNode(client, input.node);
  if (node !== undefined && input.intent === 'continue' && !holdsGrant(nodeFacts(node, flavour))) {
    return { pool, pools, node, nodes: await client.list<NodeResource>(KINDS.node) };
  }
  return { pool, pools, node, nodes: node === undefined ? [] : [node] };
}

async function getNode(client: ControlDependencies['client'], name: string): Promise<NodeResource | undefined> {
  try {
    return await client.get<NodeResource>(KINDS.node, { name });
  } catch (error) {
    if (failedWith(error, 'NotFound')) return undefined;
    throw error;
  }
}

function lastGrantOf(pool: PoolResource): LastGrant | undefined {
  const text = pool.metadata.annotations?.[DRYDOCK_ANNOTATIONS.lastGrant];
  if (text === undefined) return undefined;
  try {
    const { node, at, target, force } = JSON.parse(text) as Partial<LastGrant>;
    if (typeof node !== 'string' || typeof at !== 'string') return undefined;
    return {
      node,
      at,
      ...(typeof target === 'string' ? { target } : {}),
      ...(typeof force === 'string' ? { force } : {}),
    };
  } catch {
    return undefined;
  }
}

function recordGrant(
  dependencies: ControlDependencies,
  pool: PoolResource,
  node: NodeFacts,
  { desired, forceGranted }: GrantedAnnotations,
): Promise<void> {
  const grant: LastGrant = {
    node: node.name,
    at: new Date(dependencies.now()).toISOString(),
    target: desired,
    ...(forceGranted === null ? {} : { force: forceGranted }),
  };
  return writeLastGrant(dependencies, pool, JSON.stringify(grant));
}

function clearGrant(dependencies: ControlDependencies, pool: PoolResource): Promise<void> {
  return writeLastGrant(dependencies, pool, null);
}

async function writeLastGrant({ client, flavour }: ControlDependencies, pool: PoolResource, value: string | null) {
  await client.patch(
    flavour.machineConfigPool,
    { name: pool.metadata.name },
    {
      metadata: {
        resourceVersion: pool.metadata.resourceVersion,
        annotations: { [DRYDOCK_ANNOTATIONS.lastGrant]: value },
      },
    },
  );
}
