import {
  currentConfig,
  hasOurCordon,
  isApplying,
  isDegraded,
  isGranted,
  isManaged,
  isUnavailable,
  isUpdated,
  needsUpdate,
} from './availability.js';
import type { OsDemands } from './capabilities.js';
import { candidatesInOrder, standing, takesRoom, type SlotNeed, type StandingContext } from './candidates.js';
import type { NodeFacts, PoolFacts } from './facts.js';
import { resolveMaxUnavailable } from './max-unavailable.js';
import { clip, countOf, MAX_SENTENCE_LENGTH } from './sentences.js';
import type { NodeStart, PoolCounts, Turn, Waiting } from './turn.js';
import { explainWaiting } from './waiting.js';

/** So that the answer stays a small payload; the next turn starts the next ones. */
const MAX_STARTS = 100;

export interface PlanTurnFacts {
  readonly pool: PoolFacts;
  /** What the pool's target asks of the operating system; absent: nothing. */
  readonly demands?: OsDemands | undefined;
  /** All members of the pool, managed or not, in any order. */
  readonly members: readonly NodeFacts[];
  /** Names of the nodes whose update is running. */
  readonly inFlight: readonly string[];
  /** Those in flight whose Node object is gone, or has another uid than the update is for. */
  readonly gone: readonly string[];
  /** Node name to the epoch milliseconds before which it shall not be started. */
  readonly resting: Readonly<Record<string, number>>;
  /** Epoch milliseconds. */
  readonly now: number;
}

/** In flight, without those whose machine no longer exists: they hold no slot. */
function running({ inFlight, gone }: PlanTurnFacts): string[] {
  const lost = new Set(gone);
  return inFlight.filter((name) => !lost.has(name));
}

/** Names of everything that takes a slot: what the facts show united with what runs. */
function takenSlots(facts: PlanTurnFacts, isTaken: (node: NodeFacts) => boolean): Set<string> {
  return new Set([...running(facts), ...facts.members.filter(isTaken).map((node) => node.name)]);
}

/** Counts the members; `unavailable` is the number of slots taken, nodes in flight included. */
function countMembers(facts: PlanTurnFacts): PoolCounts {
  const { members, pool } = facts;
  const updated = members.filter((node) => isUpdated(node, pool.target));
  return {
    machines: members.length,
    updated: updated.length,
    ready: updated.filter((node) => node.ready && !node.unschedulable).length,
    unavailable: takenSlots(facts, (node) => isUnavailable(node, pool.target)).size,
    degraded: members.filter(isDegraded).length,
    unmanaged: members.filter((node) => !isManaged(node)).length,
  };
}

/**
 * Chooses the updates that may start. A fresh node needs a slot that nothing takes. One that is Degraded takes one by
 * that, but starts only where those that were granted one leave room. One that was granted its slot and still carries
 * workloads starts as long as fewer nodes than allowed are really out of service, and one that we took out of service
 * always: only its update brings it back.
 */
function chooseStarts(facts: PlanTurnFacts, context: StandingContext, limit: number): NodeStart[] {
  const roomFor = (slot: SlotNeed) => limit - takenSlots(facts, (node) => takesRoom(node, slot, context.target)).size;
  const room: Record<SlotNeed, number> = {
    none: roomFor('none'),
    unheld: roomFor('unheld'),
    held: roomFor('held'),
    down: Number.POSITIVE_INFINITY,
  };
  const starts: NodeStart[] = [];
  for (const { node, slot } of candidatesInOrder(facts.members, context)) {
    if (starts.length === MAX_STARTS) break;
    if (room[slot] <= 0) continue;
    room[slot] -= 1;
    starts.push({ node: node.name, nodeUid: node.uid, target: context.target, current: currentConfig(node) });
  }
  return starts;
}

function toReconsider(facts: PlanTurnFacts): string[] {
  const { pool, members } = facts;
  const names = new Set(running(facts));
  const open = members.filter((node) => names.has(node.name) && !isApplying(node));
  if (pool.deleting) return open.filter((node) => isGranted(node) || hasOurCordon(node)).map((node) => node.name);
  if (pool.paused || pool.target === undefined) return [];
  return open.filter((node) => isGranted(node) && node.desired !== pool.target).map((node) => node.name);
}

/** The turn of a pool in which nothing may start, whoever its members are. */
function idleTurn(facts: PlanTurnFacts, code: 'PoolDeleting' | 'NothingRendered', why: string): Waiting | null {
  const count = running(facts).length;
  if (count === 0) return null;
  return {
    code,
    sentence: clip(
      `MachineConfigPool ${facts.pool.name} ${why}; ${countOf(count, 'running update')} will end`,
      MAX_SENTENCE_LENGTH,
    ),
  };
}

/**
 * Decides what may happen next in a pool: which updates start, which running ones have become pointless or out of date,
 * and, when nothing starts, why. Never lets the starts take more slots than maxUnavailable leaves, counting what runs
 * whether or not the facts show it already. The same input gives the same answer, in any order of members.
 */
export function planTurn(facts: PlanTurnFacts): Turn {
  const { pool, members, now, resting } = facts;
  const limit = resolveMaxUnavailable(pool.maxUnavailable, members.length, pool.name);
  const counts = countMembers(facts);
  const base = {
    cancel: facts.inFlight.filter((name) => facts.gone.includes(name)),
    reconsider: toReconsider(facts),
    counts,
    target: pool.target ?? null,
    maxUnavailable: limit.ok ? limit.limit : 0,
  };
  const idle = facts.inFlight.length === 0;
  if (pool.deleting) {
    return { ...base, start: [], done: idle, waiting: idleTurn(facts, 'PoolDeleting', 'is being deleted') };
  }
  const { target } = pool;
  if (target === undefined) {
    return { ...base, start: [], done: idle, waiting: idleTurn(facts, 'NothingRendered', 'has no rendered config') };
  }
  const context: StandingContext = {
    target,
    demands: facts.demands,
    inFlight: new Set(facts.inFlight),
    resting,
    now,
  };
  // Stopped, a pool has no slots to give, and what has begun is still brought to its end.
  const start = chooseStarts(facts, context, pool.paused || !limit.ok ? 0 : limit.limit);
  const done = idle && members.every((node) => !isManaged(node) || !needsUpdate(node, target));
  if (done || start.length > 0) return { ...base, start, done, waiting: null };
  const standings = members.map((node) => ({ node, standing: standing(node, context) }));
  const waiting = explainWaiting({
    pool,
    target,
    limit,
    members: standings,
    inFlight: running(facts),
    taken: counts.unavailable,
  });
  return { ...base, start, done, waiting };
}

/** Whether a rollout of this pool has something to do or to wait for. */
export function needsRollout(pool: PoolFacts, members: readonly NodeFacts[]): boolean {
  const { target } = pool;
  return target !== undefined && !pool.deleting && members.some((node) => isManaged(node) && needsUpdate(node, target));
}
