import { setTimeout as sleep } from 'node:timers/promises';

/** As the action ends, but not later than the limit: then it rejects and says what was waited for. */
export async function within<T>(limitMs: number, what: string, action: Promise<T>): Promise<T> {
  const ended = new AbortController();
  const tooLong = sleep(Math.max(1, limitMs), undefined, { signal: ended.signal }).then(() => {
    throw new Error(`waited ${limitMs / 1000} s for ${what}`);
  });
  // Whichever comes second is of no interest any more.
  tooLong.catch(() => undefined);
  action.catch(() => undefined);
  try {
    return await Promise.race([action, tooLong]);
  } finally {
    ended.abort();
  }
}
