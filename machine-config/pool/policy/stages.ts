import { matchesSelector } from '../../api/label-selector.js';
import { durationOr } from '../../api/duration.js';
import type { Stage } from '../../api/rollout-policy.js';
import { holdsGrant, isManaged } from '../availability.js';
import type { NodeFacts } from '../facts.js';
import { inOrder } from './order.js';
import { isFinished, policyOf, updatedAt, type RolloutFacts } from './rollout-facts.js';

/** The nodes that no stage holds go last, as if somebody had written this one. */
const LAST_STAGE: Stage = { name: 'rest' };

export interface StageMembers {
  readonly stage: Stage;
  /** At least one. */
  readonly members: readonly NodeFacts[];
}

/** The stage that a rollout is in. */
export interface CurrentStage extends StageMembers {
  /** It and those before it. */
  readonly soFar: readonly StageMembers[];
  /**
   * Epoch milliseconds at which it may begin, or might have begun: the stages before it are updated and have soaked.
   * Undefined: there is none before it that this rollout has updated.
   */
  readonly opensAt: number | undefined;
  /** This rollout has updated a node of it since it opened: what has to hold before it begins was asked. */
  readonly begun: boolean;
}

/**
 * Who could be in a stage. Nodes without a worker, nodes that are being deleted, and those held back before they were
 * updated are in none: nothing is going to happen on them, so no stage waits for them, and none is spent on them.
 */
function canBeInStage(node: NodeFacts, target: string): boolean {
  if (!isManaged(node) || node.deleting) return false;
  return node.hold === undefined || holdsGrant(node) || isFinished(node, target);
}

/**
 * The order in which stages take their nodes: what this rollout has updated, then what it is at, then the order of the
 * policy. So a stage keeps its nodes, whatever joins the pool later.
 */
function stageOrder({ pool, members, target, controlPlane }: RolloutFacts): NodeFacts[] {
  const able = members.filter((node) => canBeInStage(node, target));
  const ordered = inOrder(able, (node) => node, { order: policyOf(pool).order, last: controlPlane?.last });
  const rank = (node: NodeFacts) =>
    updatedAt(node, pool) ?? (holdsGrant(node) ? Number.MAX_SAFE_INTEGER : Number.POSITIVE_INFINITY);
  return ordered
    .map((node) => ({ node, rank: rank(node) }))
    .sort((a, b) => (a.rank === b.rank ? 0 : a.rank - b.rank))
    .map(({ node }) => node);
}

function sizeOf({ count, percent }: Stage, all: number): number {
  if (count !== undefined) return count;
  return percent === undefined ? Number.POSITIVE_INFINITY : Math.ceil((Number.parseInt(percent, 10) * all) / 100);
}

/** Which nodes are in which stage, those without nodes left out; the last one holds what is left. */
export function stagesOf(facts: RolloutFacts): StageMembers[] {
  const { stages } = policyOf(facts.pool);
  if (stages === undefined || stages.length === 0) return [];
  let left = stageOrder(facts);
  const all = left.length;
  const found: StageMembers[] = [];
  for (const stage of [...stages, LAST_STAGE]) {
    const fits = ({ labels }: NodeFacts) =>
      stage.nodeSelector === undefined || matchesSelector(stage.nodeSelector, labels);
    const size = sizeOf(stage, all);
    const taken = new Set(left.filter(fits).slice(0, size));
    left = left.filter((node) => !taken.has(node));
    if (taken.size > 0) found.push({ stage, members: [...taken] });
  }
  return found;
}

/** Epoch milliseconds at which a stage that is updated has soaked; undefined: this rollout has updated none of it. */
function soakedAt({ stage, members }: StageMembers, facts: RolloutFacts): number | undefined {
  const times = members.flatMap((node) => updatedAt(node, facts.pool) ?? []);
  if (times.length === 0) return undefined;
  return times.reduce((a, b) => Math.max(a, b)) + durationOr(stage.soak, 0);
}

/** The first stage that is not wholly updated; undefined: there are no stages, or nothing is left to update. */
export function currentStage(facts: RolloutFacts): CurrentStage | undefined {
  const stages = stagesOf(facts);
  const index = stages.findIndex(
    ({ members }) => !members.every((node) => isFinished(node, facts.target) && !facts.running.has(node.name)),
  );
  const current = stages[index];
  if (current === undefined) return undefined;
  const before = stages.slice(0, index).flatMap((stage) => soakedAt(stage, facts) ?? []);
  const opensAt = before.length === 0 ? undefined : before.reduce((a, b) => Math.max(a, b));
  const begun = current.members.some((node) => (updatedAt(node, facts.pool) ?? -1) >= (opensAt ?? 0));
  return { ...current, soFar: stages.slice(0, index + 1), opensAt, begun };
}
