import type { MachineConfigPoolCondition } from '../api/machine-config-pool.js';
import { clip } from './sentences.js';

/** What a condition of a pool says, without the time of it. */
export type Verdict = Pick<MachineConfigPoolCondition, 'status' | 'reason' | 'message'>;

/** Conditions are read in lists and on phones: enough for a dozen reasons. */
export const MAX_MESSAGE_LENGTH = 2000;

export const no = (reason: string, message = ''): Verdict => ({ status: 'False', reason, message });
export const yes = (reason: string, message: string): Verdict => ({
  status: 'True',
  reason,
  message: clip(message, MAX_MESSAGE_LENGTH),
});

/** A condition as the status has it already; undefined: it has none of that type. */
export function keptVerdict(
  conditions: readonly MachineConfigPoolCondition[] | undefined,
  type: string,
): Verdict | undefined {
  const kept = conditions?.find((condition) => condition.type === type);
  return kept && { status: kept.status, reason: kept.reason ?? '', message: kept.message ?? '' };
}
