import {
  currentConfig,
  hasOurCordon,
  isApplying,
  isDegraded,
  isGranted,
  isManaged,
  isUpdated,
  needsUpdate,
} from './availability.js';
import type { NodeFacts, PoolFacts } from './facts.js';
import { limitOf } from './max-unavailable.js';
import type { ChosenStart } from './policy/choice.js';
import { rebootTimeout } from './policy/failures.js';
import { closedGates, gatesInQuestion, passedNodes, type GateAnswers, type GateQuestion } from './policy/gates.js';
import { outlook, runningIn, type Outlook, type OutlookFacts } from './policy/outlook.js';
import { slotsTaken } from './policy/room.js';
import { clip, countOf, MAX_SENTENCE_LENGTH } from './sentences.js';
import type { NodeStart, PoolCounts, Turn, Waiting } from './turn.js';
import { explainWaiting } from './waiting.js';

export interface PlanTurnFacts extends OutlookFacts {
  /** What the gates answered that are in question; see gatesInQuestion. One that is missing means wait. */
  readonly gateAnswers?: GateAnswers | undefined;
  /** Those in flight that are no members any more, by their labels or the pools' selectors; absent: none. */
  readonly strayed?: readonly NodeFacts[] | undefined;
}

/** Counts the members; `unavailable` is the number of slots taken, nodes in flight included. */
function countMembers(facts: PlanTurnFacts): PoolCounts {
  const { members, pool } = facts;
  const updated = members.filter((node) => isUpdated(node, pool.target));
  return {
    machines: members.length,
    updated: updated.length,
    ready: updated.filter((node) => node.ready && !node.unschedulable).length,
    unavailable: slotsTaken(members, runningIn(facts), pool.target).size,
    degraded: members.filter(isDegraded).length,
    unmanaged: members.filter((node) => !isManaged(node)).length,
  };
}

function toReconsider(facts: PlanTurnFacts): string[] {
  const { pool, members } = facts;
  const names = new Set(runningIn(facts));
  const open = members.filter((node) => names.has(node.name) && !isApplying(node));
  if (pool.deleting) return open.filter((node) => isGranted(node) || hasOurCordon(node)).map((node) => node.name);
  const strayed = (facts.strayed ?? []).filter((node) => !isApplying(node)).map((node) => node.name);
  if (pool.paused || pool.target === undefined) return strayed;
  const outdated = open.filter((node) => isGranted(node) && node.desired !== pool.target);
  return [...outdated.map((node) => node.name), ...strayed];
}

/** The turn of a pool in which nothing may start, whoever its members are. */
function idleTurn(facts: PlanTurnFacts, code: 'PoolDeleting' | 'NothingRendered', why: string): Waiting | null {
  const count = runningIn(facts).length;
  if (count === 0) return null;
  return {
    code,
    sentence: clip(
      `MachineConfigPool ${facts.pool.name} ${why}; ${countOf(count, 'running update')} will end`,
      MAX_SENTENCE_LENGTH,
    ),
  };
}

/** The starts that the gates let through, and what they say to the others. */
function throughGates({ choice, rollout }: Outlook, questions: readonly GateQuestion[], answers: GateAnswers) {
  const before = questions.filter(({ place }) => place !== 'afterNode');
  const gates = closedGates(before, answers, { pool: rollout.pool.name, now: rollout.now });
  return { gates, starts: gates === undefined ? choice.starts : choice.starts.filter(({ begins }) => !begins) };
}

function nodeStart(pool: PoolFacts, target: string): (chosen: ChosenStart) => NodeStart {
  const limit = pool.rollout?.rebootTimeout === undefined ? {} : { rebootLimitSeconds: rebootTimeout(pool) / 1000 };
  return ({ node }) => ({ node: node.name, nodeUid: node.uid, target, current: currentConfig(node), ...limit });
}

/** The turn of a pool that wants its members to run a config. */
function openTurn(
  facts: PlanTurnFacts,
  target: string,
  unavailable: number,
): Pick<Turn, 'start' | 'waiting' | 'done' | 'passed'> {
  const { pool, members, gateAnswers = {} } = facts;
  const questions = gatesInQuestion(facts);
  const passed = passedNodes(questions, gateAnswers);
  const view = outlook(facts, target, passed);
  const { gates, starts } = throughGates(view, questions, gateAnswers);
  const done = facts.inFlight.length === 0 && members.every((node) => !isManaged(node) || !needsUpdate(node, target));
  const base = {
    start: starts.map(nodeStart(pool, target)),
    done,
    ...(passed.size === 0 ? {} : { passed: [...passed].sort() }),
  };
  if (done || starts.length > 0) return { ...base, waiting: null };
  const after = questions.filter(
    ({ place, nodes }) => place === 'afterNode' && nodes.some((node) => !passed.has(node)),
  );
  const slots = closedGates(after, gateAnswers, { pool: pool.name, now: facts.now });
  return { ...base, waiting: explainWaiting({ view, gates, slots, taken: unavailable }) };
}

/**
 * Decides what may happen next in a pool: which updates start, which running ones have become pointless or out of date,
 * and, when nothing starts, why. Never lets the starts take more slots than maxUnavailable leaves, counting what runs
 * whether or not the facts show it already. The same input gives the same answer, in any order of members.
 */
export function planTurn(facts: PlanTurnFacts): Turn {
  const { pool, members } = facts;
  const limit = limitOf(pool, members);
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
  if (pool.target === undefined) {
    return { ...base, start: [], done: idle, waiting: idleTurn(facts, 'NothingRendered', 'has no rendered config') };
  }
  return { ...base, ...openTurn(facts, pool.target, counts.unavailable) };
}

/** Whether a rollout of this pool has something to do or to wait for. */
export function needsRollout(pool: PoolFacts, members: readonly NodeFacts[]): boolean {
  const { target } = pool;
  return target !== undefined && !pool.deleting && members.some((node) => isManaged(node) && needsUpdate(node, target));
}
