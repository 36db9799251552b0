import pMap from 'p-map';
import { DRYDOCK_ANNOTATIONS } from '../../machine-config/api/flavour.js';
import { hasOurCordon, isApplying } from '../../machine-config/pool/availability.js';
import { isControlPlaneNode } from '../../machine-config/pool/control-plane.js';
import type { NodeFacts, PoolFacts } from '../../machine-config/pool/facts.js';
import { planTurn as decide, type PlanTurnFacts } from '../../machine-config/pool/plan-turn.js';
import { gatesInQuestion } from '../../machine-config/pool/policy/gates.js';
import type { Turn } from '../../machine-config/pool/turn.js';
import type { PlanTurnInput } from '../../workflows/contract/activities.js';
import { KINDS } from '../kubernetes/client.js';
import { ClusterView } from './cluster-view.js';
import { refuseOtherCluster, type ControlDependencies } from './control-dependencies.js';
import { obstacleOfControlPlane } from './control-plane.js';
import { Gates } from './gates.js';
import { factsOf, memberFacts, poolFacts, targetDemands } from './pool-view.js';
import { UpdateNews } from './update-news.js';
import { keepTaints } from './waiting-taints.js';

/** Pods of the control plane are not watched: a start that waits for them is tried again after this time. */
const CONTROL_PLANE_AGAIN_MILLISECONDS = 15_000;
const WRITES_AT_ONCE = 10;

/** See `planTurn`. What gates have answered lately is known as long as the object lives. */
export class TurnPlanner {
  readonly #dependencies: ControlDependencies;
  readonly #cluster: ClusterView;
  readonly #gates: Gates;
  readonly #news = new UpdateNews();

  constructor(dependencies: ControlDependencies, gates = new Gates(dependencies)) {
    this.#dependencies = dependencies;
    this.#cluster = new ClusterView(dependencies);
    this.#gates = gates;
  }

  async planTurn(input: PlanTurnInput): Promise<Turn> {
    refuseOtherCluster(this.#dependencies.cluster, input.cluster);
    const facts = await this.#facts(input);
    const gateAnswers = await this.#gates.answer(gatesInQuestion(facts), facts.members);
    const turn = await this.#besideControlPlane({ ...facts, gateAnswers });
    const { pool, members, inFlight: running } = facts;
    await this.#markPassed(pool, members, turn.passed ?? []);
    await keepTaints(this.#dependencies, { pool, members, running, turn });
    const told = await this.#news.of(facts, (node) => this.#obstacle(node));
    return told.length === 0 ? turn : { ...turn, reconsider: [...new Set([...turn.reconsider, ...told])] };
  }

  async #facts(input: PlanTurnInput): Promise<PlanTurnFacts> {
    const { flavour, nodes, pools, configs, ownNode } = this.#dependencies;
    const cluster = await this.#cluster.factsFor(input.pool);
    const pool = pools.get(input.pool);
    const gone = Object.entries(input.inFlight)
      .filter(([node, uid]) => nodes.get(node)?.metadata.uid !== uid)
      .map(([node]) => node);
    const running = inFlightFacts(this.#dependencies, input);
    const members = pool === undefined ? running : memberFacts(input.pool, nodes.list(), pools.list(), flavour);
    const names = new Set(members.map(({ name }) => name));
    return {
      pool: pool === undefined ? deletedPool(input.pool) : poolFacts(pool),
      demands: pool && targetDemands(pool, configs),
      members,
      strayed: running.filter(({ name, uid }) => !names.has(name) && input.inFlight[name] === uid),
      inFlight: Object.keys(input.inFlight),
      gone,
      resting: input.resting,
      now: input.now,
      cluster,
      controlPlane: ownNode === undefined ? {} : { last: ownNode },
    };
  }

  /** Decides, and once more if what would start is of the control plane and the rest of that cannot spare it. */
  async #besideControlPlane(facts: PlanTurnFacts): Promise<Turn> {
    const turn = decide(facts);
    const members = new Map(facts.members.map((node) => [node.name, node]));
    const starts = turn.start.flatMap(({ node }) => members.get(node) ?? []);
    // One that is out of service already is brought to its end: only that brings it back.
    const begins = starts.find((node) => isControlPlaneNode(node) && !isApplying(node) && !hasOurCordon(node));
    const obstacle = begins && (await this.#obstacle(begins));
    if (obstacle === undefined) return turn;
    const second = decide({ ...facts, controlPlane: { ...facts.controlPlane, obstacle } });
    if (second.waiting?.code !== 'ControlPlane') return second;
    return { ...second, waiting: { ...second.waiting, until: facts.now + CONTROL_PLANE_AGAIN_MILLISECONDS } };
  }

  async #obstacle({ name }: NodeFacts): Promise<string | undefined> {
    try {
      return await obstacleOfControlPlane(this.#dependencies, name);
    } catch (error) {
      return `${name} is part of the control plane, which could not be asked: ${error instanceof Error ? error.message : String(error)}`;
    }
  }

  /** Says on the nodes that the gates after them are passed, so that `assign` sees their slots as free too. */
  async #markPassed({ target }: PoolFacts, members: readonly NodeFacts[], passed: readonly string[]): Promise<void> {
    const names = new Set(passed);
    const annotations = { [DRYDOCK_ANNOTATIONS.gatesPassed]: target };
    await pMap(
      members.filter(({ name }) => names.has(name)),
      // One that fails is found not to be marked by the next turn.
      ({ name, uid }) =>
        this.#dependencies.client
          .patch(KINDS.node, { name }, { metadata: { uid, annotations } })
          .catch(() => undefined),
      { concurrency: WRITES_AT_ONCE },
    );
  }
}

/**
 * Decides what may happen next in a pool, over the watch cache. A cache that lags never widens the throttle: what runs
 * is counted whether or not the cache shows it, and `assign` decides again. Gates are asked where they decide about a
 * start; those that cannot be asked mean wait.
 *
 * @throws WrongCluster, and the client's failures where whether everything is stopped cannot be read.
 */
export function planTurn(dependencies: ControlDependencies, input: PlanTurnInput): Promise<Turn> {
  return new TurnPlanner(dependencies).planTurn(input);
}

/** A pool that is gone wants nothing; its running updates are to give back what they have not begun. */
function deletedPool(name: string): PoolFacts {
  return { name, uid: '', paused: false, deleting: true };
}

function inFlightFacts({ nodes, flavour }: ControlDependencies, { inFlight }: PlanTurnInput) {
  return nodes
    .list()
    .filter(({ metadata }) => Object.hasOwn(inFlight, metadata.name))
    .map((node) => factsOf(node, flavour));
}
