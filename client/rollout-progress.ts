import type { PoolFacts } from '../machine-config/pool/facts.js';
import { haltedSentence, haltOf, openFailure } from '../machine-config/pool/policy/failures.js';
import { paceOf } from '../machine-config/pool/policy/pace.js';
import { isFinished, policyOf, type RolloutFacts } from '../machine-config/pool/policy/rollout-facts.js';
import { currentStage, stagesOf } from '../machine-config/pool/policy/stages.js';
import { notYet } from '../machine-config/pool/policy/verdict.js';
import { windowState } from '../machine-config/pool/policy/windows.js';

export interface StageProgress {
  readonly name: string;
  readonly nodes: number;
  readonly updated: number;
  /** It needs an approval, and who gave it for the present config; null: nobody yet. */
  readonly approvedBy?: string | null;
}

/** How far the rollout of a pool is, and what people have said about it, as far as Kubernetes alone tells. */
export interface RolloutProgress {
  /** Why everything is stopped. */
  readonly stop?: string;
  readonly halted?: string;
  readonly stages: readonly StageProgress[];
  /** How many nodes may be in an update at once by now, where the pool has a pace. */
  readonly pace?: { readonly now: number; readonly atMost: number };
  /** `nextStart` is absent where no window opens within a year. */
  readonly window?: { readonly open: boolean; readonly nextStart?: string; readonly runNow: boolean };
  readonly held: readonly { readonly node: string; readonly reason: string }[];
  /** Nodes whose last update to the present config failed. */
  readonly failed: readonly string[];
  /** What the policy waits for, where the engine does not say it itself. */
  readonly waiting?: string;
}

/** `stop`: why everything is stopped. */
export function rolloutProgress(facts: RolloutFacts, stop: string | undefined): RolloutProgress {
  const { pool, members, target } = facts;
  const halt = haltOf(pool, members, facts.now, facts.limit);
  const isDone = members.every((node) => isFinished(node, target));
  // Pools that go first, and their number, are left to the engine: it knows the others.
  const waits = isDone ? undefined : notYet({ ...facts, cluster: { others: [] } }, currentStage(facts));
  const optional = {
    stop,
    halted: halt && haltedSentence(pool, halt),
    pace: paceNow(facts),
    window: windowNow(pool, facts.now),
    waiting: waits?.code === 'AfterPool' ? undefined : waits?.sentence,
  };
  return {
    stages: stagesOf(facts).map(({ stage, members: nodes }) => ({
      name: stage.name,
      nodes: nodes.length,
      updated: nodes.filter((node) => isFinished(node, target)).length,
      ...(stage.approval === 'Required' ? { approvedBy: approverOf(pool, stage.name) } : {}),
    })),
    held: members.flatMap(({ name, hold }) => (hold === undefined ? [] : [{ node: name, reason: hold }])),
    failed: members.filter((node) => openFailure(node)?.target === target).map(({ name }) => name),
    ...Object.fromEntries(Object.entries(optional).filter(([, value]) => value !== undefined)),
  };
}

function approverOf({ approval, target }: PoolFacts, stage: string): string | null {
  if (approval === undefined || approval.config !== target || !approval.stages.includes(stage)) return null;
  return approval.by ?? 'somebody';
}

function paceNow({ pool, members, limit }: RolloutFacts): RolloutProgress['pace'] {
  if (policyOf(pool).pace === undefined || !limit.ok) return undefined;
  return { now: paceOf(pool, members, limit.limit), atMost: limit.limit };
}

function windowNow(pool: PoolFacts, now: number): RolloutProgress['window'] {
  const { windows } = policyOf(pool);
  if (windows === undefined) return undefined;
  const state = windowState(windows, now);
  const next = state.kind === 'closed' ? state.nextStart : undefined;
  return {
    open: state.kind === 'open',
    ...(next === undefined ? {} : { nextStart: new Date(next).toISOString() }),
    runNow: pool.runNow !== undefined && pool.runNow === pool.target,
  };
}

/** At most this many nodes by name in one line. */
const NAMED = 10;

/** One line for each thing that there is to say. */
export function progressLines(progress: RolloutProgress): string[] {
  const { stop, halted, stages, pace, window, held, failed } = progress;
  const more = held.length > NAMED ? [`${held.length - NAMED} more`] : [];
  const some = held.slice(0, NAMED).map(({ node, reason }) => `${node} (${reason})`);
  return [
    ...(stop === undefined ? [] : [`everything is stopped (${stop}): drydock go`]),
    ...(halted === undefined ? [] : [`halted: ${halted}`]),
    ...(stages.length === 0 ? [] : [`stages: ${stages.map(stageInWords).join('; ')}`]),
    ...(pace === undefined ? [] : [`pace: ${pace.now} at once, at most ${pace.atMost}`]),
    ...(window === undefined ? [] : [`window: ${windowInWords(window)}`]),
    ...(held.length === 0 ? [] : [`held: ${[...some, ...more].join(', ')}`]),
    ...(failed.length === 0 || halted !== undefined ? [] : [`failed: ${failed.slice(0, NAMED).join(', ')}`]),
  ];
}

function stageInWords({ name, nodes, updated, approvedBy }: StageProgress): string {
  const approval =
    approvedBy === undefined ? '' : approvedBy === null ? ', not approved yet' : `, approved by ${approvedBy}`;
  return `${name} ${updated} of ${nodes}${approval}`;
}

function windowInWords({ open, nextStart, runNow }: NonNullable<RolloutProgress['window']>): string {
  if (runNow) return 'not waited for, as somebody said';
  if (open) return 'open';
  return nextStart === undefined ? 'closed, and none opens within a year' : `closed, the next one opens ${nextStart}`;
}
