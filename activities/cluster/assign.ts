import { DRYDOCK_ANNOTATIONS } from '../../machine-config/api/flavour.js';
import { currentConfig, holdsGrant } from '../../machine-config/pool/availability.js';
import {
  formatGrantRecord,
  recordGrant,
  undecided,
  withPending,
  type GrantRecord,
} from '../../machine-config/pool/grant-record.js';
import { isControlPlaneNode } from '../../machine-config/pool/control-plane.js';
import type { NodeFacts } from '../../machine-config/pool/facts.js';
import {
  annotationsOfGrant,
  decideGrant,
  type GrantedAnnotations,
  type GrantFacts,
} from '../../machine-config/pool/grant.js';
import { membersOf, poolOf } from '../../machine-config/pool/membership.js';
import type { Grant, RefusalCode } from '../../machine-config/pool/turn.js';
import type { AssignInput } from '../../workflows/contract/activities.js';
import { KINDS } from '../kubernetes/client.js';
import { failedWith } from '../kubernetes/failures.js';
import {
  refuseOtherCluster,
  type ControlDependencies,
  type NodeResource,
  type PoolResource,
} from './control-dependencies.js';
import { ClusterView } from './cluster-view.js';
import { obstacleOfControlPlane } from './control-plane.js';
import { GrantLooks, type Look } from './grant-looks.js';
import { InBatches } from './in-batches.js';
import { InOrder } from './in-order.js';
import { PoolLimit } from './pool-limit.js';
import { factsOf, poolFacts, poolSelectors, targetDemands } from './pool-view.js';
import { withoutWaitingTaint } from './waiting-taints.js';

/** How often a write that met a newer version is decided anew before Temporal retries the whole. */
const CONFLICT_ATTEMPTS = 5;

/** Refusals for what other Nodes and pools are, which a watch may show too late. */
const BECAUSE_OF_OTHERS: ReadonlySet<RefusalCode> = new Set<RefusalCode>([
  'NoSlot',
  'NotMember',
  'Halted',
  'StageWaits',
  'ZoneFull',
  'PaceFull',
]);

/** See `assign`. What it has written and the watches do not show yet is known as long as the object lives. */
export class Assignments {
  readonly #dependencies: ControlDependencies;
  readonly #looks: GrantLooks;
  readonly #cluster: ClusterView;
  readonly #poolLimit: PoolLimit;
  readonly #perPool = new InOrder();
  readonly #starts = new InBatches(this.#perPool, (inputs: readonly AssignInput[]) => this.#together(inputs));

  constructor(dependencies: ControlDependencies) {
    this.#dependencies = dependencies;
    this.#looks = new GrantLooks(dependencies);
    this.#cluster = new ClusterView(dependencies);
    this.#poolLimit = new PoolLimit(dependencies, this.#cluster, this.#looks);
  }

  async assign(input: AssignInput): Promise<Grant> {
    refuseOtherCluster(this.#dependencies.cluster, input.cluster);
    const cheap = await this.#settles(() => this.#cheaply(input));
    if (cheap !== undefined) return cheap;
    for (let attempt = 1; ; attempt += 1) {
      // One after the other, so that a hundred updates that start at once do not make each other's records fail.
      const past = () =>
        input.intent === 'start' ? this.#perPool.run(input.pool, () => this.#past(input)) : this.#past(input);
      const grant = await this.#settles(past, attempt === CONFLICT_ATTEMPTS);
      if (grant !== undefined) return grant;
    }
  }

  /** What is decided and recorded, and then written; undefined: it has to be decided anew. */
  async #settles(decide: () => Promise<Decision | undefined>, isLast = false) {
    try {
      const decision = await decide();
      if (decision?.node !== undefined) await this.#write(decision.node, decision.annotations);
      return decision?.grant;
    } catch (error) {
      if (isLast || !failedWith(error, 'Conflict')) throw error;
      return undefined;
    }
  }

  /** Over the watches. A yes holds, since its writes name the versions it rests on; a no is for those who look closer. */
  async #cheaply(input: AssignInput): Promise<Decision | undefined> {
    if (input.intent === 'withdraw') return undefined;
    if (input.intent === 'start') return this.#starts.run(input.pool, input);
    const look = await this.#looks.held(input);
    if (!isHeld(this.#dependencies, look)) return undefined;
    const grant = await this.#decide(input, look);
    return grant.outcome === 'granted' ? this.#record(input, look, grant) : undefined;
  }

  /** What starts of one pool, asked for together, get over the watches; once more where somebody else wrote the pool. */
  async #together(inputs: readonly AssignInput[]): Promise<(Decision | undefined)[]> {
    try {
      return await this.#recordTogether(inputs);
    } catch (error) {
      const [first] = inputs;
      if (first === undefined || !failedWith(error, 'Conflict')) throw error;
      await this.#looks.lookAgain(first.pool);
      return this.#recordTogether(inputs);
    }
  }

