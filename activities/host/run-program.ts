import { spawn, type ChildProcess } from 'node:child_process';
import { constants } from 'node:os';

export interface RunOptions {
  /** Written to its standard input, which is empty otherwise. */
  readonly input?: string;
  /** When it is ended, with everything it started; default two minutes. */
  readonly timeoutMs?: number;
  /** On top of the plain environment that every program gets. */
  readonly environment?: Readonly<Record<string, string>>;
}

/** How a program ended that did run. */
export interface ProgramResult {
  /** 128 and the signal's number where a signal ended it. */
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/**
 * Runs a program of the host to its end. An exit code is an answer, also one that is not 0; rejects with ProgramFailed
 * where there is none.
 */
export type RunProgram = (program: string, args: readonly string[], options?: RunOptions) => Promise<ProgramResult>;

/** A program could not be run, or did not end in time. One line that names it. */
export class ProgramFailed extends Error {
  override readonly name = 'ProgramFailed';
  /** The host has no such program. */
  readonly isMissing: boolean;

  constructor(message: string, options: { readonly isMissing: boolean; readonly cause?: unknown }) {
    super(message, { cause: options.cause });
    this.isMissing = options.isMissing;
  }
}

const DEFAULT_TIMEOUT_MS = 120_000;
/** Of each stream; more is cut off. Answers that we read are a few kilobytes. */
const MOST_OUTPUT_BYTES = 8 * 1024 * 1024;
/** Nothing of the worker's own environment, where credentials may be; messages are read, so they are in English. */
const ENVIRONMENT = {
  PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
  LC_ALL: 'C',
  HOME: '/root',
};

export const runProgram: RunProgram = (program, args, options = {}) =>
  new Promise((resolve, reject) => {
    const { input, timeoutMs = DEFAULT_TIMEOUT_MS, environment } = options;
    const child = spawn(program, args, {
      env: { ...ENVIRONMENT, ...environment },
      cwd: '/',
      // A process group of its own, so that what it started ends with it.
      detached: true,
      stdio: [input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
    });
    const stdout = collect(child.stdout);
    const stderr = collect(child.stderr);
    const timer = setTimeout(() => {
      endGroup(child);
      reject(new ProgramFailed(`${program}: did not end within ${timeoutMs / 1000} s`, { isMissing: false }));
    }, timeoutMs);
    child.once('error', (cause: NodeJS.ErrnoException) => {
      clearTimeout(timer);
      const isMissing = cause.code === 'ENOENT';
      const why = isMissing ? 'this host has no such program' : cause.message;
      reject(new ProgramFailed(`${program}: ${why}`, { isMissing, cause }));
    });
    child.once('close', (code, signal) => {
      clearTimeout(timer);
      resolve({ code: code ?? 128 + signalNumber(signal), stdout: stdout(), stderr: stderr() });
    });
    // A program that does not read its input says so by its exit code.
    child.stdin?.on('error', () => undefined);
    child.stdin?.end(input);
  });

function collect(stream: NodeJS.ReadableStream | null): () => string {
  const chunks: Buffer[] = [];
  let size = 0;
  stream?.on('data', (chunk: Buffer) => {
    if (size < MOST_OUTPUT_BYTES) chunks.push(chunk);
    size += chunk.length;
  });
  return () => Buffer.concat(chunks).toString('utf8');
}

function endGroup(child: ChildProcess): void {
  if (child.pid === undefined) return;
  try {
    process.kill(-child.pid, 'SIGKILL');
  } catch {
    // It ended by itself.
  }
}

function signalNumber(signal: NodeJS.Signals | null): number {
  return signal === null ? 0 : constants.signals[signal];
}
