import type { Check, Finding } from './check.js';
import type { SeenBudget, SeenChange, SeenPod, World } from './world.js';

/** The cluster's own count of a budget is behind by this much when a pod is lost and not evicted. */
const LOSS_IS_KNOWN_AFTER_MS = 60_000;

/** Pods leave a node that Drydock empties by eviction, and no eviction takes a budget below what it guards. */
export class BudgetCheck implements Check {
  readonly promise = 'no PodDisruptionBudget broken by evictions';
  readonly #lostAt = new Map<string, number>();
  #evictions = 0;

  /** So many evictions were seen. */
  get evictions(): number {
    return this.#evictions;
  }

  see(change: SeenChange, world: World, at: number): readonly Finding[] {
    if (change.kind !== 'pod' || change.before === undefined) return [];
    const { before, after } = change;
    if (before.ending) return [];
    const ends = after === undefined || after.ending;
    const last = after ?? before;
    if (ends && last.evicted) return this.#evicted(last, before, world, at);
    if (before.ready && (ends || !after.ready)) {
      for (const budget of guarding(last, world)) this.#lostAt.set(keyOf(budget), at);
    }
    return ends ? bypassed(last, world) : [];
  }

  #evicted(pod: SeenPod, before: SeenPod, world: World, at: number): Finding[] {
    this.#evictions += 1;
    if (!before.ready) return [];
    return guarding(pod, world).flatMap((budget) => {
      if (at - (this.#lostAt.get(keyOf(budget)) ?? -Infinity) < LOSS_IS_KNOWN_AFTER_MS) return [];
      const healthy = [...world.pods.values()].filter(
        (other) => guards(budget, other) && other.ready && !other.ending,
      ).length;
      if (healthy >= budget.minAvailable) return [];
      const sentence =
        `the eviction of ${pod.name} from ${pod.node} left ${healthy} healthy pods of the budget ` +
        `${keyOf(budget)}, which guards ${budget.minAvailable}`;
      return [{ nodes: [pod.node], sentence }];
    });
  }
}

/** One that nobody owns is made again by nobody: on a node in our hands it may only end by its eviction. */
function bypassed(pod: SeenPod, world: World): Finding[] {
  const node = world.nodes.get(pod.node);
  if (node === undefined || node.cordonedFor === '' || pod.owned || pod.disrupted) return [];
  return [{ nodes: [node.name], sentence: `${pod.name} was deleted from ${node.name}, and not evicted` }];
}

function guarding(pod: SeenPod, world: World): SeenBudget[] {
  return [...world.budgets.values()].filter((budget) => guards(budget, pod));
}

function guards(budget: SeenBudget, pod: SeenPod): boolean {
  const matches = Object.entries(budget.labels).every(([key, value]) => pod.labels[key] === value);
  return budget.namespace === pod.namespace && matches;
}

const keyOf = ({ namespace, name }: SeenBudget): string => `${namespace}/${name}`;
