import type {
  MachineConfigPoolCondition,
  MachineConfigPoolStatus,
  PoolConditionType,
  PoolConfiguration,
} from '../api/machine-config-pool.js';
import type { NodeFacts, PoolFacts } from './facts.js';
import { needsRollout } from './plan-turn.js';
import { rolloutHistory } from './rollout-history.js';
import { countMembers } from './status-counts.js';
import {
  conflictVerdict,
  controlPlaneVerdict,
  degradedVerdict,
  haltedVerdict,
  nodeDegradedVerdict,
  renderDegradedVerdict,
} from './status-degraded.js';
import { progressOf } from './status-progress.js';
import { keptVerdict, type Verdict } from './status-verdict.js';
import { waitingVerdict, type WaitingReason } from './status-waiting.js';

export interface PoolStatusFacts {
  readonly pool: PoolFacts;
  /** metadata.generation of the pool that the facts were read from. */
  readonly generation: number | undefined;
  /** spec.configuration as a whole; its name is the pool's target, unless the pool goes back from it. */
  readonly configuration: PoolConfiguration | undefined;
  /** All members, managed or not. */
  readonly members: readonly NodeFacts[];
  /** One sentence for each node that this pool and another both select. */
  readonly conflicts?: readonly string[];
  readonly previous?: MachineConfigPoolStatus | undefined;
  /** What the last render said: an error, or null when it was good. Absent: as the previous status has it. */
  readonly renderError?: string | null | undefined;
  /** Why the last turn started nothing, null where it waits for nothing. Absent: as the previous status has it. */
  readonly waiting?: WaitingReason | null | undefined;
  /** ISO 8601, for conditions whose status changes. */
  readonly now: string;
}

/** The conditions that are ours, then those that others wrote; a time changes only with its status. */
function mergeConditions(
  verdicts: Partial<Record<PoolConditionType, Verdict>>,
  previous: readonly MachineConfigPoolCondition[],
  now: string,
): MachineConfigPoolCondition[] {
  const ours = Object.entries(verdicts).map(([type, verdict]) => {
    const before = previous.find((condition) => condition.type === type);
    const same = before?.status === verdict.status ? before.lastTransitionTime : undefined;
    return {
      type,
      status: verdict.status,
      lastTransitionTime: same ?? now,
      reason: verdict.reason ?? '',
      message: verdict.message ?? '',
    };
  });
  return [...ours, ...previous.filter((condition) => !Object.hasOwn(verdicts, condition.type))];
}

/**
 * Computes the status of a MachineConfigPool. The same facts over the answer of the last call give that answer again,
 * to the letter, so that nothing is written when nothing has changed. What others keep in the status stays.
 *
 * `configuration` is the last config that all nodes ran; it follows spec.configuration when the pool is Updated. An
 * empty pool with a target is Updated; a pool with a member that has no worker is not.
 */
export function poolStatus(facts: PoolStatusFacts): MachineConfigPoolStatus {
  const { pool, members, previous, configuration, generation, now } = facts;
  const counts = countMembers(pool, members);
  const isDue = needsRollout(pool, members);
  const kept = (type: PoolConditionType) => keptVerdict(previous?.conditions, type);
  const failures = {
    Halted: haltedVerdict(pool, members, Date.parse(now)),
    MembershipConflict: conflictVerdict(facts.conflicts ?? []),
    RenderDegraded: renderDegradedVerdict(facts.renderError, kept('RenderDegraded')),
    NodeDegraded: nodeDegradedVerdict(counts),
  };
  const verdicts = {
    ...progressOf(pool, counts),
    ...failures,
    Degraded: degradedVerdict({ pool, configuration, failures: Object.values(failures) }),
    Waiting: waitingVerdict({ pool, members, isDue, waiting: facts.waiting, kept: kept('Waiting') }),
    ControlPlane: controlPlaneVerdict(pool, members),
  };
  const rollouts = rolloutHistory({ pool, members, previous, updated: counts.updated, isDue, now });
  const isReached = counts.allUpdated && configuration !== undefined && configuration.name === pool.target;
  return {
    ...previous,
    ...(generation === undefined ? {} : { observedGeneration: generation }),
    ...(isReached ? { configuration } : {}),
    machineCount: counts.total,
    updatedMachineCount: counts.updated,
    readyMachineCount: counts.ready,
    unavailableMachineCount: counts.unavailable,
    degradedMachineCount: counts.degraded.length,
    conditions: mergeConditions(verdicts, previous?.conditions ?? [], now),
    ...(rollouts.length === 0 ? {} : { rollouts }),
  };
}
