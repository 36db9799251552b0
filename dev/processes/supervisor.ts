import { fork, type ChildProcess } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { identifyProcess, killForGood, type ProcessIdentity } from './process-identity.js';

export interface ProcessSpec {
  /** Name of the process in messages, and of its log file: `etcd`. */
  readonly id: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

export interface ProcessExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** A process of the lab that can be killed and started again, on the same ports and data. */
export interface LabProcess {
  readonly id: string;
  readonly logFile: string;
  /** Undefined while it is not running. */
  readonly pid: number | undefined;
  /** Sends the signal to the process and everything it started; resolves when it has ended (SIGSTOP, SIGCONT: at once). */
  kill(signal?: NodeJS.Signals): Promise<void>;
  /** SIGTERM, and SIGKILL if it is still there after the grace. */
  stop(graceMs?: number): Promise<void>;
  /** Starts it again with the same arguments; does not wait until it is ready. */
  restart(): Promise<void>;
  /** Throws an error with the last lines of its log if it has ended. */
  assertRunning(): void;
}

type FromSupervisor =
  | { type: 'started'; id: string; pid: number }
  | { type: 'failed'; id: string; message: string }
  | { type: 'exited'; id: string; pid: number; code: number | null; signal: NodeJS.Signals | null };

const NOT_ENDING = new Set<NodeJS.Signals>(['SIGSTOP', 'SIGCONT', 'SIGHUP', 'SIGUSR1', 'SIGUSR2']);

/**
 * The parent's side of supervisor.mjs. Whatever is started through it ends with this process, also when this process is
 * killed with SIGKILL. It does not keep the event loop alive: a script that has nothing else to do ends, and its lab
 * with it.
 */
export class Supervisor {
  readonly directory: string;
  readonly #child: ChildProcess;
  readonly #processes = new Map<string, SupervisedProcess>();
  readonly #gone: Promise<void>;
  #waiting = 0;

  private constructor(directory: string, child: ChildProcess) {
    this.directory = directory;
    this.#child = child;
    this.#gone = new Promise((resolve) => {
      child.once('exit', () => {
        // Killed by somebody: nobody else is left to end its processes.
        for (const supervised of this.#processes.values()) supervised.abandon();
        resolve();
      });
    });
    child.on('message', (message) => this.#receive(message as FromSupervisor));
    child.unref();
    child.channel?.unref();
  }

