import { access, constants, readFile, stat, statfs } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { isErrno } from './durable.js';
import { NotPossibleHere } from './entry.js';
import type { Host } from './host.js';
import type { PlannedChange } from './plan.js';
import { STATE_FOLDER } from './state-store.js';

/** Room that must be left on a file system after an update, for everybody else: so much, or a part of a small one. */
const BYTES_TO_LEAVE = 16 * 1024 * 1024;
const PART_TO_LEAVE = 0.02;
const INODES_TO_LEAVE = 64;
/** Journal, originals and the config itself, old and new. */
const RECORD_BYTES = 4 * 1024 * 1024;
const RECORD_INODES = 8;

/**
 * Throws NotPossibleHere if the place of a change cannot be written: on a read-only file system, or because something
 * is mounted on the very path.
 */
export async function checkPlaces({ root }: Host, changes: readonly PlannedChange[]): Promise<void> {
  const mounts = await mountPoints();
  // Folders that are made for files come with these, which say in what field.
  for (const { path, where } of changes.toSorted(byField)) {
    if (mounts.has(join(root, path))) {
      throw new NotPossibleHere(
        `${where}: something is mounted on ${path}, so it cannot be replaced; use another path`,
      );
    }
    const folder = await nearestFolder(root, path);
    try {
      await access(join(root, folder), constants.W_OK);
    } catch (error) {
      const why = error instanceof Error && 'code' in error ? String(error.code) : String(error);
      throw new NotPossibleHere(`${where}: ${folder} cannot be written on this host (${why}); use another path`);
    }
  }
}

const byField = (one: PlannedChange, other: PlannedChange): number =>
  Number(one.where === one.path) - Number(other.where === other.path);

/** The nearest folder above a path that exists. */
async function nearestFolder(root: string, path: string): Promise<string> {
  for (let folder = dirname(path); ; folder = dirname(folder)) {
    try {
      await stat(join(root, folder));
      return folder;
    } catch (error) {
      if (!isErrno(error, 'ENOENT', 'ENOTDIR') || folder === '/') throw error;
    }
  }
}

/** Of this process' view of the file systems; empty where the kernel does not tell. */
async function mountPoints(): Promise<Set<string>> {
  try {
    const lines = (await readFile('/proc/self/mountinfo', 'utf8')).split('\n');
    const unescaped = (text: string) =>
      text.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));
    return new Set(lines.map((line) => unescaped(line.split(' ')[4] ?? '')));
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return new Set();
    throw error;
  }
}

interface Need {
  /** A folder on the file system, for messages. */
  readonly folder: string;
  bytes: number;
  inodes: number;
}

/**
 * Throws NotPossibleHere where a file system lacks bytes or inodes: for the new contents beside the old ones, and for
 * the copies of the old ones that undoing needs. Each file system by itself, since paths may lie on several.
 */
export async function checkRoom({ root }: Host, changes: readonly PlannedChange[]): Promise<void> {
  const needs = new Map<number, Need>();
  const add = async (path: string, bytes: number, inodes: number) => {
    const folder = await nearestFolder(root, path);
    const { dev } = await stat(join(root, folder));
    const need = needs.get(dev) ?? { folder, bytes: 0, inodes: 0 };
    need.bytes += bytes;
    need.inodes += inodes;
    needs.set(dev, need);
  };
  for (const { path, before, after } of changes) {
    const isNew = before.kind === 'absent' ? 1 : 0;
    await add(path, after.kind === 'file' ? after.contents.length : 0, isNew);
    if (before.kind === 'file') await add(`${STATE_FOLDER}/blobs/x`, before.contents.length, 1);
  }
  if (changes.length > 0) await add(`${STATE_FOLDER}/x`, RECORD_BYTES, RECORD_INODES);
  for (const need of needs.values()) await refuseWithout(root, need);
}

async function refuseWithout(root: string, { folder, bytes, inodes }: Need): Promise<void> {
  const disk = await statfs(join(root, folder));
  const free = disk.bavail * disk.bsize;
  const needed = bytes + Math.min(BYTES_TO_LEAVE, Math.floor(disk.blocks * disk.bsize * PART_TO_LEAVE));
  if (free < needed) {
    const mebibytes = (count: number) => `${Math.ceil(count / 1024 / 1024)} MiB`;
    throw new NotPossibleHere(
      `no room: the update needs ${mebibytes(needed)} on the file system of ${folder}, ${mebibytes(free)} are free; clean up`,
    );
  }
  // File systems that make inodes as they need them tell of none at all.
  const neededInodes = inodes + Math.min(INODES_TO_LEAVE, Math.floor(disk.files * PART_TO_LEAVE));
  if (disk.files > 0 && disk.ffree < neededInodes) {
    throw new NotPossibleHere(
      `no room: the update needs ${neededInodes} inodes on the file system of ${folder}, ${disk.ffree} are free; clean up`,
    );
  }
}
