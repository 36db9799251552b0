import {
  hasOurCordon,
  holdsGrant,
  isApplying,
  isCordonedByOthers,
  isDown,
  isDrifted,
  isForced,
  isManaged,
  isUnavailable,
  needsUpdate,
} from './availability.js';
import { whyIncapable, type OsDemands } from './capabilities.js';
import type { NodeFacts, NodeFailure } from './facts.js';
import { openFailure } from './policy/failures.js';
import { isBegun } from './policy/rollout-facts.js';
import { clip } from './sentences.js';

/** Minutes between the attempts of a node that keeps failing on the same target; the last one repeats. */
const BACKOFF_MINUTES = [1, 5, 15, 60] as const;

/** Its host took an update back after its boot: tried once more by itself, it would only be down once more. */
const NEVER_RETRIED = 'RolledBackAfterBoot';

export type BlockedBecause =
  | 'unmanaged'
  | 'deleting'
  /** People hold it back. */
  | 'held'
  | 'notReady'
  | 'cordonedByOthers'
  /** Its host cannot do what the target asks of the operating system. */
  | 'cannot'
  | 'drifted'
  /** It came back from this very target once, and needs to be asked for to try again. */
  | 'rolledBack'
  | 'backoff'
  | 'resting';

/** See Standing. */
export type SlotNeed = 'none' | 'unheld' | 'held' | 'down';

/** Where a member stands with regard to the pool's target. */
export type Standing =
  /**
   * Its update may start once there is room. `slot`: `none`, it needs a free one; `unheld`, it counts as unavailable
   * already, being Degraded or cordoned by others, but was granted nothing; `held`, it was, and workloads still run on
   * it; `down`, it is out of service anyway and only its update brings it back.
   */
  | { readonly kind: 'candidate'; readonly slot: SlotNeed }
  | { readonly kind: 'settled' }
  | { readonly kind: 'running' }
  | Blocked;

export interface Blocked {
  readonly kind: 'blocked';
  readonly because: BlockedBecause;
  /** Epoch milliseconds at which this reason ends by itself. */
  readonly until?: number;
  /** What it cannot do, and why. */
  readonly detail?: string;
}

export interface StandingContext {
  readonly target: string;
  /** What the target asks of the operating system; absent: nothing. */
  readonly demands?: OsDemands | undefined;
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

/** One that has begun is brought to its end, whatever its host says by now. */
function incapability(node: NodeFacts, { target, demands }: StandingContext): string | undefined {
  if (demands === undefined || holdsGrant(node) || node.current === target) return undefined;
  const found = whyIncapable(node.host, demands);
  return found && `spec.${found.field} (${clip(found.why, 200)})`;
}

/**
 * Nothing but a word from people starts its update to this target. A drifted node is asked about another config, since
 * that may be what is on its disk: it answers before anything is cordoned.
 */
function isKeptBack(node: NodeFacts, target: string): boolean {
  if (isForced(node) || isApplying(node)) return false;
  if (isDrifted(node)) return node.current === target && !hasOurCordon(node);
  const failure = openFailure(node);
  return failure?.target === target && failure.code === NEVER_RETRIED;
}

/** Others cordoned it, and nobody has said that it may be updated to this target as it is. */
function isCordonedAgainst(node: NodeFacts, target: string): boolean {
  return isCordonedByOthers(node) && node.release !== target;
}

function blocked(node: NodeFacts, context: StandingContext): Blocked | undefined {
  const block = (because: BlockedBecause, more: Pick<Blocked, 'until' | 'detail'> = {}): Blocked => ({
    kind: 'blocked',
    because,
    ...more,
  });
  if (node.deleting) return block('deleting');
  if (node.hold !== undefined && !isBegun(node)) return block('held', { detail: clip(node.hold, 200) });
  if (!node.ready) return block('notReady');
  if (isCordonedAgainst(node, context.target)) return block('cordonedByOthers');
  const detail = incapability(node, context);
  if (detail !== undefined) return block('cannot', { detail });
  if (isKeptBack(node, context.target)) return block(isDrifted(node) ? 'drifted' : 'rolledBack');
  const backoff = backoffUntil(openFailure(node), context.target);
  if (backoff !== undefined && backoff > context.now) return block('backoff', { until: backoff });
  const rest = Object.hasOwn(context.resting, node.name) ? context.resting[node.name] : undefined;
  if (rest !== undefined && rest > context.now) return block('resting', { until: rest });
  return undefined;
}

/** Decides for one member whether its update may start, and if not, why. */
export function standing(node: NodeFacts, context: StandingContext): Standing {
  if (context.inFlight.has(node.name)) return { kind: 'running' };
  if (!isManaged(node)) return { kind: 'blocked', because: 'unmanaged' };
  if (!needsUpdate(node, context.target)) return { kind: 'settled' };
  const reason = blocked(node, context);
  if (reason !== undefined) return reason;
  return { kind: 'candidate', slot: slotNeed(node, context.target) };
}

/** How much of a slot a node takes already that is to be started. */
export function slotNeed(node: NodeFacts, target: string): SlotNeed {
  if (!isUnavailable(node, target)) return 'none';
  if (!holdsGrant(node)) return 'unheld';
  return isDown(node) ? 'down' : 'held';
}

/** Others cordoned it, it was granted nothing and waits for its update like one of those in service. */
function onlyWaits(node: NodeFacts, target: string): boolean {
  return isCordonedByOthers(node) && node.release === target && node.ready && !node.deleting && !holdsGrant(node);
}

/** Whether another member takes away room from one that needs this much of a slot. */
export function takesRoom(other: NodeFacts, slot: SlotNeed, target: string): boolean {
  if (slot === 'down' || !isUnavailable(other, target)) return false;
  if (slot === 'none') return true;
  if (slot === 'unheld') return holdsGrant(other) || (isDown(other) && !onlyWaits(other, target));
  return isDown(other);
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

/** Lowest for a node that began and was left behind, so that it is brought to an end before another one begins. */
export function urgency(node: NodeFacts): number {
  if (isApplying(node)) return 0;
  return holdsGrant(node) ? 1 : 2;
}
