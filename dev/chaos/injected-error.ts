import type { Random } from './random.js';

export interface InjectedError {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** Only a write can meet a newer version of its object; a POST creates, or asks for an eviction. */
const MEETS_CONFLICT = new Set(['PUT', 'PATCH', 'DELETE']);
const REASONS = { 409: 'Conflict', 429: 'TooManyRequests', 500: 'InternalError' } as const;

/** An answer as the API server would give it when it is overloaded, at odds with somebody else's write, or broken. */
export function injectedError(method: string, random: Random): InjectedError {
  const status = random.pick(MEETS_CONFLICT.has(method) ? ([409, 409, 429, 500] as const) : ([429, 500] as const));
  return {
    status,
    headers: { 'content-type': 'application/json', ...(status === 429 ? { 'retry-after': '1' } : {}) },
    body: JSON.stringify({
      kind: 'Status',
      apiVersion: 'v1',
      metadata: {},
      status: 'Failure',
      message: 'made up by the chaos test',
      reason: REASONS[status],
      code: status,
      ...(status === 429 ? { details: { retryAfterSeconds: 1 } } : {}),
    }),
  };
}
