import { ApplicationFailure, ApplicationFailureCategory } from '@temporalio/common';
import { FAILURE_CODES, type FailureCode } from '../../workflows/contract/failure-codes.js';
import { NotPossibleHere } from '../host/entry.js';
import { RebootInhibited } from '../host/host.js';
import { HostBusyError } from '../host/lock.js';

/** A failure of the contract: whether it is worth another attempt is written in the table of codes. */
export function failure(code: FailureCode, message: string, cause?: unknown): ApplicationFailure {
  return ApplicationFailure.create({
    message,
    type: code,
    nonRetryable: !FAILURE_CODES[code].retryable,
    ...(cause instanceof Error ? { cause } : {}),
  });
}

/** Something that is merely not so yet: no error in logs and metrics. */
export function notYet(
  code: 'NotRebootedYet' | 'NodeNotReady' | 'HostBusy' | 'RebootInhibited',
  message: string,
): ApplicationFailure {
  return ApplicationFailure.create({ message, type: code, category: ApplicationFailureCategory.BENIGN });
}

/** Errors of the host in the words of the contract; others pass through. */
export function translated(error: unknown): unknown {
  if (error instanceof HostBusyError) return notYet('HostBusy', error.message);
  if (error instanceof RebootInhibited) return notYet('RebootInhibited', error.message);
  if (error instanceof NotPossibleHere) return failure('Unplannable', error.message, error);
  return error;
}
