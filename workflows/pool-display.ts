import type { Turn } from '../machine-config/pool/turn.js';
import { control } from './activity-proxies.js';
import type { RollOutPoolInput } from './contract/inputs.js';

const DEFAULT_STATUS_SECONDS = 5;

/** What Kubernetes shows of a pool while it is rolled out: written when it matters, else once in a while. */
export class PoolDisplay {
  readonly #input: RollOutPoolInput;
  readonly #everyMs: number;
  #shown: { readonly turn: Turn; readonly at: number } | undefined;
  #isCurrent = false;

  constructor(input: RollOutPoolInput) {
    this.#input = input;
    this.#everyMs = (input.tuning.statusSeconds ?? DEFAULT_STATUS_SECONDS) * 1000;
  }

  /** Epoch milliseconds at which it has to be written again even if there is no news; Infinity: it shows the last turn. */
  get dueAt(): number {
    return this.#isCurrent || this.#shown === undefined ? Infinity : this.#shown.at + this.#everyMs;
  }

  /** Shows a turn, at once if nodes have come, if there is something else to wait for, or if the last time is long ago. */
  async tell(turn: Turn): Promise<void> {
    this.#isCurrent = false;
    if (this.#isDue(turn)) await this.show(turn);
  }

  async show(turn: Turn): Promise<void> {
    const { cluster, pool } = this.#input;
    const waiting = turn.waiting && { code: turn.waiting.code, sentence: turn.waiting.sentence };
    await control.syncPool.executeWithOptions({ summary: `status of ${pool}` }, [{ cluster, pool, waiting }]);
    this.#shown = { turn, at: Date.now() };
    this.#isCurrent = true;
  }

  /** New members may not read their config before it is written that they may. */
  #isDue(turn: Turn): boolean {
    if (this.#shown === undefined || Date.now() >= this.#shown.at + this.#everyMs) return true;
    const { turn: last } = this.#shown;
    return (
      turn.target !== last.target ||
      turn.counts.machines !== last.counts.machines ||
      turn.waiting?.code !== last.waiting?.code
    );
  }
}
