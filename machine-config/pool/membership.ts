import { matchesSelector, type LabelSelector } from '../api/label-selector.js';
import { CONTROL_PLANE_POOL } from './max-unavailable.js';
import { nameSome } from './sentences.js';

export const WORKER_POOL = 'worker';

/** What membership needs to know of a MachineConfigPool. */
export interface PoolSelector {
  readonly name: string;
  readonly nodeSelector?: LabelSelector | undefined;
}

/** The pool that a node belongs to. */
export type Membership =
  /** `alert`: it also matches custom pools, which control-plane nodes do not follow; one sentence. */
  | { readonly kind: 'pool'; readonly pool: string; readonly alert?: string }
  /** No pool selects it, or it is of a sort that no pool can configure. */
  | { readonly kind: 'none' }
  /** Several custom pools want it: it is held, no pool counts it, until its labels are clear. */
  | { readonly kind: 'conflict'; readonly pools: readonly string[]; readonly sentence: string };

interface LabelledNode {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
}

/** Nodes without a Linux host of their own that could be configured. */
function isConfigurable(labels: Readonly<Record<string, string>>): boolean {
  return (
    labels['kubernetes.io/os'] !== 'windows' &&
    labels['type'] !== 'virtual-kubelet' &&
    labels['eks.amazonaws.com/compute-type'] !== 'fargate'
  );
}

/**
 * Decides to which one of all pools a node belongs: one custom pool beats `worker`, `master` beats every other (with
 * an alert when custom pools match too), and two custom pools are a conflict. Windows and virtual nodes are in no pool.
 */
export function poolOf(node: LabelledNode, pools: readonly PoolSelector[]): Membership {
  if (!isConfigurable(node.labels)) return { kind: 'none' };
  const matching = pools.filter((pool) => matchesSelector(pool.nodeSelector, node.labels)).map((pool) => pool.name);
  const custom = matching.filter((name) => name !== CONTROL_PLANE_POOL && name !== WORKER_POOL).sort();
  if (custom.length > 1) {
    return {
      kind: 'conflict',
      pools: custom,
      sentence:
        `Node ${node.name} is selected by ${custom.length} custom pools, ${nameSome(custom, 10)}, and is held: ` +
        `take a label off the node so that one of them is left`,
    };
  }
  const [only] = custom;
  if (matching.includes(CONTROL_PLANE_POOL)) {
    if (only === undefined) return { kind: 'pool', pool: CONTROL_PLANE_POOL };
    return {
      kind: 'pool',
      pool: CONTROL_PLANE_POOL,
      alert: `Node ${node.name} is in pool ${CONTROL_PLANE_POOL}; pool ${only} selects it too and is ignored for it`,
    };
  }
  if (only !== undefined) return { kind: 'pool', pool: only };
  return matching.includes(WORKER_POOL) ? { kind: 'pool', pool: WORKER_POOL } : { kind: 'none' };
}

/** The nodes of one pool, in the order given. A node held by a conflict is in none. */
export function membersOf<N extends LabelledNode>(
  pool: string,
  nodes: readonly N[],
  pools: readonly PoolSelector[],
): N[] {
  return nodes.filter((node) => {
    const membership = poolOf(node, pools);
    return membership.kind === 'pool' && membership.pool === pool;
  });
}
