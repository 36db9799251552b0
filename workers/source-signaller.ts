import type { Client } from '@temporalio/client';
import type { Logger } from 'pino';
import { signalSources } from '../activities/cluster/signal-sources.js';
import type { SourceKind } from '../workflows/contract/activities.js';
import type { ManageSourcesInput } from '../workflows/contract/inputs.js';

/** At most one signal a kind in this time: watches come in bursts. */
const COALESCE_MILLISECONDS = 1000;

export interface SourceSignallerOptions {
  readonly client: Client;
  readonly cluster: string;
  readonly tuning: ManageSourcesInput['tuning'];
  readonly logger: Logger;
}

/** Tells the workflows of sources of changes, coalesced. A signal that cannot be sent is tried again. */
export class SourceSignaller {
  readonly #options: SourceSignallerOptions;
  readonly #timers = new Map<SourceKind, NodeJS.Timeout>();
  #stopped = false;

  constructor(options: SourceSignallerOptions) {
    this.#options = options;
  }

  hint(kind: SourceKind): void {
    if (this.#stopped || this.#timers.has(kind)) return;
    this.#timers.set(
      kind,
      setTimeout(() => void this.#send(kind), COALESCE_MILLISECONDS),
    );
  }

  stop(): void {
    this.#stopped = true;
    for (const timer of this.#timers.values()) clearTimeout(timer);
  }

  async #send(kind: SourceKind): Promise<void> {
    this.#timers.delete(kind);
    const { client, cluster, tuning, logger } = this.#options;
    const { debounceSeconds, turnSeconds, maxEvents } = tuning;
    const limit = maxEvents === undefined ? {} : { maxEvents };
    try {
      await signalSources(client, { cluster, kind, tuning: { debounceSeconds, turnSeconds, ...limit } });
    } catch (error) {
      logger.warn({ err: error, kind }, 'Temporal did not take a signal; it is sent again');
      this.hint(kind);
    }
  }
}
