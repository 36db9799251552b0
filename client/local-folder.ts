import { lstatSync, readdirSync, readFileSync, readlinkSync, realpathSync, statSync } from 'node:fs';
import path from 'node:path';
import type { LocalFile, LocalFiles, LocalTree, TreeEntry } from '../machine-config/butane/local-files.js';
import { quote } from '../machine-config/ignition/findings.js';

/** More than a MachineConfig can hold. */
const MAX_FILE_BYTES = 32 * 1024 * 1024;
const MAX_TREE_ENTRIES = 10_000;

/** Leads out of the folder, is too large or no file: said as a clause to whoever wrote the path. */
class Unusable extends Error {
  override readonly name = 'Unusable';
}

/** The files of one folder. Nothing outside of it is ever read, be it by `..`, an absolute path or a symbolic link. */
export function localFolder(folder: string): LocalFiles {
  const where = (given: string) => realPathBelow(folder, given);
  return {
    readFile: (given): LocalFile => attempt(given, folder, () => ({ ok: true, bytes: readBounded(where(given)) })),
    readTree: (given): LocalTree =>
      attempt(given, folder, () => {
        const root = where(given);
        if (!statSync(root).isDirectory()) throw new Unusable('is no folder; a tree is one');
        const entries: TreeEntry[] = [];
        collect(root, '', entries);
        return { ok: true, entries };
      }),
  };
}

function attempt<T>(
  given: string,
  folder: string,
  action: () => T,
): T | { readonly ok: false; readonly error: string } {
  try {
    return action();
  } catch (error) {
    return { ok: false, error: `${quote(given)} ${describe(error, folder)}` };
  }
}

function describe(error: unknown, folder: string): string {
  if (error instanceof Unusable) return error.message;
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  if (code === 'ENOENT' || code === 'ENOTDIR') {
    return `is not in ${folder}; put it there, or name another folder with --files-dir`;
  }
  if (code === 'EACCES') return 'cannot be read: permission denied';
  return `cannot be read: ${error instanceof Error ? error.message : 'unknown error'}`;
}

function realPathBelow(folder: string, given: string): string {
  const base = realpathSync(folder);
  const joined = path.join(base, given);
  if (path.isAbsolute(given) || !isBelow(base, joined)) {
    throw new Unusable('leads out of the folder of the files; write a path below it');
  }
  const real = realpathSync(joined);
  if (!isBelow(base, real)) throw new Unusable('is a link out of the folder of the files; copy the file there');
  return real;
}

function isBelow(base: string, candidate: string): boolean {
  const relative = path.relative(base, candidate);
  return relative === '' || !(relative === '..' || relative.startsWith(`..${path.sep}`) || path.isAbsolute(relative));
}

function readBounded(file: string): Uint8Array {
  const found = statSync(file);
  // Not a device or a pipe, which has no end.
  if (!found.isFile()) throw new Unusable('is no regular file');
  if (found.size > MAX_FILE_BYTES) throw new Unusable(`is larger than ${MAX_FILE_BYTES / 1024 / 1024} MiB`);
  return readFileSync(file);
}

/** Links are taken as links, so that no tree leads out of itself or round in circles. */
function collect(root: string, below: string, entries: TreeEntry[]): void {
  for (const name of readdirSync(path.join(root, below)).sort()) {
    const relative = below === '' ? name : `${below}/${name}`;
    const full = path.join(root, relative);
    const found = lstatSync(full);
    if (found.isDirectory()) collect(root, relative, entries);
    else if (found.isSymbolicLink()) entries.push({ kind: 'link', path: relative, target: readlinkSync(full) });
    else if (found.isFile()) {
      const executable = (found.mode & 0o111) !== 0;
      entries.push({ kind: 'file', path: relative, bytes: readBounded(full), executable });
    } else throw new Unusable(`has ${quote(relative)}, which is neither file, folder nor link; take it out`);
    if (entries.length > MAX_TREE_ENTRIES)
      throw new Unusable(`has more than ${MAX_TREE_ENTRIES} files; choose a smaller one`);
  }
}
