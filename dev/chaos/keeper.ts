import type { LabProcess } from '../lab.js';

/** A process as far as faults and their mending go. */
export type MortalProcess = Pick<LabProcess, 'id' | 'pid' | 'kill' | 'restart'> & Partial<Pick<LabProcess, 'logFile'>>;

export interface KeeperOptions {
  readonly lookEveryMs?: number;
  /** Told of each process that had ended by itself and is started again. */
  readonly onReturn?: (process: MortalProcess) => void;
}

const LOOK_EVERY_MS = 1_000;

/** Starts what ended by itself again, as a service manager would; what the chaos test took away is not its business. */
export class Keeper {
  readonly processes: readonly MortalProcess[];
  readonly #away = new Set<MortalProcess>();
  readonly #ended = new Map<string, number>();
  readonly #starting = new Set<MortalProcess>();
  readonly #timer: NodeJS.Timeout;
  readonly #onReturn: (process: MortalProcess) => void;

  constructor(processes: readonly MortalProcess[], options: KeeperOptions = {}) {
    this.processes = processes;
    this.#onReturn = options.onReturn ?? (() => undefined);
    this.#timer = setInterval(() => this.#look(), options.lookEveryMs ?? LOOK_EVERY_MS);
  }

  /** How often each process ended by itself. */
  get ended(): Readonly<Record<string, number>> {
    return Object.fromEntries(this.#ended);
  }

  isAway(process: MortalProcess): boolean {
    return this.#away.has(process);
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

  stop(): void {
    clearInterval(this.#timer);
  }

  /** Nobody waits for another: one may need seconds until it is ready. */
  #look(): void {
    for (const process of this.processes) {
      if (process.pid !== undefined || this.#away.has(process) || this.#starting.has(process)) continue;
      this.#ended.set(process.id, (this.#ended.get(process.id) ?? 0) + 1);
      void this.#start(process);
    }
  }

  async #start(process: MortalProcess): Promise<void> {
    this.#starting.add(process);
    try {
      await process.restart();
      this.#onReturn(process);
    } catch {
      // Looked at again.
    } finally {
      this.#starting.delete(process);
    }
  }
}
