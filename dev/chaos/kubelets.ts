import { waitUntil } from '../processes/wait-until.js';
import type { Keeper, MortalProcess } from './keeper.js';

export interface KubeletsOptions {
  readonly keeper: Keeper;
  readonly kwok: MortalProcess;
  /** Resolves when the API server is ready; rejects when it is not for long, or has ended. */
  readonly apiReady: () => Promise<void>;
  /** Ends whatever is waited for. */
  readonly signal: AbortSignal;
}

/** An API server that starts while etcd is away ends, and is started again, until etcd is back. */
const READY_LIMIT_MS = 180_000;
const RETRY_MS = 500;

/**
 * The lab's kubelets after the API server or etcd was away: kwok goes on with Leases as it knew them before, and never
 * renews one again, so it is started anew once the API server is ready.
 */
export class Kubelets {
  readonly #options: KubeletsOptions;
  #last: Promise<void> = Promise.resolve();

  constructor(options: KubeletsOptions) {
    this.#options = options;
  }

  /**
   * One after the other: the API server and etcd may come back in one moment, and two that start kwok at once would start
   * it twice.
   */
  renew(): Promise<void> {
    const renewed = this.#last.then(() => this.#renewOnce());
    this.#last = renewed.catch(() => undefined);
    return renewed;
  }

  async #renewOnce(): Promise<void> {
    const { keeper, kwok, apiReady, signal } = this.#options;
    const ready = async () => {
      await apiReady();
      return true;
    };
    await waitUntil(ready, {
      what: 'the API server to be ready, so that the kubelets can be started anew',
      timeoutMs: READY_LIMIT_MS,
      intervalMs: RETRY_MS,
      check: () => signal.throwIfAborted(),
    });
    await keeper.takeAway(kwok);
    await keeper.bringBack(kwok);
  }
}
