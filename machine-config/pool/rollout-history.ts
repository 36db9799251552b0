import type { MachineConfigPoolStatus, PoolRollout } from '../api/machine-config-pool.js';
import type { NodeFacts, PoolFacts } from './facts.js';
import { failedNodes, isHalted } from './policy/failures.js';

/** A status is read as a whole, and more than these are of no use to anybody. */
const REMEMBERED_ROLLOUTS = 10;

export interface HistoryFacts {
  readonly pool: PoolFacts;
  readonly members: readonly NodeFacts[];
  readonly previous: Pick<MachineConfigPoolStatus, 'rollouts' | 'configuration'> | undefined;
  /** Members that run the target. */
  readonly updated: number;
  /** There is something to roll out. */
  readonly isDue: boolean;
  /** ISO 8601. */
  readonly now: string;
}

/** The approvals that are given for the target and not yet told; each is told once, with who gave it. */
function approvals({ pool, now }: HistoryFacts, told: PoolRollout['approvals'] = []): PoolRollout['approvals'] {
  const { approval, target } = pool;
  if (approval === undefined || approval.config !== target) return told;
  const untold = approval.stages.filter((stage) => !told.some((each) => each.stage === stage));
  return [...told, ...untold.map((stage) => ({ stage, by: approval.by ?? 'unknown', at: now }))];
}

function withApprovals(rollout: PoolRollout, facts: HistoryFacts): PoolRollout {
  const all = approvals(facts, rollout.approvals) ?? [];
  return all.length === 0 ? rollout : { ...rollout, approvals: all };
}

function begun(target: string, facts: HistoryFacts): PoolRollout {
  const from = facts.previous?.configuration?.name;
  return present(
    {
      target,
      ...(from === undefined || from === '' || from === target ? {} : { from }),
      startedAt: facts.now,
      outcome: 'Running',
      updated: facts.updated,
      failed: 0,
    },
    facts,
  );
}

/** How the rollout to the target stands, or how it ended. `failed` stays at the most that it was. */
function present(rollout: PoolRollout, facts: HistoryFacts): PoolRollout {
  if (rollout.finishedAt !== undefined) return rollout;
  const { pool, members, updated, isDue, now } = facts;
  const failed = Math.max(rollout.failed, failedNodes(pool, members, Date.parse(now)).length);
  const told = withApprovals({ ...rollout, updated, failed }, facts);
  if (!isDue) return { ...told, outcome: 'Completed', finishedAt: now };
  return { ...told, outcome: isHalted(pool, members, Date.parse(now)) ? 'Halted' : 'Running' };
}

/** Another target came before it was done. */
function ended(rollout: PoolRollout, { pool, now }: HistoryFacts): PoolRollout {
  if (rollout.finishedAt !== undefined) return rollout;
  const unhalted = rollout.outcome === 'Halted' ? 'Halted' : 'Superseded';
  return { ...rollout, outcome: pool.rollingBack === true ? 'RolledBack' : unhalted, finishedAt: now };
}

/**
 * The last ten rollouts of a pool, the present one last. One begins when nodes have to go to another target than the
 * last one's, and ends when all run it, or when the target changes again. A node that joins a pool that is done begins
 * none. The same facts over the last answer give that answer again.
 */
export function rolloutHistory(facts: HistoryFacts): PoolRollout[] {
  const past = facts.previous?.rollouts ?? [];
  const { target, deleting } = facts.pool;
  if (target === undefined || deleting) return past;
  const last = past.at(-1);
  const before = past.slice(0, -1);
  if (last?.target === target) return [...before, present(last, facts)];
  const closed = last === undefined ? [] : [...before, ended(last, facts)];
  return facts.isDue ? [...closed, begun(target, facts)].slice(-REMEMBERED_ROLLOUTS) : closed;
}
