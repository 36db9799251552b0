import { isCordonedByOthers, isDegraded, isManaged, isUnavailable } from './availability.js';
import { oldestFirst, type BlockedBecause, type Standing } from './candidates.js';
import type { NodeFacts, PoolFacts } from './facts.js';
import type { MaxUnavailable } from './max-unavailable.js';
import { clip, countOf, MAX_SENTENCE_LENGTH, nameSome, timeOf } from './sentences.js';
import type { Waiting, WaitingCode } from './turn.js';

interface MemberStanding {
  readonly node: NodeFacts;
  readonly standing: Standing;
}

export interface WaitingContext {
  readonly pool: PoolFacts;
  readonly target: string;
  readonly limit: MaxUnavailable;
  readonly members: readonly MemberStanding[];
  /** Names of the nodes whose update is running. */
  readonly inFlight: readonly string[];
  /** How many slots are taken. */
  readonly taken: number;
}

type Obstacle =
  'degraded' | 'drifted' | 'rolledBack' | 'incapable' | 'notReady' | 'cordoned' | 'unreachable' | 'leftBehind';

const CODES: Record<Obstacle, WaitingCode> = {
  degraded: 'NodesDegraded',
  drifted: 'NodesDegraded',
  rolledBack: 'NodesDegraded',
  incapable: 'NodesIncapable',
  notReady: 'NodesNotReady',
  cordoned: 'NodesCordoned',
  unreachable: 'NodesUnreachable',
  leftBehind: 'SlotsTaken',
};

/** What helps, after the names. */
const ADVICE: Record<Obstacle, string> = {
  degraded: 'mend what the reason says, or go back to a config that works',
  drifted: 'put back what was changed there, or have it overwritten by the force file on the node',
  rolledBack: 'give the pool another config, or try again by the force file on the node',
  incapable: 'leave that out of the MachineConfigs of the pool, or move the node to a pool without it',
  notReady: 'bring the node back, or delete the Node object if the machine is gone',
  cordoned: 'uncordon it to let it be updated',
  unreachable: 'look whether the node worker runs there',
  leftBehind: 'its own update goes first',
};

const OBSTACLE_OF: Record<Exclude<BlockedBecause, 'unmanaged'>, Obstacle> = {
  drifted: 'drifted',
  rolledBack: 'rolledBack',
  cannot: 'incapable',
  backoff: 'degraded',
  notReady: 'notReady',
  deleting: 'notReady',
  cordonedByOthers: 'cordoned',
  resting: 'unreachable',
};

function describe({ node, standing }: MemberStanding): string {
  const until = untilOf(standing);
  const again = until === undefined ? '' : `, next attempt at ${timeOf(until)}`;
  if (node.deleting) return `${node.name} is being deleted`;
  if (!node.ready) return `${node.name} is not ready (${node.notReadyBecause ?? 'no reason given'})`;
  if (isCordonedByOthers(node)) return `${node.name} is unschedulable, not by us`;
  const detail = standing.kind === 'blocked' ? standing.detail : undefined;
  if (detail !== undefined) return `${node.name} cannot do ${detail}`;
  if (isDegraded(node)) return `${node.name} is ${node.state ?? 'Degraded'} (${clip(node.reason ?? '', 160)})${again}`;
  if (until !== undefined) return `the worker of ${node.name} did not answer${again}`;
  return `${node.name} began and was left behind`;
}

function untilOf(where: Standing): number | undefined {
  return where.kind === 'blocked' ? where.until : undefined;
}

function group(entries: readonly MemberStanding[], obstacleOf: (entry: MemberStanding) => Obstacle) {
  const groups = new Map<Obstacle, MemberStanding[]>();
  for (const entry of oldestFirst(entries, ({ node }) => node)) {
    const obstacle = obstacleOf(entry);
    const found = groups.get(obstacle);
    if (found === undefined) groups.set(obstacle, [entry]);
    else found.push(entry);
  }
  return groups;
}

function describeGroup(obstacle: Obstacle, entries: readonly MemberStanding[], most = 3): string {
  const described = entries.slice(0, most).map(describe);
  const more = entries.length > most ? [`${entries.length - most} more alike`] : [];
  return `${[...described, ...more].join(', ')}; ${ADVICE[obstacle]}`;
}

/** What keeps a slot without a running update, in the order in which it is worth telling. */
function slotObstacle({ node, standing }: MemberStanding): Obstacle {
  if (!node.ready || node.deleting) return 'notReady';
  if (isCordonedByOthers(node)) return 'cordoned';
  if (standing.kind === 'blocked' && standing.because !== 'unmanaged') return OBSTACLE_OF[standing.because];
  return isDegraded(node) ? 'degraded' : 'leftBehind';
}

