import { access, constants, statfs } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { isErrno } from './durable.js';
import { NotPossibleHere } from './entry.js';
import type { PlannedChange } from './plan.js';

/** Room that must be left after an update, for everybody else. */
const ROOM_TO_LEAVE_BYTES = 16 * 1024 * 1024;

/** Throws NotPossibleHere if the place of a change cannot be written, for example on a read-only file system. */
export async function checkPlace(root: string, { path, where }: PlannedChange): Promise<void> {
  for (let folder = dirname(path); ; folder = dirname(folder)) {
    try {
      await access(join(root, folder), constants.W_OK);
      return;
    } catch (error) {
      if (isErrno(error, 'ENOENT') && folder !== '/') continue;
      const why = isErrno(error) ? String(error.code) : 'unknown';
      throw new NotPossibleHere(`${where}: ${folder} cannot be written on this host (${why}); use another path`);
    }
  }
}

/** Roughly: the new contents, beside the old ones, and the copies that undoing needs. */
export async function checkRoom(root: string, changes: readonly PlannedChange[]): Promise<void> {
  const size = ({ before, after }: PlannedChange) =>
    (after.kind === 'file' ? after.contents.length : 0) + (before.kind === 'file' ? before.contents.length : 0);
  const needed = changes.reduce((sum, change) => sum + size(change), ROOM_TO_LEAVE_BYTES);
  const disk = await statfs(root);
  const free = disk.bavail * disk.bsize;
  if (free < needed) {
    const mebibytes = (bytes: number) => `${Math.ceil(bytes / 1024 / 1024)} MiB`;
    throw new NotPossibleHere(`no room: the update needs ${mebibytes(needed)}, the disk has ${mebibytes(free)} free`);
  }
}