  /** Each is decided over the grants of those before it, and all are recorded in one write of the pool. */
  async #recordTogether(inputs: readonly AssignInput[]): Promise<(Decision | undefined)[]> {
    const look = inputs[0] && (await this.#looks.cached(inputs[0]));
    if (look?.pool === undefined) return inputs.map(() => undefined);
    let { record } = look;
    const plans: (Plan | undefined)[] = [];
    for (const input of inputs) {
      const plan = await this.#planAmong(input, { ...look, record, node: this.#looks.node(input.node) }, inputs.length);
      plans.push(plan);
      record = plan?.record ?? record;
    }
    if (record !== look.record) await this.#writeRecord(look.pool, record);
    return Promise.all(plans.map(async (plan) => plan && this.#beside(plan)));
  }

  /** A yes over the watches; undefined: it is for those who look closer. `among`: how many are decided over one look. */
  async #planAmong(input: AssignInput, look: Look, among: number): Promise<Plan | undefined> {
    const { node, nodes } = look;
    // The next ones count a grant by the version that it is made on, so the look must have come as far as that.
    const isInView = nodes?.nodes.get(input.node)?.resourceVersion === node?.metadata.resourceVersion;
    if (among > 1 && !isInView) return undefined;
    const grant = await this.#decide(input, look);
    const plan = grant.outcome === 'granted' ? this.#plan(input, look, grant) : undefined;
    // Where nothing is to be written, nothing shows that the slot has not been given back since the watch saw it.
    return plan?.decision.node === undefined ? undefined : plan;
  }

  /** Past the watches: the Node and its pool, and all others where they are what says no. */
  async #past(input: AssignInput): Promise<Decision> {
    const { flavour } = this.#dependencies;
    const othersMatter = (node: NodeResource) =>
      input.intent === 'start' || (input.intent === 'continue' && !holdsGrant(factsOf(node, flavour)));
    const own = await this.#looks.own(input, othersMatter);
    const first = own && (await this.#decide(input, own));
    if (own !== undefined && first !== undefined && !(first.outcome === 'refused' && BECAUSE_OF_OTHERS.has(first.code)))
      return this.#record(input, own, first);
    const live = await this.#looks.live(input);
    return this.#record(input, live, await this.#decide(input, live));
  }

  async #decide(input: AssignInput, look: Look): Promise<Grant> {
    const { flavour, configs, now } = this.#dependencies;
    const { pool, pools, node, nodes, record } = look;
    const selectors = poolSelectors(pools);
    const facts = node && factsOf(node, flavour);
    const all = nodes === undefined ? [] : [...nodes.nodes.values()].map((viewed) => viewed.facts);
    if (nodes === undefined && facts !== undefined) all.push(facts);
    const members = membersOf(input.pool, all, selectors);
    return decideGrant({
      ...(await this.#surroundings(input, facts)),
      intent: input.intent,
      pool: pool && poolFacts(pool),
      poolName: input.pool,
      node: facts,
      nodeName: input.node,
      nodeUid: input.nodeUid,
      members: nodes === undefined ? members : withPending(members, undecided(record, nodes, now()), input.node),
      demands: pool && targetDemands(pool, configs),
      now: now(),
      poolOf: (one) => poolOf(one, selectors),
    });
  }

  /** What holds for all pools, and what the rest of the control plane says to a start; of no matter to who gives back. */
  async #surroundings(
    { intent, pool, node }: AssignInput,
    facts: NodeFacts | undefined,
  ): Promise<Pick<GrantFacts, 'cluster' | 'controlPlane'>> {
    if (intent === 'withdraw') return {};
    const cluster = await this.#cluster.factsFor(pool);
    if (facts === undefined || holdsGrant(facts) || !isControlPlaneNode(facts)) return { cluster };
    const obstacle = await obstacleOfControlPlane(this.#dependencies, node);
    return { cluster, ...(obstacle === undefined ? {} : { controlPlane: { obstacle } }) };
  }

  /** What the Node is to say afterwards, and the record of a slot that is taken. */
  #plan(input: AssignInput, look: Look, grant: Grant): Plan {
    const { node, nodes, pool: found, record } = look;
    const { pool } = input;
    if (node === undefined) return { pool, decision: { grant } };
    const facts = factsOf(node, this.#dependencies.flavour);
    if (grant.outcome === 'refused') return { pool, decision: { grant, ...this.#expiring(input, look) } };
    const annotations = annotationsOfGrant(facts, grant, { onlySchedulable: this.#cluster.onlySchedulable() });
    if (annotations === undefined) return { pool, decision: { grant, ...this.#expiring(input, look) } };
    const decision = { grant, node, annotations };
    if (grant.outcome !== 'granted' || found === undefined || nodes === undefined || holdsGrant(facts)) {
      return { pool, decision };
    }
    const { desired: target, forceGranted } = annotations;
    const pending = {
      node: facts.name,
      at: new Date(this.#dependencies.now()).toISOString(),
      target,
      on: node.metadata.resourceVersion ?? '',
      ...(forceGranted === null ? {} : { force: forceGranted }),
    };
    return { pool, decision, record: recordGrant(record, nodes, pending, this.#dependencies.now()) };
  }

  /** Records a slot that is taken on the pool, and says what the Node is to say afterwards. */
  async #record(input: AssignInput, look: Look, grant: Grant): Promise<Decision> {
    const plan = this.#plan(input, look, grant);
    if (plan.record === undefined || look.pool === undefined) return plan.decision;
    await this.#writeRecord(look.pool, plan.record);
    return this.#beside(plan);
  }

  /** What was decided, unless it takes a slot, which is recorded by now, and other pools do not let this one begin. */
  async #beside({ decision, record, pool }: Plan): Promise<Decision> {
    const { node } = decision;
    if (node === undefined || record === undefined) return decision;
    const sentence = await this.#poolLimit.whyNot({ pool, node: node.metadata.name });
    if (sentence === undefined) return decision;
    const annotations = expiry(factsOf(node, this.#dependencies.flavour));
    return { grant: { outcome: 'refused', code: 'PoolLimit', sentence }, node, annotations };
  }

  /**
   * A slot that was recorded for this Node, and not written to it, is not wanted any more. Whoever recorded it may still
   * be about to write: the Node is changed, so that this fails and everybody sees that the slot is free.
   */
  #expiring({ intent }: AssignInput, { node, record }: Look): Omit<Decision, 'grant'> {
    if (node === undefined || intent === 'continue') return {};
    const { name, resourceVersion } = node.metadata;
    if (!record.pending.some((pending) => pending.node === name && pending.on === resourceVersion)) return {};
    return { node, annotations: expiry(factsOf(node, this.#dependencies.flavour)) };
  }

  async #writeRecord(pool: PoolResource, record: GrantRecord): Promise<void> {
    const { client, flavour } = this.#dependencies;
    const { name, resourceVersion } = pool.metadata;
    const annotations = { [DRYDOCK_ANNOTATIONS.lastGrant]: formatGrantRecord(record) };
    const patch = { metadata: { resourceVersion, annotations } };
    this.#looks.poolWritten(await client.patch<PoolResource>(flavour.machineConfigPool, { name }, patch));
  }

  async #write(node: NodeResource, { desired, forceGranted, noDrain }: WrittenAnnotations): Promise<void> {
    const { client, flavour } = this.#dependencies;
    const { name, resourceVersion } = node.metadata;
    const annotations = {
      [flavour.annotations.desiredConfig]: desired,
      [DRYDOCK_ANNOTATIONS.forceGranted]: forceGranted,
      ...(noDrain === undefined ? {} : { [DRYDOCK_ANNOTATIONS.noDrain]: noDrain }),
    };
    // What starts waits no more, and is cordoned next if its pods have to move: one write instead of two.
    const spec = desired === null ? undefined : withoutWaitingTaint(node);
    const patch = { metadata: { resourceVersion, annotations }, ...(spec === undefined ? {} : { spec }) };
    this.#looks.nodeWritten(await client.patch<NodeResource>(KINDS.node, { name }, patch));
  }
}

type WrittenAnnotations = Omit<GrantedAnnotations, 'desired'> & { readonly desired: string | null };

/** A grant, and what is to be written on the Node in the version that it was decided on; nothing if no Node is named. */
type Decision = { readonly grant: Grant } & (
  | { readonly node: NodeResource; readonly annotations: WrittenAnnotations }
  | { readonly node?: never; readonly annotations?: never }
);

/** Changes a Node that is granted nothing, and leaves it so: no desiredConfig says that, and one that is the current one. */
function expiry(facts: NodeFacts): WrittenAnnotations {
  return { desired: facts.desired === undefined ? currentConfig(facts) : null, forceGranted: null };
}

interface Plan {
  readonly pool: string;
  readonly decision: Decision;
  /** The record of the pool with the slot that the decision takes, to be written before; absent: it takes none. */
  readonly record?: GrantRecord;
}

function isHeld({ flavour }: ControlDependencies, { node }: Look): boolean {
  return node !== undefined && holdsGrant(factsOf(node, flavour));
}

/**
 * Grants, keeps or takes back the slot of a node, and is the only writer of desiredConfig. It derives permission from
 * Kubernetes, whatever the workflow believes, and writes with the resourceVersion it has decided on, so that this is
 * still true when it is written. Two grants of one pool cannot overlap: each first records itself on the pool, with the
 * pool's resourceVersion as the precondition. Other nodes are counted as the watch shows them, if it has come as far as
 * that record asks for, else as the API server lists them; see docs/decisions/0012.
 *
 * @throws WrongCluster, and the client's failures.
 */
export function assign(dependencies: ControlDependencies, input: AssignInput): Promise<Grant> {
  return new Assignments(dependencies).assign(input);
}
