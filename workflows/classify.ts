import { RetryState } from '@temporalio/common';
import { ActivityFailure, ApplicationFailure, isCancellation, TimeoutFailure } from '@temporalio/workflow';

/** What the failure of a step means for the update of its node. */
export type StepFailure =
  | { readonly kind: 'cancelled' }
  /** Nobody answered on the node's queue in time. */
  | { readonly kind: 'unreachable' }
  /** The step answered that it cannot be done; `code` is a FailureCode. */
  | { readonly kind: 'refused'; readonly code: string; readonly reason: string };

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
    if (retryState === RetryState.TIMEOUT) return { kind: 'unreachable' };
    return { kind: 'refused', code: cause.type ?? 'Unknown', reason: cause.message };
  }
  throw error;
}
