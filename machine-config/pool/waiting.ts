import { isManaged, isUnavailable } from './availability.js';
import { CODES, describeGroup, groupByObstacle, keptBack, OBSTACLES_IN_ORDER, slotObstacle } from './obstacles.js';
import { awaitsGates } from './policy/after-node.js';
import { nextFailureAt } from './policy/failures.js';
import type { Outlook } from './policy/outlook.js';
import type { Closed } from './policy/verdict.js';
import { clip, countOf, MAX_SENTENCE_LENGTH, nameSome } from './sentences.js';
import type { Waiting, WaitingCode } from './turn.js';

export interface WaitingContext {
  readonly view: Outlook;
  /** What the gates before a start say. */
  readonly gates: Closed | undefined;
  /** What the gates say for which updated nodes keep their slots. */
  readonly slots: Closed | undefined;
  /** How many slots are taken. */
  readonly taken: number;
}

type Reason = Omit<Waiting, 'until'> & { readonly until?: number | undefined };

function runningUpdates({ rollout }: Outlook): string[] {
  return rollout.running.size === 0 ? [] : [`updates run on ${nameSome([...rollout.running].sort())}`];
}

/** Nodes could start, but there is no room: who takes it. */
function noRoom({ view, slots, taken }: WaitingContext, waiting: number): Reason {
  const { pool, target, running, limit } = view.rollout;
  const holders = view.standings.filter(({ node }) => !running.has(node.name) && isUnavailable(node, target));
  const groups = groupByObstacle(holders, slotObstacle);
  const gated = slots === undefined ? [] : [slots.sentence];
  const all =
    taken + view.standings.filter(({ node }) => awaitsGates(node, pool) && !isUnavailable(node, target)).length;
  const start = `${countOf(waiting, 'node')} of pool ${pool.name} ${waiting === 1 ? 'waits' : 'wait'} for a slot, ${all} of ${limit.ok ? limit.limit : 0} taken`;
  const parts = [
    ...runningUpdates(view),
    ...gated,
    ...[...groups].map(([obstacle, entries]) => describeGroup(obstacle, entries, 2)),
  ];
  const kinds: WaitingCode[] = [
    ...(running.size === 0 ? [] : (['UpdatesRunning'] as const)),
    ...(slots === undefined ? [] : [slots.code]),
    ...[...groups.keys()].map((obstacle) => CODES[obstacle]),
  ];
  const [only = 'SlotsTaken', ...others] = new Set(kinds);
  return {
    code: others.length === 0 ? only : 'SlotsTaken',
    sentence: `${start}: ${parts.join('; ')}`,
    until: slots?.until,
  };
}

/** There would be a slot, but not in their zone, or not at this pace. */
function noRoomOfItsKind({ view, slots }: WaitingContext): Reason | undefined {
  const { choice, rollout } = view;
  for (const lack of ['ZoneFull', 'PaceFull'] as const) {
    const [first, ...others] = choice.lacking.get(lack) ?? [];
    if (first === undefined) continue;
    const waiting = `${countOf(others.length + 1, 'node')} of pool ${rollout.pool.name} ${others.length === 0 ? 'waits' : 'wait'}`;
    const gated = slots === undefined ? '' : `; ${slots.sentence}`;
    return { code: lack, sentence: `${waiting}: ${choice.room.describe(lack, first)}${gated}`, until: slots?.until };
  }
  return undefined;
}

/** There is room, but nobody to take it: what keeps the rest, or those of a stage, from starting. */
function nobodyCanStart(view: Outlook, members = view.standings): Omit<Reason, 'until'> | null {
  const { pool } = view.rollout;
  const groups = keptBack(members);
  const told = OBSTACLES_IN_ORDER.filter((obstacle) => groups.has(obstacle));
  const [first] = told;
  const updates = runningUpdates(view);
  if (first === undefined) {
    if (updates.length === 0) return null;
    return { code: 'UpdatesRunning', sentence: `Pool ${pool.name}: ${updates.join('')}` };
  }
  const parts = [...told.map((obstacle) => describeGroup(obstacle, groups.get(obstacle) ?? [])), ...updates];
  return { code: CODES[first], sentence: `Pool ${pool.name}: ${parts.join('; ')}` };
}

