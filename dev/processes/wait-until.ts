import { setTimeout as sleep } from 'node:timers/promises';

export interface WaitOptions {
  /** What is waited for, for the error: `kube-apiserver to be ready`. */
  readonly what: string;
  readonly timeoutMs: number;
  readonly intervalMs?: number;
  /** Called before each try; throw to give up early, for example because the process has ended. */
  readonly check?: () => void;
}

/** Tries until the condition returns something other than undefined or false; an exception of it counts as "not yet". */
export async function waitUntil<T>(condition: () => Promise<T | undefined | false>, options: WaitOptions): Promise<T> {
  const deadline = Date.now() + options.timeoutMs;
  let last: unknown;
  for (;;) {
    options.check?.();
    try {
      const value = await condition();
      if (value !== undefined && value !== false) return value;
      last = undefined;
    } catch (error) {
      last = error;
    }
    if (Date.now() >= deadline) {
      const why = last instanceof Error ? `: ${last.message}` : '';
      throw new Error(`waited ${options.timeoutMs / 1000} s for ${options.what}${why}`, { cause: last });
    }
    await sleep(options.intervalMs ?? 100);
  }
}
