import type { RolloutPolicy } from '../../api/rollout-policy.js';
import { oldestFirst } from '../candidates.js';
import type { NodeFacts } from '../facts.js';

export type NodeOrder = NonNullable<RolloutPolicy['order']>;

/** Where a node is, as every cloud labels it. */
export const ZONE_LABEL = 'topology.kubernetes.io/zone';

const NUMBER = /^-?\d{1,15}(\.\d{1,15})?$/u;

function valueOf(node: NodeFacts, { by, key = '' }: NodeOrder): string | undefined {
  const values = by === 'Annotation' ? (node.annotations ?? {}) : node.labels;
  const name = by === 'Zone' ? ZONE_LABEL : key;
  const value = Object.hasOwn(values, name) ? values[name] : undefined;
  return value === '' ? undefined : value;
}

/** Rises with the value; what has none is beyond all. */
function byValue<T>(entries: readonly T[], valueOfEntry: (entry: T) => string | undefined, numbers: boolean): T[] {
  const valued = entries.map((entry) => ({ entry, value: valueOfEntry(entry) }));
  const given = valued.flatMap(({ value }) => value ?? []);
  const asNumbers = numbers && given.every((value) => NUMBER.test(value));
  const compare = (a: string, b: string) => (asNumbers ? Number(a) - Number(b) : a < b ? -1 : Number(a > b));
  return valued
    .sort((a, b) => {
      if (a.value === undefined || b.value === undefined)
        return Number(a.value === undefined) - Number(b.value === undefined);
      return compare(a.value, b.value);
    })
    .map(({ entry }) => entry);
}

function newestFirst<T>(oldest: readonly T[], nodeOf: (entry: T) => NodeFacts): T[] {
  const hasTime = (entry: T) => !Number.isNaN(Date.parse(nodeOf(entry).createdAt));
  return [...oldest.filter(hasTime).reverse(), ...oldest.filter((entry) => !hasTime(entry))];
}

/**
 * The entries in the order in which a rollout takes their nodes: oldest first, unless another one is asked for. Values
 * of a label or an annotation are compared as numbers where all of them are, else as text; nodes without a value come
 * last, and equal ones oldest first. `last` is the name of a node that comes after all others.
 */
export function inOrder<T>(
  entries: readonly T[],
  nodeOf: (entry: T) => NodeFacts,
  { order, last }: { readonly order?: NodeOrder | undefined; readonly last?: string | undefined },
): T[] {
  const oldest = oldestFirst(entries, nodeOf);
  const ordered = orderedBy(order, oldest, nodeOf);
  if (last === undefined) return ordered;
  const isLast = (entry: T) => nodeOf(entry).name === last;
  return [...ordered.filter((entry) => !isLast(entry)), ...ordered.filter(isLast)];
}

function orderedBy<T>(order: NodeOrder | undefined, oldest: T[], nodeOf: (entry: T) => NodeFacts): T[] {
  if (order === undefined || order.by === 'OldestFirst') return oldest;
  if (order.by === 'NewestFirst') return newestFirst(oldest, nodeOf);
  return byValue(oldest, (entry) => valueOf(nodeOf(entry), order), order.by !== 'Zone');
}
