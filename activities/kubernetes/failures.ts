import { ApplicationFailure } from '@temporalio/common';
import { FAILURE_CODES, type FailureCode } from '../../workflows/contract/failure-codes.js';

/** The call that failed, for the message. */
export interface FailedCall {
  readonly verb: string;
  readonly kind: string;
  readonly name?: string | undefined;
  readonly namespace?: string | undefined;
}

/** First detail of every failure of the client. */
export interface KubernetesFailureDetail extends FailedCall {
  /** HTTP status; absent when the API server did not answer. */
  readonly status?: number;
  /** The server's reason, for example `AlreadyExists`. */
  readonly reason?: string;
}

/** The part of a Kubernetes `Status` object that we read. */
export interface StatusBody {
  readonly message?: string;
  readonly reason?: string;
  readonly details?: {
    readonly retryAfterSeconds?: number;
    readonly causes?: readonly { readonly reason?: string; readonly message?: string }[];
  };
}

export interface Refusal {
  readonly status: number;
  readonly body: StatusBody;
  readonly retryAfterSeconds?: number | undefined;
}

function codeOf(status: number): FailureCode {
  if (status === 404) return 'NotFound';
  if (status === 409) return 'Conflict';
  if (status === 401 || status === 403) return 'Forbidden';
  if (status >= 400 && status < 500 && status !== 408 && status !== 410 && status !== 429) return 'Invalid';
  return 'ApiUnavailable';
}

const oneLine = (text: string): string => text.replace(/\s+/g, ' ').trim().slice(0, 1000);

/** `get Node worker-1`, `create Pod shop/cart-1`, `list Pod`. */
function describeCall(call: FailedCall): string {
  const where = [call.namespace, call.name].filter((part) => part !== undefined && part !== '').join('/');
  return `${call.verb} ${call.kind}${where === '' ? '' : ` ${where}`}`;
}

/** The failure for an answer that is an error. */
export function refusedCall(call: FailedCall, refusal: Refusal, cause?: Error): ApplicationFailure {
  const { status, body } = refusal;
  const type = codeOf(status);
  const message = oneLine(body.message ?? '');
  const detail: KubernetesFailureDetail = {
    ...call,
    status,
    ...(body.reason === undefined ? {} : { reason: body.reason }),
  };
  return ApplicationFailure.create({
    message: `${describeCall(call)}: ${status}${message === '' ? '' : ` ${message}`}`,
    type,
    nonRetryable: !FAILURE_CODES[type].retryable,
    details: [detail],
    ...(cause === undefined ? {} : { cause }),
    ...(refusal.retryAfterSeconds === undefined ? {} : { nextRetryDelay: refusal.retryAfterSeconds * 1000 }),
  });
}

/** The failure for a call that got no answer; `why` in words, for example `no answer within 15 s`. */
export function unansweredCall(call: FailedCall, why: string, cause: unknown): ApplicationFailure {
  const detail: KubernetesFailureDetail = call;
  return ApplicationFailure.create({
    message: `${describeCall(call)}: ${oneLine(why)}`,
    type: 'ApiUnavailable' satisfies FailureCode,
    details: [detail],
    ...(cause instanceof Error ? { cause } : {}),
  });
}

/** True if the error is an ApplicationFailure with one of the codes. */
export function failedWith(error: unknown, ...codes: readonly FailureCode[]): error is ApplicationFailure {
  return error instanceof ApplicationFailure && (codes as readonly (string | null | undefined)[]).includes(error.type);
}

/** What the client knows of the failed call; absent if the error is not one of the client's. */
export function failureDetail(error: unknown): KubernetesFailureDetail | undefined {
  if (!(error instanceof ApplicationFailure)) return undefined;
  const detail = error.details?.[0] as Partial<KubernetesFailureDetail> | undefined;
  return typeof detail?.verb === 'string' && typeof detail.kind === 'string'
    ? (detail as KubernetesFailureDetail)
    : undefined;
}

/** True if a create met an object of that name; false for the conflict of a write with a newer version. */
export function alreadyExists(error: unknown): boolean {
  return failedWith(error, 'Conflict') && failureDetail(error)?.reason === 'AlreadyExists';
}

/** What a call answers, or undefined where the object is not there. */
export async function ifThere<T>(get: () => Promise<T>): Promise<T | undefined> {
  try {
    return await get();
  } catch (error) {
    if (failedWith(error, 'NotFound')) return undefined;
    throw error;
  }
}
