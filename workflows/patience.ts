import type { Turn, WaitingCode } from '../machine-config/pool/turn.js';

/** Left alone, a rollout looks again by itself ever more seldom, down to once in so many ticks. */
const LONGEST_TICKS = 10;
/** What it waits for are other pools, and nobody tells it of those. */
const NOT_TOLD: ReadonlySet<WaitingCode> = new Set(['AfterPool', 'PoolLimit']);

/**
 * How long a rollout waits for news before it takes a turn by itself. As long as nothing runs, nothing has a date and
 * nothing else is to be said than at the last turn, that is longer each time: watches tell of what changes, and a pool
 * that waits for people for weeks stays a short history.
 */
export class Patience {
  readonly #tickMs: number;
  #ticks = 1;
  #said: string | undefined;

  constructor({ tickSeconds }: { readonly tickSeconds: number }) {
    this.#tickMs = tickSeconds * 1000;
  }

  /**
   * Milliseconds from `now` until the next turn; to be asked once a turn. `pending`: how many nodes are in flight or
   * left alone for a while.
   */
  after({ start, waiting }: Pick<Turn, 'start' | 'waiting'>, pending: number, now: number): number {
    const isQuiet = start.length === 0 && pending === 0 && isTold(waiting) && waiting?.sentence === this.#said;
    this.#said = waiting?.sentence;
    this.#ticks = isQuiet ? Math.min(this.#ticks * 2, LONGEST_TICKS) : 1;
    return Math.min(this.#ticks * this.#tickMs, Math.max((waiting?.until ?? Infinity) - now, 0));
  }
}

/** Whether somebody says so when what it waits for has come. */
function isTold(waiting: Turn['waiting']): boolean {
  return waiting === null || (waiting.until === undefined && !NOT_TOLD.has(waiting.code));
}
