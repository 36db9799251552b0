import { link, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { identifyProcess, isAlive, type ProcessIdentity } from '../processes/process-identity.js';

export interface LockOptions {
  readonly pollMs?: number;
  /** Called once, when somebody else is found holding the lock. */
  readonly onWait?: (holder: ProcessIdentity) => void;
}

/**
 * Runs the action while no other process of this machine runs one under the same lock file. A lock whose holder has
 * died is taken over. Two processes that take it over in the same instant may, very rarely, both go on: whoever uses
 * this must stay correct then and only lose time (the tools are built aside and renamed).
 */
export async function withLock<T>(file: string, action: () => Promise<T>, options: LockOptions = {}): Promise<T> {
  await mkdir(dirname(file), { recursive: true });
  const own = `${file}.${process.pid}-${Math.random().toString(36).slice(2)}`;
  await writeFile(own, JSON.stringify(identifyProcess(process.pid)));
  try {
    await acquire(file, own, options);
  } finally {
    await rm(own, { force: true });
  }
  try {
    return await action();
  } finally {
    await rm(file, { force: true });
  }
}

async function acquire(file: string, own: string, options: LockOptions): Promise<void> {
  let told = false;
  for (;;) {
    // A hard link appears whole and only if the name is free: a lock file is never seen half written.
    if (await tryLink(own, file)) return;
    const holder = await readHolder(file);
    if (holder === 'free') continue;
    if (holder === 'unreadable' || !isAlive(holder)) {
      await setAside(file, `${own}.stale`, holder);
      continue;
    }
    if (!told) options.onWait?.(holder);
    told = true;
    await sleep(options.pollMs ?? 500);
  }
}

async function tryLink(from: string, to: string): Promise<boolean> {
  try {
    await link(from, to);
    return true;
  } catch (error) {
    if (isErrno(error, 'EEXIST')) return false;
    throw error;
  }
}

async function readHolder(file: string): Promise<ProcessIdentity | 'free' | 'unreadable'> {
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return 'free';
    throw error;
  }
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null && 'pid' in value && typeof value.pid === 'number') {
      const startTime = 'startTime' in value && typeof value.startTime === 'string' ? value.startTime : '';
      return { pid: value.pid, startTime };
    }
  } catch {
    // Not ours, or damaged.
  }
  return 'unreadable';
}

/** Moves a dead holder's lock away; if it has become somebody else's in the meantime, puts it back. */
async function setAside(file: string, aside: string, judged: ProcessIdentity | 'unreadable'): Promise<void> {
  try {
    await rename(file, aside);
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return;
    throw error;
  }
  const moved = await readHolder(aside);
  if (JSON.stringify(moved) !== JSON.stringify(judged)) await tryLink(aside, file);
  await rm(aside, { force: true });
}

export function isErrno(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code;
}