  /** @param removeAfterwards remove the directory when everything has ended. */
  static start(directory: string, removeAfterwards: boolean): Supervisor {
    const program = fileURLToPath(new URL('supervisor.mjs', import.meta.url));
    const child = fork(program, [directory, ...(removeAfterwards ? ['remove'] : [])], {
      detached: true,
      // No loader or inspector of the parent's: it must start at once and stay small.
      execArgv: [],
      env: { PATH: process.env['PATH'] ?? '', HOME: directory },
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    });
    return new Supervisor(directory, child);
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  async run(spec: ProcessSpec): Promise<LabProcess> {
    if (this.#processes.has(spec.id)) throw new Error(`the lab already has a process "${spec.id}"`);
    const supervised = new SupervisedProcess(this, spec);
    this.#processes.set(spec.id, supervised);
    await supervised.restart();
    return supervised;
  }

  /** Ends every process at once (SIGKILL) and the supervisor; removes the directory where it is temporary. */
  async end(): Promise<void> {
    await this.keepAlive(async () => {
      this.#child.ref();
      if (this.#child.connected) this.#child.disconnect();
      await this.#gone;
    });
  }

  send(message: object): void {
    if (this.#child.connected) this.#child.send(message);
    else throw new Error('the lab has been stopped');
  }

  /** Holds the event loop while an answer is awaited. */
  async keepAlive<T>(action: () => Promise<T>): Promise<T> {
    this.#waiting += 1;
    this.#child.channel?.ref();
    try {
      return await action();
    } finally {
      this.#waiting -= 1;
      if (this.#waiting === 0) this.#child.channel?.unref();
    }
  }

  #receive(message: FromSupervisor): void {
    const supervised = this.#processes.get(message.id);
    if (message.type === 'started') supervised?.started(message.pid);
    else if (message.type === 'failed') supervised?.failed(message.message);
    else supervised?.exited(message.pid, { code: message.code, signal: message.signal });
  }
}

interface Waiter {
  resolve(): void;
  reject(error: Error): void;
}

class SupervisedProcess implements LabProcess {
  readonly id: string;
  readonly logFile: string;
  readonly #supervisor: Supervisor;
  readonly #spec: ProcessSpec;
  #identity: ProcessIdentity | undefined;
  #lastExit: ProcessExit | undefined;
  #starting: Waiter | undefined;
  #start: Promise<void> | undefined;
  #ending: (() => void)[] = [];

  constructor(supervisor: Supervisor, spec: ProcessSpec) {
    this.id = spec.id;
    this.#supervisor = supervisor;
    this.#spec = spec;
    this.logFile = join(supervisor.directory, `${spec.id}.log`);
  }

  get pid(): number | undefined {
    return this.#identity?.pid;
  }

  async restart(): Promise<void> {
    if (this.#identity !== undefined) throw new Error(`${this.id} is already running (pid ${this.#identity.pid})`);
    // A second start would take the answer of the first, which then waited for ever.
    if (this.#start !== undefined) throw new Error(`${this.id} is already being started`);
    this.#start = this.#startNow();
    try {
      await this.#start;
    } finally {
      this.#start = undefined;
    }
  }

  async #startNow(): Promise<void> {
    const { id, command, args, env } = this.#spec;
    await this.#supervisor.keepAlive(
      () =>
        new Promise<void>((resolve, reject) => {
          this.#starting = { resolve, reject };
          this.#supervisor.send({
            type: 'start',
            id,
            command,
            args,
            cwd: this.#supervisor.directory,
            // The user's environment stays outside: no KUBECONFIG, no proxy, no Temporal profile reaches the lab.
            env: { PATH: process.env['PATH'] ?? '', HOME: this.#supervisor.directory, ...env },
            log: this.logFile,
          });
        }),
    );
  }

  async kill(signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    // One that is being started is there in a moment.
    await this.#start?.catch(() => undefined);
    if (this.#identity === undefined) return;
    await this.#supervisor.keepAlive(async () => {
      const ended = NOT_ENDING.has(signal) ? Promise.resolve() : this.#ended();
      this.#supervisor.send({ type: 'kill', id: this.id, signal });
      await ended;
    });
  }

  async stop(graceMs = 5_000): Promise<void> {
    if (this.#identity === undefined) return;
    const timer = setTimeout(() => {
      this.#supervisor.send({ type: 'kill', id: this.id, signal: 'SIGKILL' });
    }, graceMs);
    try {
      await this.kill('SIGTERM');
    } finally {
      clearTimeout(timer);
    }
  }

  assertRunning(): void {
    if (this.#identity !== undefined) return;
    const exit = this.#lastExit;
    const how = exit === undefined ? 'is not running' : `ended with ${exit.signal ?? `exit code ${String(exit.code)}`}`;
    throw new Error(`${this.id} ${how}; the end of ${this.logFile}:\n${lastLines(this.logFile)}`);
  }

  started(pid: number): void {
    this.#identity = identifyProcess(pid);
    this.#lastExit = undefined;
    this.#starting?.resolve();
    this.#starting = undefined;
  }

  failed(message: string): void {
    this.#starting?.reject(new Error(`${this.id} could not be started: ${message}`));
    this.#starting = undefined;
  }

  exited(pid: number, exit: ProcessExit): void {
    if (this.#identity?.pid !== pid) return;
    this.#identity = undefined;
    this.#lastExit = exit;
    for (const resolve of this.#ending.splice(0)) resolve();
  }

  abandon(): void {
    this.failed('the supervisor of the lab has ended');
    if (this.#identity === undefined) return;
    killForGood(this.#identity);
    this.exited(this.#identity.pid, { code: null, signal: 'SIGKILL' });
  }

  #ended(): Promise<void> {
    return new Promise((resolve) => this.#ending.push(resolve));
  }
}

function lastLines(file: string, count = 8): string {
  try {
    return readFileSync(file, 'utf8').trimEnd().split('\n').slice(-count).join('\n');
  } catch {
    return '(no log)';
  }
}
