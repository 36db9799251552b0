import { RetryState, TimeoutType } from '@temporalio/common';
import { ActivityFailure, ApplicationFailure, CancelledFailure, TimeoutFailure } from '@temporalio/workflow';
import { describe, expect, it } from 'vitest';
import { classify } from '../../../workflows/classify.js';

const failed = (retryState: RetryState, cause: Error) =>
  new ActivityFailure('activity failed', 'apply', '7', retryState, 'worker', cause);

describe('classify', () => {
  it.each([TimeoutType.SCHEDULE_TO_START, TimeoutType.SCHEDULE_TO_CLOSE])('calls %s unreachable', (type) => {
    const error = failed(RetryState.TIMEOUT, new TimeoutFailure('timeout', undefined, type));
    expect(classify(error)).toEqual({ kind: 'unreachable' });
  });

  it.each([
    ['NotRebootedYet', 'NotRebooted'],
    ['RebootInhibited', 'RebootInhibited'],
  ])('takes %s as what was the matter when a worker said it to the end', (said, code) => {
    const error = failed(RetryState.TIMEOUT, ApplicationFailure.create({ type: said, message: 'why' }));
    expect(classify(error)).toEqual({ kind: 'refused', code, reason: 'why' });
  });

  it('calls a limit that ran out between other attempts unreachable', () => {
    const error = failed(RetryState.TIMEOUT, ApplicationFailure.create({ type: 'NodeNotReady', message: 'not yet' }));
    expect(classify(error)).toEqual({ kind: 'unreachable' });
  });

  it('calls a host that died while its step was being cancelled cancelled', () => {
    const error = failed(
      RetryState.CANCEL_REQUESTED,
      new TimeoutFailure('timeout', undefined, TimeoutType.START_TO_CLOSE),
    );
    expect(classify(error)).toEqual({ kind: 'cancelled' });
    expect(classify(new CancelledFailure('cancelled'))).toEqual({ kind: 'cancelled' });
    expect(classify(failed(RetryState.NON_RETRYABLE_FAILURE, new CancelledFailure('cancelled')))).toEqual({
      kind: 'cancelled',
    });
  });

  it('passes on what a step answered', () => {
    const error = failed(
      RetryState.NON_RETRYABLE_FAILURE,
      ApplicationFailure.nonRetryable('no room for /etc/motd', 'Unplannable'),
    );
    expect(classify(error)).toEqual({ kind: 'refused', code: 'Unplannable', reason: 'no room for /etc/motd' });
  });

  it('throws a surprise again', () => {
    const surprise = new TypeError('a bug');
    expect(() => classify(surprise)).toThrow(surprise);
  });
});
