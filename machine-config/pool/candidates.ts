import {
  holdsGrant,
  isApplying,
  isCordonedByOthers,
  isDown,
  isDrifted,
  isManaged,
  isUnavailable,
  needsUpdate,
} from './availability.js';
import type { NodeFacts, NodeFailure } from './facts.js';

/** Minutes between the attempts of a node that keeps failing on the same target; the last one repeats. */
const BACKOFF_MINUTES = [1, 5, 15, 60] as const;

export type BlockedBecause =
  'unmanaged' | 'deleting' | 'notReady' | 'cordonedByOthers' | 'drifted' | 'backoff' | 'resting';

/** Where a member stands with regard to the pool's target. */
export type Standing =
  /**
   * Its update may start once there is room. `slot`: `none`, it needs a free one; `held`, it counts as unavailable
   * already but workloads run on it; `down`, it is out of service anyway and only its update brings it back.
   */
  | { readonly kind: 'candidate'; readonly slot: 'none' | 'held' | 'down' }
  | { readonly kind: 'settled' }
  | { readonly kind: 'running' }
  /** `until`: epoch milliseconds at which this reason ends by itself. */
  | { readonly kind: 'blocked'; readonly because: BlockedBecause; readonly until?: number };

export interface StandingContext {
  readonly target: string;
  readonly inFlight: ReadonlySet<string>;
  /** Node name to the epoch milliseconds before which it is left alone. */
  readonly resting: Readonly<Record<string, number>>;
  /** Epoch milliseconds. */
  readonly now: number;
}

/** Epoch milliseconds until which a node that failed is left alone; undefined when it failed on another target. */
export function backoffUntil(failure: NodeFailure | undefined, target: string): number | undefined {
  if (failure?.target !== target) return undefined;
  const at = Date.parse(failure.at);
  if (Number.isNaN(at)) return undefined;
  const step = Math.min(Math.max(1, Math.floor(failure.attempts)), BACKOFF_MINUTES.length) - 1;
  return at + (BACKOFF_MINUTES[step] ?? BACKOFF_MINUTES[0]) * 60_000;
}

function blocked(node: NodeFacts, context: StandingContext): Standing | undefined {
  const block = (because: BlockedBecause, until?: number): Standing =>
    until === undefined ? { kind: 'blocked', because } : { kind: 'blocked', because, until };
  if (node.deleting) return block('deleting');
  if (!node.ready) return block('notReady');
  if (isCordonedByOthers(node)) return block('cordonedByOthers');
  if (isDrifted(node)) return block('drifted');
  const backoff = backoffUntil(node.failure, context.target);
  if (backoff !== undefined && backoff > context.now) return block('backoff', backoff);
  const rest = Object.hasOwn(context.resting, node.name) ? context.resting[node.name] : undefined;
  if (rest !== undefined && rest > context.now) return block('resting', rest);
  return undefined;
}

/** Decides for one member whether its update may start, and if not, why. */
export function standing(node: NodeFacts, context: StandingContext): Standing {
  if (context.inFlight.has(node.name)) return { kind: 'running' };
  if (!isManaged(node)) return { kind: 'blocked', because: 'unmanaged' };
  if (!needsUpdate(node, context.target)) return { kind: 'settled' };
  const reason = blocked(node, context);
  if (reason !== undefined) return reason;
  if (isDown(node)) return { kind: 'candidate', slot: 'down' };
  return { kind: 'candidate', slot: isUnavailable(node, context.target) ? 'held' : 'none' };
}

function createdAt(node: NodeFacts): number {
  const time = Date.parse(node.createdAt);
  return Number.isNaN(time) ? Number.POSITIVE_INFINITY : time;
}

/** Oldest first, then by name; a node without a readable creation time comes last. Reads each time once. */
export function oldestFirst<T>(entries: readonly T[], nodeOf: (entry: T) => NodeFacts): T[] {
  return entries
    .map((entry) => ({ entry, time: createdAt(nodeOf(entry)), name: nodeOf(entry).name }))
    .sort((a, b) => {
      if (a.time !== b.time) return a.time < b.time ? -1 : 1;
      return a.name < b.name ? -1 : a.name > b.name ? 1 : 0;
    })
    .map(({ entry }) => entry);
}

/** 0 for a node that began and was left behind, so that it is brought to an end before another one begins. */
function urgency(node: NodeFacts): number {
  if (isApplying(node)) return 0;
  return holdsGrant(node) ? 1 : 2;
}

/** The candidates in the order in which they shall start: those left half-way first, then oldest first. */
export function candidatesInOrder(
  members: readonly NodeFacts[],
  context: StandingContext,
): { readonly node: NodeFacts; readonly slot: 'none' | 'held' | 'down' }[] {
  const candidates = members.flatMap((node) => {
    const where = standing(node, context);
    return where.kind === 'candidate' ? [{ node, slot: where.slot }] : [];
  });
  return oldestFirst(candidates, ({ node }) => node).sort((a, b) => urgency(a.node) - urgency(b.node));
}
