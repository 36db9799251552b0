import { randomUUID } from 'node:crypto';
import { link, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { isErrno, readIfThere } from './durable.js';
import type { Host } from './host.js';
import { STATE_FOLDER } from './state-store.js';

/** Somebody else changes or checks the host; worth another try. */
export class HostBusyError extends Error {
  override readonly name = 'HostBusyError';
}

/** Who holds the lock of a host. */
interface LockOwner {
  readonly id: string;
  readonly pid: number;
  /** Tells a process from a later one of the same id. */
  readonly processStarted: string;
  /** A holder of an earlier boot cannot be alive. */
  readonly bootId: string;
  /** For people: which step. */
  readonly doing: string;
}

/**
 * Runs `work` as the only one on this host, across attempts and processes: an attempt that Temporal has given up may
 * still be at work when the next one comes. Throws HostBusyError at once when somebody holds the lock. A holder whose
 * process or boot is gone holds nothing.
 */
export async function withHostLock<T>(
  host: Pick<Host, 'root' | 'bootId'>,
  doing: string,
  work: () => Promise<T>,
): Promise<T> {
  const path = join(host.root, STATE_FOLDER, 'lock');
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  const owner: LockOwner = {
    id: randomUUID(),
    pid: process.pid,
    processStarted: (await processStarted(process.pid)) ?? '',
    bootId: await host.bootId(),
    doing,
  };
  await take(path, owner);
  try {
    return await work();
  } finally {
    if ((await readOwner(path))?.id === owner.id) await rm(path, { force: true });
  }
}

/** A step of this process is at work on the host at this moment. */
export async function isLockedByThisProcess(root: string): Promise<boolean> {
  return (await readOwner(join(root, STATE_FOLDER, 'lock')))?.pid === process.pid;
}

async function take(path: string, owner: LockOwner): Promise<void> {
  const own = `${path}.${owner.id}`;
  await writeFile(own, JSON.stringify(owner), { mode: 0o600 });
  try {
    for (let attempt = 0; attempt < 3; attempt++) {
      try {
        // A link, unlike a file that is opened and then written, is never there without its contents.
        await link(own, path);
        return;
      } catch (error) {
        if (!isErrno(error, 'EEXIST')) throw error;
      }
      const holder = await readOwner(path);
      if (holder !== undefined && (await isAlive(holder, owner.bootId))) {
        throw new HostBusyError(`${holder.doing} is at work on this host (process ${holder.pid}); trying again later`);
      }
      await removeStale(path, holder);
    }
    throw new HostBusyError('the lock of this host changes hands; trying again later');
  } finally {
    await rm(own, { force: true });
  }
}

/** Moves the lock aside, and back if it is not the dead holder's any more. */
async function removeStale(path: string, holder: LockOwner | undefined): Promise<void> {
  const aside = `${path}.stale-${randomUUID()}`;
  try {
    await rename(path, aside);
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return;
    throw error;
  }
  const moved = await readOwner(aside);
  if (moved !== undefined && moved.id !== holder?.id) await rename(aside, path);
  else await rm(aside, { force: true });
}

async function readOwner(path: string): Promise<LockOwner | undefined> {
  const text = await readIfThere(path);
  if (text === undefined) return undefined;
  try {
    return JSON.parse(text) as LockOwner;
  } catch {
    return undefined;
  }
}

async function isAlive(holder: LockOwner, bootId: string): Promise<boolean> {
  if (holder.bootId !== bootId) return false;
  return (await processStarted(holder.pid)) === holder.processStarted;
}

/** The start time of a process in clock ticks since boot; undefined: there is none, or it is a zombie. */
async function processStarted(pid: number): Promise<string | undefined> {
  try {
    const stat = await readFile(`/proc/${pid}/stat`, 'utf8');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return fields[0] === 'Z' ? undefined : fields[19];
  } catch (error) {
    if (!isErrno(error, 'ENOENT', 'ESRCH')) throw error;
    // A lab on a system without /proc: the id alone must do.
    return process.platform === 'linux' || !isProcess(pid) ? undefined : 'unknown';
  }
}

function isProcess(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
