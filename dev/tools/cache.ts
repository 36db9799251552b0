import { createHash } from 'node:crypto';
import { mkdir, readdir, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { identifyProcess, isAlive } from '../processes/process-identity.js';
import { isErrno, withLock } from './lock.js';

export type Log = (line: string) => void;

export interface CacheEntry {
  /** `kubernetes`; with the version it is the readable part of the folder's name. */
  readonly name: string;
  readonly version: string;
  /** All that decides what comes out (module files, flags, platform): another recipe is another entry. */
  readonly recipe: readonly string[];
  /** For people: `7 to 10 minutes, once`. */
  readonly usually: string;
  /** What is done, for people: `building the Kubernetes API server 1.34.4 from source`. */
  readonly doing: string;
}

/** How often a long step says that it is still at work. */
const STILL_EVERY_MS = 30_000;

/**
 * The folder of a tool, filled first if it is not there. It appears by a rename once everything is in it, so a
 * half-filled one is never seen, whenever the filling process died. Safe in several processes at once: the second waits
 * and takes what the first has made.
 */
export async function ensureCached(
  cacheDirectory: string,
  entry: CacheEntry,
  fill: (directory: string) => Promise<void>,
  log: Log,
): Promise<string> {
  const tools = join(cacheDirectory, 'tools');
  const folder = entryFolder(entry);
  const directory = join(tools, folder);
  if (await exists(directory)) return directory;
  await withLock(
    join(cacheDirectory, 'locks', folder),
    async () => {
      if (await exists(directory)) return;
      await removeAbandoned(tools, folder);
      await fillAside(tools, folder, async (aside) => {
        log(`${entry.doing} (usually ${entry.usually})`);
        await withReminder(entry, log, () => fill(aside));
      });
    },
    { onWait: ({ pid }) => log(`waiting for process ${pid}, which is ${entry.doing} (usually ${entry.usually})`) },
  );
  return directory;
}

/** Whether the entry is there already, complete. */
export async function isCached(cacheDirectory: string, entry: CacheEntry): Promise<boolean> {
  return exists(join(cacheDirectory, 'tools', entryFolder(entry)));
}

function entryFolder(entry: CacheEntry): string {
  const hash = createHash('sha256').update(JSON.stringify(entry.recipe)).digest('hex').slice(0, 10);
  return `${entry.name}-${entry.version}-${hash}`;
}

async function fillAside(tools: string, folder: string, fill: (aside: string) => Promise<void>): Promise<void> {
  const { pid, startTime } = identifyProcess(process.pid);
  const aside = join(tools, `.filling-${folder}.${pid}.${startTime || '0'}`);
  await mkdir(aside, { recursive: true });
  try {
    await fill(aside);
    await rename(aside, join(tools, folder));
  } catch (error) {
    await rm(aside, { recursive: true, force: true });
    // Somebody who shared the lock with us by a race was first; his is as good.
    if (isErrno(error, 'ENOTEMPTY') || isErrno(error, 'EEXIST')) return;
    throw error;
  }
}

/** What processes left behind that died while they filled this entry. */
async function removeAbandoned(tools: string, folder: string): Promise<void> {
  const prefix = `.filling-${folder}.`;
  const names = await readdir(tools).catch(() => []);
  for (const name of names.filter((candidate) => candidate.startsWith(prefix))) {
    const [pid, startTime] = name.slice(prefix.length).split('.');
    const owner = { pid: Number(pid), startTime: startTime === '0' ? '' : (startTime ?? '') };
    if (!isAlive(owner)) await rm(join(tools, name), { recursive: true, force: true });
  }
}

async function withReminder(entry: CacheEntry, log: Log, action: () => Promise<void>): Promise<void> {
  const start = Date.now();
  const elapsed = () => formatDuration(Date.now() - start);
  const timer = setInterval(() => log(`still ${entry.doing}: ${elapsed()} (usually ${entry.usually})`), STILL_EVERY_MS);
  try {
    await action();
    log(`done ${entry.doing}: ${elapsed()}`);
  } finally {
    clearInterval(timer);
  }
}

export function formatDuration(milliseconds: number): string {
  const seconds = Math.round(milliseconds / 1000);
  return seconds < 60 ? `${seconds} s` : `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}

async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}
