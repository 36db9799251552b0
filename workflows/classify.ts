import { RetryState } from '@temporalio/common';
import { ActivityFailure, ApplicationFailure, isCancellation, TimeoutFailure } from '@temporalio/workflow';

/** What the failure of a step means for the update of its node. */
export type StepFailure =
  | { readonly kind: 'cancelled' }
  /** Nobody answered on the node's queue in time. */
  | { readonly kind: 'unreachable' }
  /** The step answered that it cannot be done; `code` is a FailureCode. */
  | { readonly kind: 'refused'; readonly code: string; readonly reason: string };

/** Failures with which a worker that is there answers until the limit is over: the last one tells what the matter is. */
const LAST_WORDS: Readonly<Record<string, string>> = {
  NotRebootedYet: 'NotRebooted',
  RebootInhibited: 'RebootInhibited',
};

/**
 * Reads the failure of a node's step. Anything else than a failed activity is a surprise and is thrown again.
 *
 * A host that died while its step was being cancelled shows as a timeout with retry state CANCEL_REQUESTED; a queue that
 * nobody polls as SCHEDULE_TO_START or, after a lost attempt, as SCHEDULE_TO_CLOSE. A limit that runs out between
 * attempts leaves the last attempt's own failure as the cause, with retry state TIMEOUT.
 */
export function classify(error: unknown): StepFailure {
  if (isCancellation(error)) return { kind: 'cancelled' };
  if (!(error instanceof ActivityFailure)) throw error;
  const { cause, retryState } = error;
  if (retryState === RetryState.CANCEL_REQUESTED) return { kind: 'cancelled' };
  if (cause instanceof TimeoutFailure) return { kind: 'unreachable' };
  if (cause instanceof ApplicationFailure) {
    const code = cause.type ?? 'Unknown';
    if (retryState !== RetryState.TIMEOUT) return { kind: 'refused', code, reason: cause.message };
    const lastWord = LAST_WORDS[code];
    return lastWord === undefined
      ? { kind: 'unreachable' }
      : { kind: 'refused', code: lastWord, reason: cause.message };
  }
  throw error;
}
