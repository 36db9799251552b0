import { DRYDOCK_ANNOTATIONS } from '../../machine-config/api/flavour.js';
import { holdsGrant, isManaged } from '../../machine-config/pool/availability.js';
import { undecided, type NodesView } from '../../machine-config/pool/grant-record.js';
import { poolOf, type PoolSelector } from '../../machine-config/pool/membership.js';
import { waitsForOthers } from '../../machine-config/pool/policy/sequence.js';
import type { ClusterView } from './cluster-view.js';
import type { ControlDependencies, PoolResource } from './control-dependencies.js';
import { recordOf, type GrantLooks } from './grant-looks.js';
import { poolSelectors } from './pool-view.js';

type Dependencies = Pick<ControlDependencies, 'client' | 'flavour' | 'now'>;

/** The slot that is about to be given: recorded on its pool, and not written on its Node yet. */
interface RecordedSlot {
  readonly pool: string;
  readonly node: string;
}

/**
 * How many pools may be in an update at once, exactly. Watches show another pool that begins in the same moment too late,
 * and the record of one pool keeps nobody from recording on another. So each pool first records its grant, as it does
 * anyway, and looks at the records of the others afterwards: of two that begin at once at least one sees the other, and
 * does not write. See docs/decisions/0012.
 */
export class PoolLimit {
  readonly #dependencies: Dependencies;
  readonly #cluster: ClusterView;
  readonly #looks: GrantLooks;

  constructor(dependencies: Dependencies, cluster: ClusterView, looks: GrantLooks) {
    this.#dependencies = dependencies;
    this.#cluster = cluster;
    this.#looks = looks;
  }

  /** Why the slot may not be written, in a sentence; undefined: it may. Costs nothing where there is no limit. */
  async whyNot(slot: RecordedSlot): Promise<string | undefined> {
    const { maxPools } = await this.#cluster.factsFor(slot.pool);
    if (maxPools === undefined) return undefined;
    const { client, flavour } = this.#dependencies;
    const pools = await client.list<PoolResource>(flavour.machineConfigPool);
    const recorded = pools.filter(({ metadata }) => metadata.annotations?.[DRYDOCK_ANNOTATIONS.lastGrant]);
    const view = await this.#looks.nodesAfter(recorded.map(recordOf));
    const rolling = this.#rolling(pools, view, slot);
    const others = [...rolling].filter((name) => name !== slot.pool);
    if (others.length < maxPools) return undefined;
    // What is in an update already goes on with it; here the watch may show as begun what has just ended.
    const isBegun =
      rolling.has(slot.pool) && this.#holders(pools, await this.#looks.nodesAfter([]), slot).has(slot.pool);
    return isBegun ? undefined : waitsForOthers(slot.pool, maxPools, others);
  }

  /** The pools of which a Node holds a slot, or is about to; the slot in question is none. */
  #rolling(pools: readonly PoolResource[], view: NodesView, slot: RecordedSlot): Set<string> {
    const rolling = this.#holders(pools, view, slot);
    for (const pool of pools) {
      const pending = undecided(recordOf(pool), view, this.#dependencies.now());
      if (pending.some(({ node }) => node !== slot.node)) rolling.add(pool.metadata.name);
    }
    return rolling;
  }

  #holders(pools: readonly PoolResource[], view: NodesView, slot: RecordedSlot): Set<string> {
    const selectors: readonly PoolSelector[] = poolSelectors(pools);
    const holders = new Set<string>();
    for (const { facts } of view.nodes.values()) {
      if (facts.name === slot.node || !isManaged(facts) || !holdsGrant(facts)) continue;
      const membership = poolOf(facts, selectors);
      if (membership.kind === 'pool') holders.add(membership.pool);
    }
    return holders;
  }
}
