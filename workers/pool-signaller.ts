import type { Client } from '@temporalio/client';
import type { Logger } from 'pino';
import { signalPool, wakeRollout } from '../activities/cluster/signal-pool.js';
import type { Hint } from '../activities/cluster/pool-hints.js';
import type { PoolTuning } from '../workflows/contract/inputs.js';

/** At most one signal a pool in this time: watches come in bursts. */
const COALESCE_MILLISECONDS = 1000;

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
  readonly #pending = new Map<string, Hint['what']>();
  #timer: NodeJS.Timeout | undefined;
  #stopped = false;

  constructor(options: PoolSignallerOptions) {
    this.#options = options;
  }

  hint(hints: readonly Hint[]): void {
    for (const { pool, what } of hints) {
      if (this.#pending.get(pool) !== 'config') this.#pending.set(pool, what);
    }
    if (this.#pending.size > 0 && !this.#stopped)
      this.#timer ??= setTimeout(() => void this.#flush(), COALESCE_MILLISECONDS);
  }

  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
  }

  async #flush(): Promise<void> {
    this.#timer = undefined;
    const hints = [...this.#pending].map(([pool, what]) => ({ pool, what }));
    this.#pending.clear();
    const unsent = await Promise.all(hints.map(async (hint) => ((await this.#send(hint)) ? [] : [hint])));
    this.hint(unsent.flat());
  }

  async #send({ pool, what }: Hint): Promise<boolean> {
    const { client, cluster, tuning, logger } = this.#options;
    try {
      if (what === 'nodes' && (await wakeRollout(client, pool))) return true;
      await signalPool(client, { cluster, pool, tuning }, what);
      return true;
    } catch (error) {
      logger.warn({ err: error, pool }, 'Temporal did not take a signal; it is sent again');
      return false;
    }
  }
}
