import type { MachineConfigPoolStatus, PoolConditionType, PoolRollout } from '../api/machine-config-pool.js';
import { countOf } from './sentences.js';

/** What happened to a pool, for `kubectl describe mcp` and `kubectl get events`. */
export type PoolEventReason =
  | 'RenderedConfigGenerated'
  | 'RenderFailed'
  | 'RolloutStarted'
  | 'Completed'
  | 'Halted'
  | 'RolledBack'
  | 'Approved'
  /** Somebody stopped everything. */
  | 'Stopped'
  /** Nothing starts, for a while already. */
  | 'Waiting'
  /** Another custom pool selects a node of it. */
  | 'MembershipConflict';

export interface PoolEvent {
  readonly type: 'Normal' | 'Warning';
  readonly reason: PoolEventReason;
  readonly message: string;
}

const normal = (reason: PoolEventReason, message: string): PoolEvent => ({ type: 'Normal', reason, message });
const warning = (reason: PoolEventReason, message: string): PoolEvent => ({ type: 'Warning', reason, message });

function duration(from: string, to: string): string {
  const seconds = Math.max(0, Math.round((Date.parse(to) - Date.parse(from)) / 1000));
  if (seconds < 120) return `${seconds} s`;
  const minutes = Math.round(seconds / 60);
  return minutes < 120 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

function isSame(one: PoolRollout, other: PoolRollout): boolean {
  return one.target === other.target && one.startedAt === other.startedAt;
}

function ending(rollout: PoolRollout, next: PoolRollout | undefined): PoolEvent[] {
  const { target, startedAt, finishedAt, outcome, updated } = rollout;
  if (finishedAt === undefined) return [];
  if (outcome === 'Completed') {
    const took = duration(startedAt, finishedAt);
    return [normal('Completed', `${countOf(updated, 'node')} run ${target}, after ${took}`)];
  }
  if (outcome !== 'RolledBack') return [];
  const back = next === undefined ? 'the config before' : next.target;
  return [warning('RolledBack', `${target} failed, and the pool goes back to ${back}`)];
}

function ofRollouts(before: readonly PoolRollout[], after: readonly PoolRollout[]): PoolEvent[] {
  return after.flatMap((rollout, index) => {
    const known = before.find((each) => isSame(each, rollout));
    const { target, from, approvals = [] } = rollout;
    const origin = from === undefined ? '' : ` from ${from}`;
    const told = known?.approvals ?? [];
    return [
      ...(known === undefined ? [normal('RolloutStarted', `Brings the nodes${origin} to ${target}`)] : []),
      ...approvals
        .filter(({ stage }) => !told.some((each) => each.stage === stage))
        .map(({ stage, by }) => normal('Approved', `Stage ${stage} of ${target} was approved by ${by}`)),
      ...(known?.finishedAt === undefined ? ending(rollout, after[index + 1]) : []),
    ];
  });
}

/** What there is to tell of a status that was written over another: each change once, whoever writes how often. */
export function statusEvents(before: MachineConfigPoolStatus | undefined, after: MachineConfigPoolStatus): PoolEvent[] {
  const conditionOf = (status: MachineConfigPoolStatus | undefined, type: PoolConditionType) =>
    status?.conditions?.find((each) => each.type === type);
  /** It became True. */
  const appeared = (type: PoolConditionType, reason: PoolEventReason): PoolEvent[] => {
    const now = conditionOf(after, type);
    if (now?.status !== 'True' || conditionOf(before, type)?.status === 'True') return [];
    return [warning(reason, now.message ?? '')];
  };
  const waits = conditionOf(after, 'Waiting');
  const isStopped = waits?.status === 'True' && waits.reason === 'Stopped';
  const wasStopped = conditionOf(before, 'Waiting')?.reason === 'Stopped';
  return [
    ...appeared('RenderDegraded', 'RenderFailed'),
    ...ofRollouts(before?.rollouts ?? [], after.rollouts ?? []),
    ...appeared('Halted', 'Halted'),
    ...appeared('MembershipConflict', 'MembershipConflict'),
    ...(isStopped && !wasStopped ? [warning('Stopped', waits.message ?? '')] : []),
  ];
}
