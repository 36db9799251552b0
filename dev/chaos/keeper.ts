import type { LabProcess } from '../lab.js';

/** A process as far as faults and their mending go. */
export type MortalProcess = Pick<LabProcess, 'id' | 'pid' | 'kill' | 'restart'>;

const LOOK_EVERY_MS = 1_000;

/** Starts what ended by itself again, as a service manager would; what the chaos test took away is not its business. */
export class Keeper {
  readonly #processes: readonly MortalProcess[];
  readonly #away = new Set<MortalProcess>();
  readonly #ended = new Map<string, number>();
  readonly #timer: NodeJS.Timeout;
  #looking: Promise<void> = Promise.resolve();

  constructor(processes: readonly MortalProcess[], lookEveryMs = LOOK_EVERY_MS) {
    this.#processes = processes;
    this.#timer = setInterval(() => {
      this.#looking = this.#looking.then(() => this.#look());
    }, lookEveryMs);
  }

  /** How often each process ended by itself. */
  get ended(): Readonly<Record<string, number>> {
    return Object.fromEntries(this.#ended);
  }

  /** Kills it; nobody starts it again until `bringBack`. */
  async takeAway(process: MortalProcess): Promise<void> {
    this.#away.add(process);
    await process.kill('SIGKILL');
  }

  /** Starts it again; one that cannot be started now is looked after like any other. */
  async bringBack(process: MortalProcess): Promise<void> {
    await process.restart().catch(() => undefined);
    this.#away.delete(process);
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.#looking;
  }

  async #look(): Promise<void> {
    for (const process of this.#processes) {
      if (process.pid !== undefined || this.#away.has(process)) continue;
      this.#ended.set(process.id, (this.#ended.get(process.id) ?? 0) + 1);
      await process.restart().catch(() => undefined);
    }
  }
}
