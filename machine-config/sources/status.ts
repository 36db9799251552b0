import type { SourceCondition, SourceStatus } from '../api/source-status.js';
import type { SourceResult } from './source.js';

/** One line: what there is to say on an object that MachineConfigs are generated from. */
function messageOf({ problem, warnings }: Pick<SourceResult, 'problem' | 'warnings'>): string {
  if (problem !== undefined) return `Error: ${problem.message}`;
  return warnings.length === 0 ? 'Success' : `Success; but ${warnings.join('; ')}`;
}

/**
 * The status of an object that MachineConfigs are generated from: `Accepted`, and after it, for those that look at the
 * last condition only, `Success` or `Failure`. A time changes only with its status.
 */
export function sourceStatus(
  previous: SourceStatus | undefined,
  result: Pick<SourceResult, 'source' | 'problem' | 'warnings'>,
  now: string,
): SourceStatus {
  const message = messageOf(result);
  const isAccepted = result.problem === undefined;
  const reason = result.problem?.reason ?? 'Generated';
  const condition = (type: string, status: 'True' | 'False'): SourceCondition => {
    const before = previous?.conditions?.find((each) => each.type === type);
    const since = before?.status === status ? before.lastTransitionTime : undefined;
    return { type, status, lastTransitionTime: since ?? now, reason, message };
  };
  return {
    observedGeneration: result.source.generation,
    conditions: [
      condition('Accepted', isAccepted ? 'True' : 'False'),
      condition(isAccepted ? 'Success' : 'Failure', 'True'),
    ],
  };
}
