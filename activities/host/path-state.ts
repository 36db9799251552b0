import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import {
  chmod,
  lchown,
  lstat,
  mkdir,
  open,
  readFile,
  readlink,
  rename,
  rm,
  rmdir,
  symlink,
  unlink,
} from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { isErrno, syncDirectory } from './durable.js';

export interface Owner {
  readonly uid: number;
  readonly gid: number;
}

/** All that Drydock manages about one path. Modes are permission bits (0 to 07777). */
export type PathState =
  | { readonly kind: 'absent' }
  | ({ readonly kind: 'file'; readonly contents: Buffer; readonly mode: number } & Owner)
  | ({ readonly kind: 'link'; readonly target: string } & Owner)
  | ({ readonly kind: 'directory'; readonly mode: number } & Owner)
  /** A socket, device or pipe: never replaced. */
  | { readonly kind: 'special' };

export const ABSENT: PathState = { kind: 'absent' };
export const MASK_TARGET = '/dev/null';

const PERMISSIONS = 0o7777;

/** What is at a real path now; a link is not followed. */
export async function readState(path: string): Promise<PathState> {
  try {
    const stats = await lstat(path);
    const owner = { uid: stats.uid, gid: stats.gid };
    const mode = stats.mode & PERMISSIONS;
    if (stats.isSymbolicLink()) return { kind: 'link', target: await readlink(path), ...owner };
    if (stats.isDirectory()) return { kind: 'directory', mode, ...owner };
    if (stats.isFile()) return { kind: 'file', contents: await readFile(path), mode, ...owner };
    return { kind: 'special' };
  } catch (error) {
    if (isErrno(error, 'ENOENT', 'ENOTDIR')) return ABSENT;
    throw error;
  }
}

export interface Difference {
  readonly kind: 'missing' | 'type' | 'link' | 'mode' | 'owner' | 'contents';
  /** For people; never tells contents. */
  readonly words: string;
}

/** What differs between two states of a path; undefined: nothing. */
export function differenceOf(expected: PathState, found: PathState): Difference | undefined {
  if (expected.kind !== found.kind) {
    const kind = found.kind === 'absent' ? 'missing' : 'type';
    return { kind, words: `expected ${article(expected)}, found ${article(found)}` };
  }
  if (expected.kind === 'absent' || expected.kind === 'special') return undefined;
  if (found.kind === 'absent' || found.kind === 'special') return undefined;
  if (expected.kind === 'link' && found.kind === 'link' && expected.target !== found.target) {
    return { kind: 'link', words: `expected a link to ${expected.target}, found one to ${found.target}` };
  }
  if (expected.kind === 'file' && found.kind === 'file' && !expected.contents.equals(found.contents)) {
    const sizes = `expected ${expected.contents.length} bytes, found ${found.contents.length}`;
    return { kind: 'contents', words: `other contents (${sizes})` };
  }
  return attributesDiffer(expected, found);
}

type Owned = Extract<PathState, Owner>;

function attributesDiffer(expected: Owned, found: Owned): Difference | undefined {
  if (expected.kind !== 'link' && found.kind !== 'link' && expected.mode !== found.mode) {
    return { kind: 'mode', words: `expected mode ${octal(expected.mode)}, found ${octal(found.mode)}` };
  }
  if (expected.uid !== found.uid || expected.gid !== found.gid) {
    return { kind: 'owner', words: `expected owner ${expected.uid}:${expected.gid}, found ${found.uid}:${found.gid}` };
  }
  return undefined;
}

const octal = (mode: number): string => mode.toString(8).padStart(4, '0');

function article(state: PathState): string {
  const words = {
    absent: 'nothing',
    file: 'a file',
    link: 'a link',
    directory: 'a directory',
    special: 'a special file',
  };
  return words[state.kind];
}

/** The name under which a file is written before it takes its place; one a path, so that a lost one is found again. */
export function temporaryName(path: string): string {
  const name = basename(path);
  const short = Buffer.byteLength(name) <= 200 ? name : createHash('sha256').update(name).digest('hex');
  return join(dirname(path), `.${short}.drydock-new`);
}

/** Completes what was written at a real path, before it takes its place: the security label, for example. */
type Finish = (written: string) => Promise<void>;

/**
 * Brings a real path to a state, durably, and only if it differs. Files and links are complete beside their place
 * (contents, mode, owner, and what `finish` does) before they take it by rename, so nobody ever sees half of one. A
 * directory that is to be absent but is not empty stays: what is in it is not ours. The parent must exist.
 */
export async function putState(
  path: string,
  state: PathState,
  finish: Finish = () => Promise.resolve(),
): Promise<void> {
  await rm(temporaryName(path), { force: true });
  const found = await readState(path);
  if (differenceOf(state, found) === undefined) return;
  switch (state.kind) {
    case 'absent':
      return removePath(path, found);
    case 'directory':
      return putDirectory(path, state, found, finish);
    case 'file':
    case 'link':
      refuseToReplace(path, found);
      await (state.kind === 'file' ? writeTemporary(path, state, finish) : linkTemporary(path, state, finish));
      await rename(temporaryName(path), path);
      return syncDirectory(dirname(path));
    case 'special':
      throw new Error(`${path}: special files cannot be made`);
  }
}

function refuseToReplace(path: string, found: PathState): void {
  if (found.kind === 'directory' || found.kind === 'special') {
    throw new Error(`${path}: is ${article(found)}, which is never replaced`);
  }
}

async function writeTemporary(path: string, state: PathState & { kind: 'file' }, finish: Finish): Promise<void> {
  const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
  const handle = await open(temporaryName(path), flags, 0o600);
  try {
    await handle.writeFile(state.contents);
    const made = await handle.stat();
    // Only where needed: an unprivileged lab may not give files away. Before chmod, since chown clears the set-id bits.
    if (made.uid !== state.uid || made.gid !== state.gid) await handle.chown(state.uid, state.gid);
    await handle.chmod(state.mode);
    await finish(temporaryName(path));
    await handle.sync();
  } finally {
    await handle.close();
  }
}

async function linkTemporary(path: string, state: PathState & { kind: 'link' }, finish: Finish): Promise<void> {
  await symlink(state.target, temporaryName(path));
  await own(temporaryName(path), state);
  await finish(temporaryName(path));
}

async function putDirectory(
  path: string,
  state: PathState & { kind: 'directory' },
  found: PathState,
  finish: Finish,
): Promise<void> {
  if (found.kind === 'absent') {
    await mkdir(path, { mode: 0o700 });
    await finish(path);
  } else if (found.kind !== 'directory') {
    throw new Error(`${path}: is ${article(found)}, a directory is needed`);
  }
  await own(path, state);
  await chmod(path, state.mode);
  await syncDirectory(dirname(path));
}

async function own(path: string, owner: Owner): Promise<void> {
  const stats = await lstat(path);
  if (stats.uid !== owner.uid || stats.gid !== owner.gid) await lchown(path, owner.uid, owner.gid);
}

async function removePath(path: string, found: PathState): Promise<void> {
  refuseToRemove(path, found);
  try {
    await (found.kind === 'directory' ? rmdir(path) : unlink(path));
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return;
    if (isErrno(error, 'ENOTEMPTY', 'EEXIST') && found.kind === 'directory') return;
    throw error;
  }
  await syncDirectory(dirname(path));
}

function refuseToRemove(path: string, found: PathState): void {
  if (found.kind === 'special') throw new Error(`${path}: is a special file, which is never removed`);
}
