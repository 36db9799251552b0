import { readFileSync } from 'node:fs';
import type { ApiProxy } from './api-proxy.js';
import type { Hand } from './hand.js';
import type { Keeper, MortalProcess } from './keeper.js';
import { currentOf, isTaken } from './observer/check.js';
import type { Observer } from './observer/observer.js';
import type { SeenBudget, SeenNode, SeenPod, SeenPool, World } from './observer/world.js';
import type { TemporalLink } from './temporal-link.js';
import { describeTemporal } from './temporal-state.js';
import type { Lab } from '../lab.js';

/** As much of the stage as there is. */
export interface Scenery {
  readonly lab?: Pick<Lab, 'temporal'> | undefined;
  readonly observer?: Observer | undefined;
  readonly keeper?: Keeper | undefined;
  readonly apiProxy?: ApiProxy | undefined;
  readonly temporalLink?: TemporalLink | undefined;
  readonly hand?: Hand | undefined;
}

/** No call but a watch should last so long. */
const SLOW_MS = 10_000;
const LAST_LINES = 3;
const LONGEST_LINE = 400;

/** The error, and in which state everything is. */
export async function withState(error: unknown, scenery: Scenery): Promise<Error> {
  const message = error instanceof Error ? error.message : String(error);
  return new Error([message, ...(await describeState(scenery))].join('\n    '), { cause: error });
}

/**
 * In which state everything is, for whoever has to find out why something did not happen. What says most comes last: of a
 * long message the end is what people see, and what a log that is cut keeps.
 */
export async function describeState(scenery: Scenery): Promise<string[]> {
  const { keeper, hand, observer, lab, apiProxy } = scenery;
  const processes = keeper?.processes ?? [];
  return [
    ...processes.flatMap(lastLines),
    ...(lab === undefined ? [] : await describeTemporal(lab.temporal)),
    ...(observer === undefined ? [] : describeCluster(observer)),
    `processes: ${processes.map((process) => describeProcess(process, keeper)).join(', ') || 'none of Drydock yet'}`,
    describeNetwork(scenery),
    ...(apiProxy?.slowerThan(SLOW_MS) ?? []).map((call) => `no answer yet to ${call}`),
    ...(hand?.unfinished ?? []).map((act) => `people try to ${act}`),
  ];
}

function describeNetwork({ apiProxy, temporalLink }: Scenery): string {
  const weather = [...(apiProxy?.weather ?? []), ...(temporalLink?.isCut === true ? ['Temporal: cut'] : [])];
  return `on the way in: ${weather.join('; ') || 'nothing goes wrong'}`;
}

function describeCluster({ world }: Observer): string[] {
  const busy = [...world.nodes.values()].flatMap((node) => describeNode(node, world.pools.get(node.pool)));
  return [
    ...[...world.pods.values()].flatMap((pod) => describePod(pod, world)),
    ...[...world.budgets.values()].map((budget) => describeBudget(budget, world)),
    ...busy,
    `nodes: ${world.nodes.size}, of which ${world.nodes.size - busy.length} are as their pools want them`,
    ...[...world.pools.values()].map(describePool),
  ];
}

function describeProcess(process: MortalProcess, keeper: Keeper | undefined): string {
  if (keeper?.isAway(process) === true) return `${process.id} taken away`;
  return `${process.id} ${process.pid === undefined ? 'has ended' : `runs as ${process.pid}`}`;
}

function describePool({ name, maxUnavailable, paused, target, updated, grants, waiting }: SeenPool): string {
  const granted = grants.map(({ node, at }) => `${node} at ${at}`).join(', ') || 'none';
  const how = `${paused ? 'paused, ' : ''}${updated ? 'Updated' : 'not Updated'}`;
  const waits = waiting === '' ? '' : `; waits: ${waiting}`;
  return `pool ${name}: ${how}, maxUnavailable ${maxUnavailable}, wants ${target}, last grants: ${granted}${waits}`;
}

/** Nothing of a node that is where it should be. */
function describeNode(node: SeenNode, pool: SeenPool | undefined): string[] {
  const { name, ready, managed, hold, unschedulable, cordonedFor, state, desired, applying, failure } = node;
  const isSettled = node.current === pool?.target && !isTaken(node) && state === 'Done';
  if (managed && ready && isSettled && !unschedulable && hold === '') return [];
  const facts = {
    pool: node.pool,
    ready,
    managed,
    runs: currentOf(node),
    desired,
    state,
    applying,
    cordonedFor,
    unschedulable,
    hold,
    failure,
  };
  const told = Object.entries(facts).filter(([, value]) => value !== '' && value !== false);
  return [`node ${name}: ${told.map(([what, value]) => `${what} ${String(value)}`).join(', ')}`];
}

function describeBudget({ name, namespace, minAvailable, labels }: SeenBudget, world: World): string {
  const guarded = [...world.pods.values()].filter(
    (pod) => pod.namespace === namespace && Object.entries(labels).every(([key, value]) => pod.labels[key] === value),
  );
  const ready = guarded.filter((pod) => pod.ready && !pod.ending).length;
  return `budget ${name}: at least ${minAvailable}, ready ${ready} of ${guarded.length}`;
}

/** Nothing of a pod that serves where it may stay. */
function describePod({ name, node, ready, ending, evicted }: SeenPod, world: World): string[] {
  const host = world.nodes.get(node);
  if (ready && !ending && host !== undefined && !host.unschedulable) return [];
  const where = node === '' ? 'not scheduled' : `on ${node}${host === undefined ? ', which is gone' : ''}`;
  const told = [...(ready ? [] : ['not ready']), ...(ending ? ['ending'] : []), ...(evicted ? ['evicted'] : [])];
  return [`pod ${[`${name} ${where}`, ...told].join(', ')}`];
}

function lastLines({ id, logFile }: MortalProcess): string[] {
  if (logFile === undefined) return [];
  try {
    const lines = readFileSync(logFile, 'utf8').trimEnd().split('\n').slice(-LAST_LINES);
    return lines.map((line) => `${id}.log: ${line.slice(0, LONGEST_LINE)}`);
  } catch {
    return [];
  }
}
