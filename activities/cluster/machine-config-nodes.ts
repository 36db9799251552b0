import type { ApiFlavour } from '../../machine-config/api/flavour.js';
import type { NodeFacts } from '../../machine-config/pool/facts.js';
import { poolOf } from '../../machine-config/pool/membership.js';
import type { KubernetesClient } from '../kubernetes/client.js';
import { failedWith } from '../kubernetes/failures.js';
import type { CachedObjects, NodeResource, PoolResource } from './control-dependencies.js';
import {
  knownNode,
  writeMachineConfigNode,
  type KnownNode,
  type MachineConfigNodeResource,
} from './machine-config-node-write.js';
import { factsOf, poolSelectors } from './pool-view.js';

export interface MachineConfigNodesOptions {
  readonly client: KubernetesClient;
  readonly flavour: ApiFlavour;
  readonly nodes: Pick<CachedObjects<NodeResource>, 'get'>;
  readonly pools: Pick<CachedObjects<PoolResource>, 'list'>;
  /** Epoch milliseconds. */
  readonly now: () => number;
  /** Told of what could not be read or written; it is tried again when the pool is next looked at. */
  readonly onError?: (error: unknown) => void;
}

/** So many objects are written at once: they are a view, and the rollout needs the API server more. */
const WRITERS = 4;
/** All objects are read again after this time, so that one that somebody deleted or changed is made good. */
const READ_AGAIN_MS = 10 * 60_000;
/** An API server that has just started refuses everybody until it has read the roles. */
const REFUSED_AGAIN_MS = 30_000;

interface Wanted {
  readonly node: NodeFacts;
  /** Undefined: it is in none. */
  readonly pool: string | undefined;
}

/**
 * Keeps a MachineConfigNode for each member of the pools. Told of the members at each look at a pool, it writes in the
 * background those whose facts have changed since; nobody waits for it, and it fails nothing. A cluster without the kind
 * is left alone.
 */
export class MachineConfigNodes {
  readonly #options: MachineConfigNodesOptions;
  readonly #known = new Map<string, KnownNode>();
  /** Facts with which an object is in step, and the pool that it was for: spares most nodes all but this look-up. */
  #inStep = new WeakMap<NodeFacts, Wanted['pool']>();
  /** By node, the latest facts. */
  readonly #queue = new Map<string, Wanted>();
  readonly #busy = new Set<string>();
  #isServed = true;
  /** When all is read again; undefined: now. */
  #readAgainAt: number | undefined;
  #working: Promise<void> | undefined;

  constructor(options: MachineConfigNodesOptions) {
    this.#options = options;
  }

  /** `members`: all of the pool, as the caches show them. */
  look(pool: string, members: readonly NodeFacts[]): void {
    if (this.#isDueToRead()) this.#forgetAll();
    else if (!this.#isServed) return;
    const names = new Set<string>();
    for (const node of members) {
      names.add(node.name);
      this.#want({ node, pool });
    }
    this.#lookAtLeavers(pool, names);
    this.#begin();
  }

  /** Resolves when what was seen so far is written or given up. */
  async flushed(): Promise<void> {
    while (this.#working !== undefined) await this.#working;
  }

  #want(wanted: Wanted): void {
    const { node, pool } = wanted;
    if (this.#inStep.has(node) && this.#inStep.get(node) === pool) return;
    this.#queue.set(node.name, wanted);
  }

  /** Nodes that were in the pool: their objects name the pool that has them now, or none. */
  #lookAtLeavers(pool: string, members: ReadonlySet<string>): void {
    const { nodes, pools, flavour } = this.#options;
    const leavers = [...this.#known].filter(([name, known]) => known.pool === pool && !members.has(name));
    if (leavers.length === 0) return;
    const selectors = poolSelectors(pools.list());
    for (const [name] of leavers) {
      const resource = nodes.get(name);
      if (resource === undefined) {
        // Its object belongs to the Node and is collected with it.
        this.#known.delete(name);
        continue;
      }
      const node = factsOf(resource, flavour);
      const membership = poolOf(node, selectors);
      this.#want({ node, pool: membership.kind === 'pool' ? membership.pool : undefined });
    }
  }

  #isDueToRead(): boolean {
    return this.#readAgainAt === undefined || this.#options.now() >= this.#readAgainAt;
  }

  #forgetAll(): void {
    if (this.#working !== undefined) return;
    this.#known.clear();
    this.#inStep = new WeakMap();
    this.#readAgainAt = undefined;
  }

  #begin(): void {
    if (this.#queue.size > 0) this.#working ??= this.#work();
  }

  async #work(): Promise<void> {
    try {
      await this.#read();
      if (!this.#isServed) this.#queue.clear();
      await Promise.all(Array.from({ length: WRITERS }, () => this.#writeAll()));
    } catch (error) {
      this.#queue.clear();
      this.#options.onError?.(error);
    } finally {
      this.#working = undefined;
      this.#begin();
    }
  }

  /** Once in a while, what there is: one list for all nodes instead of one call for each. */
  async #read(): Promise<void> {
    if (this.#readAgainAt !== undefined) return;
    const { client, flavour, now, onError } = this.#options;
    let again = READ_AGAIN_MS;
    try {
      const objects = await client.list<MachineConfigNodeResource>(flavour.machineConfigNode);
      for (const object of objects) this.#known.set(object.metadata.name, knownNode(object));
      this.#isServed = true;
    } catch (error) {
      if (!failedWith(error, 'NotFound', 'Forbidden')) throw error;
      this.#isServed = false;
      if (failedWith(error, 'Forbidden')) {
        again = REFUSED_AGAIN_MS;
        onError?.(error);
      }
    }
    this.#readAgainAt = now() + again;
  }

  /** A node that another writer is at is left to that one, which looks again when it is done. */
  async #writeAll(): Promise<void> {
    for (;;) {
      const wanted = this.#next();
      if (wanted === undefined) return;
      const { name } = wanted.node;
      this.#queue.delete(name);
      this.#busy.add(name);
      try {
        this.#known.set(name, await this.#bring(wanted));
        this.#inStep.set(wanted.node, wanted.pool);
      } catch (error) {
        this.#known.delete(name);
        this.#options.onError?.(error);
      } finally {
        this.#busy.delete(name);
      }
    }
  }

  #next(): Wanted | undefined {
    for (const [name, wanted] of this.#queue) if (!this.#busy.has(name)) return wanted;
    return undefined;
  }

  /** Once more after a conflict: another control worker has written, and what it wrote is read. */
  async #bring({ node, pool }: Wanted): Promise<KnownNode> {
    const { client, flavour, now } = this.#options;
    const write = (known: KnownNode | undefined) =>
      writeMachineConfigNode({ client, flavour, now: new Date(now()) }, { node, pool, known });
    try {
      return await write(this.#known.get(node.name));
    } catch (error) {
      if (!failedWith(error, 'Conflict', 'NotFound')) throw error;
      return write(undefined);
    }
  }
}
