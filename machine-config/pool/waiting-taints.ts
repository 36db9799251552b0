import { currentConfig, holdsGrant, isManaged, isUpdated, needsUpdate } from './availability.js';
import type { NodeFacts, PoolFacts } from './facts.js';
import type { Turn, WaitingCode } from './turn.js';

/*
 * The taint of nodes that wait for their update, which makes the scheduler prefer those that have theirs: pods that are
 * evicted there are moved once, and not again with each further node.
 */

/** With these nothing is on its way any more, whatever is still being brought to its end. */
const STANDS_STILL: ReadonlySet<WaitingCode> = new Set(['PoolPaused', 'PoolDeleting', 'Stopped', 'Halted']);

/** With these, and nothing running, the next node follows soon: what is tainted stays so, for the little while. */
const GOES_ON_SOON: ReadonlySet<WaitingCode> = new Set([
  'GateClosed',
  'Soaking',
  'StageWaits',
  'ZoneFull',
  'PaceFull',
  'SlotsTaken',
  'UpdatesRunning',
]);

type Pace = 'rolls' | 'keeps' | 'stands';

function paceOf({ start, done, waiting, target }: Turn, running: number): Pace {
  if (done || target === null || (waiting !== null && STANDS_STILL.has(waiting.code))) return 'stands';
  if (start.length > 0 || running > 0) return 'rolls';
  return waiting !== null && GOES_ON_SOON.has(waiting.code) ? 'keeps' : 'stands';
}

/** Whether pods that are put on the node now are moved once more, as far as it depends on the node alone. */
function waitsFor(target: string | undefined, node: NodeFacts): boolean {
  return target !== undefined && isManaged(node) && needsUpdate(node, target) && node.hold === undefined;
}

/** It is about to be cordoned, or is: a taint on top of that says nothing more. */
function isOnItsWay(node: NodeFacts, busy: ReadonlySet<string>): boolean {
  return busy.has(node.name) || holdsGrant(node) || node.unschedulable || node.deleting;
}

export interface TaintFacts {
  readonly pool: PoolFacts;
  readonly members: readonly NodeFacts[];
  /** Names of the nodes whose update is running. */
  readonly running: readonly string[];
  readonly turn: Turn;
}

export interface TaintChanges {
  /** Names of nodes. */
  readonly add: readonly string[];
  readonly remove: readonly string[];
}

/**
 * Which members get or lose the taint after a turn of their pool. Those that start or run keep what they have until they
 * are updated, so that a node costs two writes at most; and as long as no member is updated and in service, there is
 * nothing to prefer.
 */
export function taintChanges({ pool, members, running, turn }: TaintFacts): TaintChanges {
  const { target } = pool;
  const pace = pool.rollout?.preferUpdatedNodes === false ? 'stands' : paceOf(turn, running.length);
  const busy = new Set([...running, ...turn.start.map(({ node }) => node)]);
  const hasUpdated = members.some((node) => isUpdated(node, target) && node.ready && !node.unschedulable);
  const add = members.filter(
    (node) =>
      pace === 'rolls' &&
      hasUpdated &&
      node.waitsTainted !== true &&
      waitsFor(target, node) &&
      currentConfig(node) !== target &&
      !isOnItsWay(node, busy),
  );
  const remove = members.filter((node) => node.waitsTainted === true && (pace === 'stands' || !waitsFor(target, node)));
  return { add: add.map(({ name }) => name), remove: remove.map(({ name }) => name) };
}

/** Whether a tainted node has been left with it: it is in no pool any more, or in one for which it does not wait. */
export function isLeftTainted(node: NodeFacts, pool: PoolFacts | undefined): boolean {
  if (node.waitsTainted !== true) return false;
  if (pool === undefined || pool.deleting || pool.paused || pool.rollout?.preferUpdatedNodes === false) return true;
  return !waitsFor(pool.target, node);
}
