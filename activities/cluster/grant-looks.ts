import { DRYDOCK_ANNOTATIONS } from '../../machine-config/api/flavour.js';
import type { NodeFacts } from '../../machine-config/pool/facts.js';
import {
  compareVersions,
  neededVersion,
  parseGrantRecord,
  type GrantRecord,
  type NodesView,
  type ViewedNode,
} from '../../machine-config/pool/grant-record.js';
import type { AssignInput } from '../../workflows/contract/activities.js';
import { KINDS } from '../kubernetes/client.js';
import { ifThere } from '../kubernetes/failures.js';
import type { ControlDependencies, NodeResource, PoolResource } from './control-dependencies.js';
import { newerOf, OwnWrites } from './own-writes.js';
import { factsOf } from './pool-view.js';
import { RecentReads } from './recent-reads.js';

/** A watch that lags gets this long to catch up: a list of all Nodes takes longer in a large cluster. */
const CATCH_UP_MILLISECONDS = 1_000;
/** Somebody's kubelet writes more often than that where a list of all Nodes would hurt. */
const LONGEST_SILENCE_MILLISECONDS = 10_000;
/** Nodes that were started together are ready to be changed together. */
const READ_NOW_MILLISECONDS = 1_000;

/** What a grant is decided on. */
export interface Look {
  readonly pool: PoolResource | undefined;
  readonly pools: readonly PoolResource[];
  readonly record: GrantRecord;
  readonly node: NodeResource | undefined;
  /** Absent: the slot is held, or given back, and no other Node matters. */
  readonly nodes?: NodesView;
}

/** Looks at what decides a grant, the cheapest first: over the watches, then past them as far as is needed. */
export class GrantLooks {
  readonly #dependencies: ControlDependencies;
  readonly #pools: OwnWrites<PoolResource>;
  readonly #nodes: OwnWrites<NodeResource>;
  readonly #poolReads: RecentReads<PoolResource | undefined>;

  constructor(dependencies: ControlDependencies) {
    this.#dependencies = dependencies;
    this.#pools = new OwnWrites(dependencies.pools);
    this.#nodes = new OwnWrites(dependencies.nodes);
    this.#poolReads = new RecentReads(READ_NOW_MILLISECONDS, dependencies.now);
  }

  /** The answers to our own writes are newer than what the watches show. */
  poolWritten(pool: PoolResource): void {
    this.#pools.remember(pool);
  }

  nodeWritten(node: NodeResource): void {
    this.#nodes.remember(node);
  }

  /** The newest version of the Node that is known here. */
  node(name: string): NodeResource | undefined {
    return this.#nodes.get(name);
  }

  /** Reads the pool, which somebody else has written. */
  async lookAgain(name: string): Promise<void> {
    const pool = await this.#readPool(name);
    if (pool !== undefined) this.#pools.remember(pool);
  }

