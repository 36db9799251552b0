import { link, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { isErrno } from './durable.js';
import { NotPossibleHere } from './entry.js';
import type { Difference, PathState } from './path-state.js';

export const SHADOW_FILE = '/etc/shadow';

/** The password of one account; the other lines and fields of the file are others'. */
export interface PasswordField {
  readonly kind: 'password';
  readonly account: string;
  /** As crypt(5) writes it, or `*` for none that could be right. Never to be told to anybody. */
  readonly hash: string;
}

type File = PathState & { readonly kind: 'file' };

const DAY_MS = 24 * 60 * 60 * 1000;
/** A password that nothing matches; keys still work, where `!` would lock the account for some sshd. */
const NO_PASSWORD = '*';

/** Why a text cannot be a password's hash; undefined: it can. Never tells the text. */
export function hashRefusal(hash: string): string | undefined {
  if (/^[*!]{1,2}$/.test(hash)) return undefined;
  if (/^\$(?:1|2[abxy]|5|6|7|y|gy|sm3|argon2(?:i|d|id))\$[!-9;-~]{16,}$/.test(hash)) return undefined;
  return 'is not a hash as crypt(5) writes them ($y$…, $6$…): make one with `mkpasswd` or `openssl passwd -6`';
}

/** The file with the password in it, changed only if it is another one. Throws NotPossibleHere where there is no such line. */
export function withPassword(field: PasswordField, found: PathState): PathState {
  const fields = fieldsOf(found, field.account);
  if (found.kind !== 'file' || fields === undefined) {
    throw new NotPossibleHere(`${SHADOW_FILE} has no line for ${field.account}: give the account one with pwconv`);
  }
  if (fields[1] === field.hash) return found;
  return withFields(found, field.account, [field.hash, String(Math.floor(Date.now() / DAY_MS))]);
}

/** The file as found, with the password, and the day of its change, that an earlier state of the file had. */
export function withPasswordOf(earlier: PathState, found: PathState): PathState {
  const [account = '', hash, day = ''] = firstLine(earlier);
  if (found.kind !== 'file' || hash === undefined || fieldsOf(found, account) === undefined) return found;
  return withFields(found, account, [hash, day]);
}

/** Of an earlier state of the file only the account's own line: that is all that is kept, and all that comes back. */
export function passwordLineOf(account: string, state: PathState): PathState {
  const fields = fieldsOf(state, account);
  if (state.kind !== 'file' || fields === undefined)
    return state.kind === 'file' ? { ...state, contents: Buffer.alloc(0) } : state;
  return { ...state, contents: Buffer.from(`${fields.join(':')}\n`, 'latin1') };
}

/** An account that was found without any password is left with one that nothing matches: nobody could log in by an empty one. */
export function lockedIfEmpty(earlier: PathState): PathState {
  const [account, hash] = firstLine(earlier);
  if (earlier.kind !== 'file' || account === undefined || hash !== '') return earlier;
  return withFields(earlier, account, [NO_PASSWORD]);
}

export function passwordDifference({ account, hash }: PasswordField, found: PathState): Difference | undefined {
  const fields = fieldsOf(found, account);
  if (fields === undefined) return { kind: 'missing', words: `expected a line for ${account}, found none` };
  return fields[1] === hash ? undefined : { kind: 'contents', words: `the password of ${account} is another one` };
}

/** The accounts that have a line. */
export function accountsOf(state: PathState): string[] {
  return linesOf(state).map((line) => line.slice(0, line.indexOf(':')));
}

function fieldsOf(state: PathState, account: string): string[] | undefined {
  return linesOf(state)
    .map((line) => line.split(':'))
    .find(([name]) => name === account);
}

function firstLine(state: PathState): string[] {
  return linesOf(state)[0]?.split(':') ?? [];
}

function linesOf(state: PathState): string[] {
  if (state.kind !== 'file') return [];
  return state.contents
    .toString('latin1')
    .split('\n')
    .filter((line) => line.includes(':'));
}

/** `values`: from the second field on. */
function withFields(file: File, account: string, values: readonly string[]): File {
  const lines = file.contents
    .toString('latin1')
    .split('\n')
    .map((line) => {
      const fields = line.split(':');
      if (fields[0] !== account || fields.length < 2) return line;
      return [account, ...values, ...fields.slice(1 + values.length)].join(':');
    });
  return { ...file, contents: Buffer.from(lines.join('\n'), 'latin1') };
}

const LOCK_POLL_MS = 100;
/** One name for good, so that what a killed worker left is found again. */
const OUR_LOCK = '/etc/.shadow.drydock-lock';
/** Programs hold the lock for milliseconds; passwd(1) does not take it while it waits for a person. */
const LOCK_PATIENCE_MS = 15_000;

/**
 * Keeps the programs of shadow-utils (usermod, chpasswd, useradd …) from the file meanwhile, by their own lock: a file
 * with the process id of its owner. Throws where somebody else keeps it.
 */
export async function holdingShadowLock<T>(root: string, act: () => Promise<T>): Promise<T> {
  const lock = join(root, `${SHADOW_FILE}.lock`);
  const mine = join(root, OUR_LOCK);
  // Left by a worker that was killed: its process id may be that of another program by now.
  if (await isSameFile(mine, lock)) await rm(lock, { force: true });
  await writeFile(mine, `${process.pid}\0`, { mode: 0o600 });
  try {
    const until = Date.now() + LOCK_PATIENCE_MS;
    while (!(await takeLock(mine, lock))) {
      if (Date.now() > until)
        throw new Error(`${SHADOW_FILE}.lock: another program holds it: look which one, and end it`);
      await sleep(LOCK_POLL_MS);
    }
    try {
      return await act();
    } finally {
      await rm(lock, { force: true });
    }
  } finally {
    await rm(mine, { force: true });
  }
}

async function takeLock(mine: string, lock: string): Promise<boolean> {
  try {
    await link(mine, lock);
    return true;
  } catch (error) {
    if (!isErrno(error, 'EEXIST')) throw error;
  }
  const owner = Number.parseInt(await readFile(lock, 'latin1').catch(() => ''), 10);
  // As shadow-utils do: the lock of a process that is gone is nobody's.
  if (Number.isSafeInteger(owner) && owner > 0 && isAlive(owner)) return false;
  await rm(lock, { force: true });
  return false;
}

async function isSameFile(one: string, other: string): Promise<boolean> {
  try {
    const [a, b] = await Promise.all([stat(one), stat(other)]);
    return a.ino === b.ino && a.dev === b.dev;
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return false;
    throw error;
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return isErrno(error, 'EPERM');
  }
}
