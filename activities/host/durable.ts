import { randomBytes } from 'node:crypto';
import { mkdir, open, readdir, readFile, rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';

/** True for an error of the file system with one of the codes, for example `ENOENT`. */
export function isErrno(error: unknown, ...codes: readonly string[]): error is NodeJS.ErrnoException {
  return error instanceof Error && 'code' in error && codes.includes(String(error.code));
}

/** Makes the names in a directory durable: without it a rename may be lost with the power. */
export async function syncDirectory(directory: string): Promise<void> {
  const handle = await open(directory, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** How `writeDurably` names what it has not finished: the file's own name, and this. */
const UNFINISHED = /^\.[0-9a-f]{8}$/;

/** Replaces a file of our own (mode 0600, parents 0700): after the promise the new contents survive a loss of power. */
export async function writeDurably(path: string, contents: string | Buffer): Promise<void> {
  const directory = dirname(path);
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const temporary = `${path}.${randomBytes(4).toString('hex')}`;
  const handle = await open(temporary, 'wx', 0o600);
  try {
    await handle.writeFile(contents);
    await handle.sync();
  } finally {
    await handle.close();
  }
  await rename(temporary, path);
  await syncDirectory(directory);
}

/** Removes what writes of that file left that were cut short. Nobody may be writing it. */
export async function removeUnfinished(path: string): Promise<void> {
  const [folder, own] = [dirname(path), basename(path)];
  for (const name of await namesIn(folder)) {
    if (name.startsWith(own) && UNFINISHED.test(name.slice(own.length))) await rm(join(folder, name), { force: true });
  }
}

/** The text of a file, or undefined where there is none. */
export async function readIfThere(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if (isErrno(error, 'ENOENT', 'ENOTDIR')) return undefined;
    throw error;
  }
}

/** The names in a folder; none where there is no folder. */
export async function namesIn(folder: string): Promise<string[]> {
  try {
    return await readdir(folder);
  } catch (error) {
    if (isErrno(error, 'ENOENT', 'ENOTDIR')) return [];
    throw error;
  }
}
