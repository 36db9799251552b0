import { isCordonedByOthers, isDegraded } from './availability.js';
import { oldestFirst, type BlockedBecause, type Standing } from './candidates.js';
import type { NodeFacts } from './facts.js';
import type { MemberStanding } from './policy/outlook.js';
import { clip, timeOf } from './sentences.js';
import type { WaitingCode } from './turn.js';

/** What keeps a node, or the slot that it has, from others. */
export type Obstacle =
  | 'degraded'
  | 'drifted'
  | 'rolledBack'
  | 'incapable'
  | 'held'
  | 'notReady'
  | 'cordoned'
  | 'undrained'
  | 'unreachable'
  | 'leftBehind';

export const CODES: Record<Obstacle, WaitingCode> = {
  degraded: 'NodesDegraded',
  drifted: 'NodesDegraded',
  rolledBack: 'NodesDegraded',
  incapable: 'NodesIncapable',
  held: 'Held',
  notReady: 'NodesNotReady',
  cordoned: 'NodesCordoned',
  undrained: 'NodesUndrained',
  unreachable: 'NodesUnreachable',
  leftBehind: 'SlotsTaken',
};

/** What helps, after the names. */
const ADVICE: Record<Obstacle, string> = {
  degraded: 'mend what the reason says, or go back to a config that works',
  drifted: 'put back what was changed there, or have it overwritten by the force file on the node',
  rolledBack: 'give the pool another config, or try again with `drydock node retry` or by the force file on the node',
  incapable: 'leave that out of the MachineConfigs of the pool, or move the node to a pool without it',
  held: 'let it go with `drydock node release`',
  notReady: 'bring the node back, or delete the Node object if the machine is gone',
  cordoned: 'uncordon it to let it be updated, or have it updated as it is with `drydock node release`',
  undrained: 'free the pods, or scale up what their budgets guard',
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
  held: 'held',
  cordonedByOthers: 'cordoned',
  resting: 'unreachable',
};

/** What blocks a node. One that rests because its drain took too long says so itself. */
function obstacleOf(node: NodeFacts, because: Exclude<BlockedBecause, 'unmanaged'>): Obstacle {
  return because === 'resting' && node.drainBlocked !== undefined ? 'undrained' : OBSTACLE_OF[because];
}

function describe(member: MemberStanding): string {
  const { node, standing } = member;
  if (node.deleting) return `${node.name} is being deleted`;
  if (isHeld(member)) return `${node.name} is held (${clip(node.hold ?? 'cordoned for a hold', 200)})`;
  if (!node.ready) return `${node.name} is not ready (${node.notReadyBecause ?? 'no reason given'})`;
  if (isCordonedByOthers(node)) return `${node.name} is unschedulable, not by us`;
  const detail = standing.kind === 'blocked' ? standing.detail : undefined;
  return detail === undefined ? describeUpdate(member) : `${node.name} cannot do ${detail}`;
}

/** What became of the last try to update it. */
function describeUpdate({ node, standing }: MemberStanding): string {
  const until = untilOf(standing);
  const again = until === undefined ? '' : `, next attempt at ${timeOf(until)}`;
  if (isDegraded(node)) return `${node.name} is ${node.state ?? 'Degraded'} (${clip(node.reason ?? '', 160)})${again}`;
  if (until !== undefined) return `${whyItRests(node)}${again}`;
  return `${node.name} began and was left behind`;
}

/** Its drain took too long, which it says itself, or nobody answered there. */
function whyItRests({ name, drainBlocked }: NodeFacts): string {
  if (drainBlocked === undefined) return `the worker of ${name} did not answer`;
  return `${name} was given back (${clip(drainBlocked.sentence, 300)})`;
}

/** People hold it: nothing starts on it, or what had begun was left cordoned for them. */
function isHeld({ node, standing }: MemberStanding): boolean {
  if (standing.kind === 'blocked' && standing.because === 'held') return true;
  return isCordonedByOthers(node) && (node.hold !== undefined || node.heldCordon === true);
}

function untilOf(where: Standing): number | undefined {
  return where.kind === 'blocked' ? where.until : undefined;
}

/** What keeps them, oldest node first. */
export function groupByObstacle(entries: readonly MemberStanding[], obstacleOf: (entry: MemberStanding) => Obstacle) {
  const groups = new Map<Obstacle, MemberStanding[]>();
  for (const entry of oldestFirst(entries, ({ node }) => node)) {
    const obstacle = obstacleOf(entry);
    const found = groups.get(obstacle);
    if (found === undefined) groups.set(obstacle, [entry]);
    else found.push(entry);
  }
  return groups;
}

/** The first of a group, each with what is the matter, how many more there are, and what helps. */
export function describeGroup(obstacle: Obstacle, entries: readonly MemberStanding[], most = 3): string {
  const described = entries.slice(0, most).map(describe);
  const more = entries.length > most ? [`${entries.length - most} more alike`] : [];
  return `${[...described, ...more].join(', ')}; ${ADVICE[obstacle]}`;
}

/** What keeps a slot without a running update, in the order in which it is worth telling. */
export function slotObstacle({ node, standing }: MemberStanding): Obstacle {
  if (isHeld({ node, standing })) return 'held';
  if (!node.ready || node.deleting) return 'notReady';
  if (isCordonedByOthers(node)) return 'cordoned';
  if (standing.kind === 'blocked' && standing.because !== 'unmanaged') return obstacleOf(node, standing.because);
  return isDegraded(node) ? 'degraded' : 'leftBehind';
}

/** The nodes that cannot start, by what keeps them; those without a worker are told of elsewhere. */
export function keptBack(members: readonly MemberStanding[]): Map<Obstacle, MemberStanding[]> {
  const kept = members.filter(({ standing }) => standing.kind === 'blocked' && standing.because !== 'unmanaged');
  return groupByObstacle(kept, ({ node, standing }) =>
    standing.kind === 'blocked' && standing.because !== 'unmanaged' ? obstacleOf(node, standing.because) : 'leftBehind',
  );
}

/** The one worth acting on first. */
export const OBSTACLES_IN_ORDER: readonly Obstacle[] = [
  'degraded',
  'drifted',
  'rolledBack',
  'incapable',
  'held',
  'notReady',
  'cordoned',
  'undrained',
  'unreachable',
];
