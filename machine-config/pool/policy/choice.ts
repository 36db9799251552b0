import { holdsGrant } from '../availability.js';
import { urgency, type SlotNeed, type Standing } from '../candidates.js';
import type { NodeFacts } from '../facts.js';
import { inOrder } from './order.js';
import { isBegun, policyOf } from './rollout-facts.js';
import { roomIn, type Lack, type Room, type RoomFacts } from './room.js';
import type { CurrentStage } from './stages.js';

/** So that the answer stays a small payload; the next turn starts the next ones. */
const MAX_STARTS = 100;

export interface ChosenStart {
  readonly node: NodeFacts;
  /** Nothing of it has been begun: it needs whatever the policy asks for. */
  readonly begins: boolean;
}

export interface Choice {
  /** In the order in which they shall start. */
  readonly starts: readonly ChosenStart[];
  /** Those that could start but for room, by what they lack, in order. */
  readonly lacking: ReadonlyMap<Lack, readonly NodeFacts[]>;
  /** Those that could start but for their stage. */
  readonly later: readonly NodeFacts[];
  readonly room: Room;
}

interface ChoiceContext {
  readonly standings: readonly { readonly node: NodeFacts; readonly standing: Standing }[];
  readonly stage: CurrentStage | undefined;
  /** Whether anything may start that was not begun. */
  readonly mayBegin: boolean;
  /** Names of nodes that are not tried again, whatever was begun on them. */
  readonly givenUp: ReadonlySet<string>;
}

/**
 * It was granted a config that nobody wants any more, and was left with that: started, it gives its slot back or is
 * granted the present target, as `assign` decides.
 */
export function isLeftOver(node: NodeFacts, target: string): boolean {
  return holdsGrant(node) && !isBegun(node) && node.desired !== target;
}

/** Whether the present stage lets a node start. One that was granted the target got it in its stage. */
export function stageAdmits(stage: CurrentStage | undefined, target: string): (node: NodeFacts) => boolean {
  const names = new Set(stage?.members.map(({ name }) => name));
  const wasAdmitted = (node: NodeFacts) => holdsGrant(node) && !isLeftOver(node, target);
  return (node) => stage === undefined || names.has(node.name) || wasAdmitted(node);
}

/** The candidates in the order in which they shall start: those left half-way first, then as the policy orders them. */
export function candidatesInOrder(
  standings: ChoiceContext['standings'],
  order: Parameters<typeof inOrder>[2],
): { readonly node: NodeFacts; readonly slot: SlotNeed }[] {
  const candidates = standings.flatMap(({ node, standing }) =>
    standing.kind === 'candidate' ? [{ node, slot: standing.slot }] : [],
  );
  return inOrder(candidates, ({ node }) => node, order).sort((a, b) => urgency(a.node) - urgency(b.node));
}

/**
 * Chooses the updates that may start, as far as the policy lets any begin, the stage holds them and there is room.
 */
export function chooseStarts(facts: RoomFacts, { standings, stage, mayBegin, givenUp }: ChoiceContext): Choice {
  const { pool, target, controlPlane } = facts;
  const room = roomIn(facts);
  const isAdmitted = stageAdmits(stage, target);
  const starts: ChosenStart[] = [];
  const lacking = new Map<Lack, NodeFacts[]>();
  const later: NodeFacts[] = [];
  for (const { node, slot } of candidatesInOrder(standings, {
    order: policyOf(pool).order,
    last: controlPlane?.last,
  })) {
    if (starts.length === MAX_STARTS) break;
    if (givenUp.has(node.name)) continue;
    const mayGo = mayBegin && isAdmitted(node);
    const begins = !isBegun(node) && (mayGo || !isLeftOver(node, target));
    if (begins && !isAdmitted(node)) {
      later.push(node);
      continue;
    }
    const lack = room.lackFor(node, slot);
    if (lack !== undefined) {
      const others = lacking.get(lack);
      if (others === undefined) lacking.set(lack, [node]);
      else others.push(node);
    } else if (!begins || mayBegin) {
      room.take(node, slot);
      starts.push({ node, begins });
    }
  }
  return { starts, lacking, later, room };
}
