import type { LabNode } from '../lab.js';
import type { Cast } from './plan.js';

const ROLE = 'node-role.kubernetes.io/';
const WORKER_ROLE = `${ROLE}worker`;
/** Pools besides `worker`, whose nodes are workers by label as well. */
const CUSTOM_POOLS = ['edge', 'infra'] as const;
export const POOLS = ['worker', ...CUSTOM_POOLS] as const;
export const APPS = ['cart', 'web'] as const;

/** Changed in the same write by whatever people do to a Node, so that it can be told from what Drydock does. */
export const HAND_ANNOTATION = 'chaos.drydock.dev/hand';
/** The labels that put a node into a pool; null takes one off. */
export function labelsOfPool(pool: string): Record<string, string | null> {
  const custom = CUSTOM_POOLS.map((name) => [`${ROLE}${name}`, name === pool ? '' : null] as const);
  return { [WORKER_ROLE]: '', ...Object.fromEntries(custom) };
}

/** The pool that a node with these labels is in: a custom one beats `worker`. Empty: none. */
export function poolOfLabels(labels: Readonly<Record<string, string>>): string {
  const custom = CUSTOM_POOLS.find((name) => `${ROLE}${name}` in labels);
  return custom ?? (WORKER_ROLE in labels ? 'worker' : '');
}

/** Selectors of a custom pool, as a person would write them: it inherits the configs of the workers. */
export function selectorsOfPool(pool: string, roleLabel: string): object {
  return {
    machineConfigSelector: { matchExpressions: [{ key: roleLabel, operator: 'In', values: ['worker', pool] }] },
    nodeSelector: { matchLabels: { [`${ROLE}${pool}`]: '' } },
  };
}

/** Nodes in three pools, of which some are cordoned and some are held from the beginning. */
export function castOf(nodeCount: number): Cast {
  const names = Array.from({ length: nodeCount }, (_, index) => `node-${String(index + 1).padStart(2, '0')}`);
  const poolOf = (index: number) => POOLS[index % POOLS.length] ?? 'worker';
  return {
    nodes: Object.fromEntries(names.map((name, index) => [name, poolOf(index)])),
    pools: POOLS,
    apps: APPS,
    cordoned: names.slice(3, 4),
    held: names.slice(5, 7),
  };
}

/** The Nodes to create, each a day younger than the one before. */
export function labNodes(cast: Cast): LabNode[] {
  const DAY_MS = 24 * 3_600_000;
  return Object.entries(cast.nodes).map(([name, pool], index) => ({
    name,
    labels: setLabels(pool),
    createdAt: new Date(Date.now() - (1000 - index) * DAY_MS),
  }));
}

function setLabels(pool: string): Record<string, string> {
  return Object.fromEntries(
    Object.entries(labelsOfPool(pool)).flatMap(([key, value]) => (value === null ? [] : [[key, value]])),
  );
}