  /**
   * Reads nothing. Enough to take a slot, since both writes name the versions that are seen here; undefined: the watch
   * of the Nodes has not come as far as the record of the pool's grants.
   */
  async cached({ pool: poolName, node }: AssignInput): Promise<Look | undefined> {
    const { pools } = this.#dependencies;
    const pool = this.#pools.get(poolName);
    if (pool === undefined) return undefined;
    const record = recordOf(pool);
    const view = await this.#freshNodes(record);
    return view && { pool, pools: pools.list(), record, node: this.#nodes.get(node), nodes: view };
  }

  /**
   * Reads the pool alone, at most a second ago. Enough for a node that holds its slot and keeps what it was granted: its
   * write names the version of the Node, and what the pool has wanted for less than that comes too late for any read.
   */
  async held({ pool: name, node }: AssignInput): Promise<Look> {
    const read = await this.#poolReads.read(name, () => this.#readPool(name));
    const pool = newerOf(read, this.#pools.get(name));
    return { pool, pools: this.#otherPools(pool), record: recordOf(pool), node: this.#nodes.get(node) };
  }

  /**
   * Reads the pool and the Node. `others`: whether the other Nodes matter; undefined: they do, and the watch has not
   * come far enough.
   */
  async own(input: AssignInput, others: (node: NodeResource) => boolean): Promise<Look | undefined> {
    const pool = await this.#readPool(input.pool);
    const { client } = this.#dependencies;
    const node = await ifThere(() => client.get<NodeResource>(KINDS.node, { name: input.node }));
    const look = { pool, pools: this.#otherPools(pool), record: recordOf(pool), node };
    if (node === undefined || !others(node)) return look;
    const nodes = await this.#freshNodes(look.record);
    return nodes && { ...look, nodes };
  }

  /**
   * The Nodes, seen at least as late as every grant that these records tell of, past the watch where that has not come so
   * far, or without any record.
   */
  async nodesAfter(records: readonly GrantRecord[]): Promise<NodesView> {
    const views = await Promise.all(records.map((record) => this.#freshNodes(record)));
    // All of them look at the one watch, which only goes on.
    const view = views.every((each) => each !== undefined) ? views[0] : undefined;
    return view ?? (await this.#listNodes()).view;
  }

  /** Reads everything; the pool before the Nodes, so that a grant recorded in between makes our own record fail. */
  async live(input: AssignInput): Promise<Look> {
    const { client, flavour } = this.#dependencies;
    const pools = await client.list<PoolResource>(flavour.machineConfigPool);
    const pool = pools.find(({ metadata }) => metadata.name === input.pool);
    const { listed, view } = await this.#listNodes();
    return { pool, pools, record: recordOf(pool), node: listed.get(input.node), nodes: view };
  }

  async #listNodes(): Promise<{ listed: Map<string, NodeResource>; view: NodesView }> {
    const { client, flavour } = this.#dependencies;
    const listed = new Map((await client.list<NodeResource>(KINDS.node)).map((node) => [node.metadata.name, node]));
    return { listed, view: { nodes: viewed(listed, (node) => factsOf(node, flavour)) } };
  }

  #readPool(name: string): Promise<PoolResource | undefined> {
    const { client, flavour } = this.#dependencies;
    return ifThere(() => client.get<PoolResource>(flavour.machineConfigPool, { name }));
  }

  /** All pools as the watch has them, with this one as it was read. */
  #otherPools(pool: PoolResource | undefined): PoolResource[] {
    const others = this.#dependencies.pools.list().filter(({ metadata }) => metadata.name !== pool?.metadata.name);
    return pool === undefined ? others : [...others, pool];
  }

  async #freshNodes(record: GrantRecord): Promise<NodesView | undefined> {
    const { nodes, flavour, now } = this.#dependencies;
    const needed = neededVersion(record);
    if (needed === undefined || nodes.freshness === undefined) return undefined;
    const isEnough = (version: string) => (compareVersions(version, needed) ?? -1) >= 0;
    const version = nodes.freshness()?.version;
    if (version === undefined) return undefined;
    if (!isEnough(version) && !(await nodes.reaches?.(isEnough, CATCH_UP_MILLISECONDS))) return undefined;
    const reached = nodes.freshness();
    if (reached === undefined || now() - reached.heardAt > LONGEST_SILENCE_MILLISECONDS) return undefined;
    const byName = { get: (name: string) => nodes.get(name), values: () => nodes.list() };
    return { version: reached.version, nodes: viewed(byName, (node) => factsOf(node, flavour)) };
  }
}

interface ByName<T> {
  get(name: string): T | undefined;
  values(): Iterable<T>;
}

/** Facts are read when they are asked for. */
function viewed(found: ByName<NodeResource>, facts: (node: NodeResource) => NodeFacts): ByName<ViewedNode> {
  const view = (node: NodeResource): ViewedNode => ({
    resourceVersion: node.metadata.resourceVersion ?? '',
    facts: facts(node),
  });
  return {
    get: (name) => {
      const node = found.get(name);
      return node && view(node);
    },
    *values() {
      for (const node of found.values()) yield view(node);
    },
  };
}

/** What the pool says of its last grants. */
export function recordOf(pool: PoolResource | undefined): GrantRecord {
  return parseGrantRecord(pool?.metadata.annotations?.[DRYDOCK_ANNOTATIONS.lastGrant]);
}
