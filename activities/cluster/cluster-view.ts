import { DRYDOCK_ANNOTATIONS } from '../../machine-config/api/flavour.js';
import { matchesSelector } from '../../machine-config/api/label-selector.js';
import { holdsGrant, isManaged, needsUpdate } from '../../machine-config/pool/availability.js';
import type { ClusterFacts, OtherPool } from '../../machine-config/pool/facts.js';
import { poolOf } from '../../machine-config/pool/membership.js';
import type { ControlDependencies, NodeResource, PoolResource } from './control-dependencies.js';
import { factsOf, poolFacts, poolSelectors } from './pool-view.js';
import { StopSwitch, stopReason } from './stop-switch.js';

type Dependencies = Pick<ControlDependencies, 'client' | 'flavour' | 'nodes' | 'pools' | 'configurations' | 'now'>;

/** What holds for all pools, and how the others stand, as the watches show it. */
export class ClusterView {
  readonly #dependencies: Dependencies;
  readonly #stop: StopSwitch;

  constructor(dependencies: Dependencies) {
    this.#dependencies = dependencies;
    this.#stop = new StopSwitch(dependencies);
  }

  /**
   * For the decisions of one pool. How other pools stand and how many nodes take pods is counted only where somebody
   * looks at it: in a cluster of thousands of nodes most turns need neither.
   *
   * @throws the client's failures, when whether everything is stopped has to be read and cannot be.
   */
  async factsFor(pool: string): Promise<ClusterFacts> {
    const configuration = await this.#stop.configuration();
    const stop = stopReason(configuration);
    const maxPools = configuration?.spec.rollout?.maxPools;
    const dependencies = this.#dependencies;
    const onlySchedulable = () => this.onlySchedulable();
    return {
      ...(stop === undefined ? {} : { stop }),
      ...(maxPools === undefined ? {} : { maxPools }),
      get others() {
        const others = dependencies.pools.list().filter(({ metadata }) => metadata.name !== pool);
        return others.map((other) => otherPool(other, dependencies));
      },
      get schedulable() {
        return dependencies.nodes.list().filter(takesPods).length;
      },
      get onlySchedulable() {
        return onlySchedulable();
      },
    };
  }

  /** Name of the Node, if it is only one that can take pods. */
  onlySchedulable(): string | undefined {
    return onlyOne(this.#dependencies.nodes.list(), takesPods)?.metadata.name;
  }
}

function otherPool(pool: PoolResource, { nodes, pools, flavour }: Dependencies): OtherPool {
  const { name } = pool.metadata;
  const members = () => {
    const selectors = poolSelectors(pools.list());
    return nodes
      .list()
      .filter(({ metadata }) => matchesSelector(pool.spec.nodeSelector, metadata.labels))
      .map((node) => factsOf(node, flavour))
      .filter((node) => {
        const membership = poolOf(node, selectors);
        return membership.kind === 'pool' && membership.pool === name;
      });
  };
  const after = pool.spec.rollout?.after;
  return {
    name,
    ...(after === undefined ? {} : { after }),
    get updated() {
      const { target } = poolFacts(pool);
      return target !== undefined && members().every((node) => !isManaged(node) || !needsUpdate(node, target));
    },
    get rolling() {
      return members().some((node) => isManaged(node) && holdsGrant(node));
    },
  };
}

/** The one that it is true of; undefined: it is true of none, or of more. */
function onlyOne<T>(all: readonly T[], isTrue: (one: T) => boolean): T | undefined {
  let found: T | undefined;
  for (const one of all) {
    if (!isTrue(one)) continue;
    if (found !== undefined) return undefined;
    found = one;
  }
  return found;
}

/** Taints that Kubernetes itself sets for a while, and that say nothing of whether a node is meant for pods. */
const PASSING_TAINT = /^node\.kubernetes\.io\//u;
const KEEPS_PODS_AWAY: ReadonlySet<string> = new Set(['NoSchedule', 'NoExecute']);

/** Pods find room there, or will again once what passes has passed: our own cordon, or a node that is not ready. */
function takesPods({ metadata, spec }: NodeResource): boolean {
  if (metadata.deletionTimestamp !== undefined) return false;
  const isOurs = Boolean(metadata.annotations?.[DRYDOCK_ANNOTATIONS.cordonedFor]);
  if (spec?.unschedulable === true && !isOurs) return false;
  return !(spec?.taints ?? []).some(({ key, effect }) => KEEPS_PODS_AWAY.has(effect) && !PASSING_TAINT.test(key));
}