/** Nodes could start, but there is no room: who takes it. */
function noRoom(context: WaitingContext, limit: number, waiting: number): Omit<Waiting, 'until'> {
  const running = new Set(context.inFlight);
  const holders = context.members.filter(({ node }) => !running.has(node.name) && isUnavailable(node, context.target));
  const groups = group(holders, slotObstacle);
  const start = `${countOf(waiting, 'node')} of pool ${context.pool.name} ${waiting === 1 ? 'waits' : 'wait'} for a slot, ${context.taken} of ${limit} taken`;
  const updates = running.size === 0 ? [] : [`updates run on ${nameSome([...context.inFlight].sort())}`];
  const parts = [...updates, ...[...groups].map(([obstacle, entries]) => describeGroup(obstacle, entries, 2))];
  const [only] = groups.keys();
  const code =
    only === undefined ? 'UpdatesRunning' : groups.size === 1 && running.size === 0 ? CODES[only] : 'SlotsTaken';
  return { code, sentence: `${start}: ${parts.join('; ')}` };
}

const ORDER: readonly Obstacle[] = [
  'degraded',
  'drifted',
  'rolledBack',
  'incapable',
  'notReady',
  'cordoned',
  'unreachable',
];

/** There is room, but nobody to take it: what keeps the rest from starting. */
function nobodyCanStart(context: WaitingContext): Omit<Waiting, 'until'> | null {
  const kept = context.members.filter(
    ({ standing }) => standing.kind === 'blocked' && standing.because !== 'unmanaged',
  );
  const groups = group(kept, ({ standing }) =>
    standing.kind === 'blocked' && standing.because !== 'unmanaged' ? OBSTACLE_OF[standing.because] : 'leftBehind',
  );
  const first = ORDER.find((obstacle) => groups.has(obstacle));
  const updates = context.inFlight.length === 0 ? [] : [`updates run on ${nameSome([...context.inFlight].sort())}`];
  if (first === undefined) {
    if (updates.length === 0) return null;
    return { code: 'UpdatesRunning', sentence: `Pool ${context.pool.name}: ${updates.join('')}` };
  }
  const told = ORDER.filter((obstacle) => groups.has(obstacle));
  const parts = [...told.map((obstacle) => describeGroup(obstacle, groups.get(obstacle) ?? [])), ...updates];
  return { code: CODES[first], sentence: `Pool ${context.pool.name}: ${parts.join('; ')}` };
}

function pausedSentence(context: WaitingContext): string {
  const { pool, target, inFlight } = context;
  const left = context.members.filter(({ standing }) => standing.kind !== 'settled' && standing.kind !== 'running');
  const managed = left.filter(({ node }) => isManaged(node));
  const cordoned = managed.filter(({ node }) => node.cordonedFor !== undefined).map(({ node }) => node.name);
  const parts = [
    `MachineConfigPool ${pool.name} is paused: ${countOf(managed.length, 'node')} not on ${target}`,
    ...(inFlight.length === 0 ? [] : [`${countOf(inFlight.length, 'running update')} will finish`]),
    ...(cordoned.length === 0 ? [] : [`still cordoned by us: ${nameSome(cordoned.sort())}`]),
    'set spec.paused to false to go on',
  ];
  return parts.join('; ');
}

function reason(context: WaitingContext): Omit<Waiting, 'until'> | null {
  const { pool, limit } = context;
  if (pool.paused) return { code: 'PoolPaused', sentence: pausedSentence(context) };
  if (!limit.ok) return { code: limit.code, sentence: limit.sentence };
  const eligible = context.members.filter(({ standing }) => standing.kind === 'candidate').length;
  return eligible > 0 ? noRoom(context, limit.limit, eligible) : nobodyCanStart(context);
}

/**
 * Why nothing starts in a pool that has a target and is not done: the one reason that is most worth acting on, with
 * counts and a few names. `until` is when the earliest back-off or rest of a node ends, if that may let it start.
 */
export function explainWaiting(context: WaitingContext): Waiting | null {
  const found = reason(context);
  if (found === null) return null;
  const sentence = clip(found.sentence, MAX_SENTENCE_LENGTH);
  const ends = context.members.flatMap(({ standing }) => untilOf(standing) ?? []);
  if (ends.length === 0 || context.pool.paused) return { code: found.code, sentence };
  return { code: found.code, sentence, until: ends.reduce((a, b) => Math.min(a, b)) };
}