/** Nodes of later stages could start: what the present one waits for. */
function stageWaits(view: Outlook): Reason {
  const { pool } = view.rollout;
  const names = new Set(view.stage?.members.map(({ name }) => name));
  const why = nobodyCanStart(
    view,
    view.standings.filter(({ node }) => names.has(node.name)),
  );
  const count = view.choice.later.length;
  return {
    code: 'StageWaits',
    sentence:
      `${countOf(count, 'node')} of pool ${pool.name} ${count === 1 ? 'waits' : 'wait'} for stage ` +
      `${view.stage?.stage.name ?? ''}, which is not wholly updated: ${why?.sentence ?? ''}`,
  };
}

function pausedSentence({ rollout, standings }: Outlook): string {
  const { pool, target, running } = rollout;
  const left = standings.filter(({ standing }) => standing.kind !== 'settled' && standing.kind !== 'running');
  const managed = left.filter(({ node }) => isManaged(node));
  const cordoned = managed.filter(({ node }) => node.cordonedFor !== undefined).map(({ node }) => node.name);
  const parts = [
    `MachineConfigPool ${pool.name} is paused: ${countOf(managed.length, 'node')} not on ${target}`,
    ...(running.size === 0 ? [] : [`${countOf(running.size, 'running update')} will finish`]),
    ...(cordoned.length === 0 ? [] : [`still cordoned by us: ${nameSome(cordoned.sort())}`]),
    'set spec.paused to false to go on',
  ];
  return parts.join('; ');
}

/** What stops the pool as a whole, by the word of people or for what went wrong. */
function stoppedReason({ rollout, stop }: Outlook): Reason | undefined {
  const { pool, limit } = rollout;
  if (stop?.code === 'Stopped') return stop;
  if (!limit.ok) return { code: limit.code, sentence: limit.sentence };
  return pool.paused ? undefined : stop;
}

/** Nodes could start: what they wait for. */
function startsWait(context: WaitingContext, eligible: number): Reason {
  const { view, gates } = context;
  const { lacking, later } = view.choice;
  const without = lacking.get('NoSlot')?.length ?? 0;
  const full = without === 0 ? undefined : noRoom(context, without);
  // Mending those comes first: whatever the pool waits for besides, nothing would start.
  if (full?.code === 'NodesDegraded' && without === eligible) return full;
  const policy = view.wait ?? gates;
  if (policy !== undefined) return policy;
  if (full !== undefined) return full;
  const kind = noRoomOfItsKind(context);
  if (kind !== undefined) return kind;
  return later.length > 0 ? stageWaits(view) : noRoom(context, eligible);
}

function reason(context: WaitingContext): Reason | null {
  const { view } = context;
  const { stop } = view;
  if (view.rollout.pool.paused && stop?.code !== 'Stopped') {
    return { code: 'PoolPaused', sentence: pausedSentence(view) };
  }
  const stopped = stoppedReason(view);
  if (stopped !== undefined) return stopped;
  const eligible = view.standings.filter(({ standing }) => standing.kind === 'candidate').length;
  return eligible > 0 ? startsWait(context, eligible) : nobodyCanStart(view);
}

/** Epoch milliseconds at which time alone may let something start, or changes what there is to say. */
function nextLook({ view }: WaitingContext, found: Reason): number | undefined {
  const { pool, members, now } = view.rollout;
  if (pool.paused || found.code === 'Stopped') return undefined;
  const ends = view.standings.flatMap(({ standing }) => (standing.kind === 'blocked' ? (standing.until ?? []) : []));
  const times = [...ends, found.until, nextFailureAt(pool, members, now)].filter((time) => time !== undefined);
  return times.length === 0 ? undefined : times.reduce((a, b) => Math.min(a, b));
}

/**
 * Why nothing starts in a pool that has a target and is not done: the one reason that is most worth acting on, with
 * counts and a few names. `until` is when the earliest of what passes by itself ends, if that may let a node start.
 */
export function explainWaiting(context: WaitingContext): Waiting | null {
  const found = reason(context);
  if (found === null) return null;
  const until = nextLook(context, found);
  const sentence = clip(found.sentence, MAX_SENTENCE_LENGTH);
  return { code: found.code, sentence, ...(until === undefined ? {} : { until }) };
}
