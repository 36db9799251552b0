import type { Client } from '@temporalio/client';
import type { Logger } from 'pino';
import { signalPool, wakeRollout } from '../activities/cluster/signal-pool.js';
import type { Hint } from '../activities/cluster/pool-hints.js';
import type { PoolTuning } from '../workflows/contract/inputs.js';

/** At most one signal a pool in this time: watches come in bursts. */
const COALESCE_MILLISECONDS = 1000;
/** What running updates do to their nodes is known to whoever runs them: all of it together is worth one look a while. */
const PROGRESS_MILLISECONDS = 5000;

export interface PoolSignallerOptions {
  readonly client: Client;
  readonly cluster: string;
  readonly tuning: PoolTuning;
  readonly logger: Logger;
}

/**
 * Turns hints into signals, coalesced. A signal that cannot be sent is tried again: a lost one would only be made good
 * by the next repetition.
 */
export class PoolSignaller {
  readonly #options: PoolSignallerOptions;
  /** What is to be told of which pool. */
  readonly #pending = new Map<string, Hint['what']>();
  readonly #timers = new Map<number, NodeJS.Timeout>();
  #stopped = false;

  constructor(options: PoolSignallerOptions) {
    this.#options = options;
  }

  hint(hints: readonly Hint[]): void {
    for (const { pool, what } of hints) this.#pending.set(pool, moreUrgent(this.#pending.get(pool), what));
    for (const what of new Set(this.#pending.values())) this.#flushAfter(delayOf(what));
  }

  stop(): void {
    this.#stopped = true;
    for (const timer of this.#timers.values()) clearTimeout(timer);
  }

  #flushAfter(milliseconds: number): void {
    if (this.#stopped || this.#timers.has(milliseconds)) return;
    this.#timers.set(
      milliseconds,
      setTimeout(() => void this.#flush(milliseconds), milliseconds),
    );
  }

  async #flush(milliseconds: number): Promise<void> {
    this.#timers.delete(milliseconds);
    const hints = [...this.#pending].map(([pool, what]) => ({ pool, what }));
    const due = hints.filter(({ what }) => delayOf(what) <= milliseconds);
    for (const { pool } of due) this.#pending.delete(pool);
    const unsent = await Promise.all(due.map(async (hint) => ((await this.#send(hint)) ? [] : [hint])));
    this.hint(unsent.flat());
  }

  async #send({ pool, what }: Hint): Promise<boolean> {
    const { client, cluster, tuning, logger } = this.#options;
    try {
      if (what !== 'config' && (await wakeRollout(client, pool))) return true;
      await signalPool(client, { cluster, pool, tuning }, what === 'config' ? 'config' : 'nodes');
      return true;
    } catch (error) {
      logger.warn({ err: error, pool }, 'Temporal did not take a signal; it is sent again');
      return false;
    }
  }
}

const URGENCY: readonly Hint['what'][] = ['progress', 'nodes', 'config'];

function moreUrgent(one: Hint['what'] | undefined, other: Hint['what']): Hint['what'] {
  return one !== undefined && URGENCY.indexOf(one) > URGENCY.indexOf(other) ? one : other;
}

function delayOf(what: Hint['what']): number {
  return what === 'progress' ? PROGRESS_MILLISECONDS : COALESCE_MILLISECONDS;
}
