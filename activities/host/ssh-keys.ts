import type { IgnitionConfig } from '../../machine-config/ignition/config.js';
import type { Account } from './accounts.js';
import { NotPossibleHere, type Entry, type EntryContext } from './entry.js';
import { isMarker } from './key-block.js';
import { hashRefusal, SHADOW_FILE } from './shadow.js';
import { foldersInHome } from './sshd.js';

const FOLDER_MODE = 0o700;
const KEY_FILE_MODE = 0o600;

/**
 * The SSH keys and the password of the flavour's one user, for the account of this host that it stands for. The keys go
 * where sshd looks for them, in folders that belong to the account, since sshd refuses keys that others could have
 * written. Throws NotPossibleHere.
 */
export async function accountEntries(ignition: Partial<IgnitionConfig>, context: EntryContext): Promise<Entry[]> {
  const { host, accounts, sshUser } = context;
  const users = ignition.passwd?.users ?? [];
  const other = users.findIndex(({ name }) => name !== sshUser);
  if (other >= 0) {
    const where = `passwd.users[${other}] (${users[other]?.name ?? ''})`;
    throw new NotPossibleHere(`${where}: only the user ${sshUser} can be configured; remove the others`);
  }
  const keys = users.flatMap((user) => user.sshAuthorizedKeys ?? []);
  const hash = users.findLast((user) => Boolean(user.passwordHash))?.passwordHash;
  if (keys.length === 0 && !hash) return [];

  const name = host.sshAccount ?? sshUser;
  const account = accounts.user(name);
  if (account === undefined) {
    const stand = name === sshUser ? '' : `, which ${sshUser} stands for,`;
    throw new NotPossibleHere(
      `passwd.users (${sshUser}): the user ${name}${stand} does not exist on this host: create it first`,
    );
  }
  return [
    ...(keys.length === 0 ? [] : await keyEntries(keys, account, context)),
    ...(hash ? [passwordEntry(hash, account, sshUser)] : []),
  ];
}

async function keyEntries(
  keys: readonly string[],
  account: Account,
  { host, sshUser }: EntryContext,
): Promise<Entry[]> {
  const where = `passwd.users (${sshUser}).sshAuthorizedKeys`;
  const lines = [...new Set(keys.flatMap((key) => key.split('\n')).map((line) => line.trim()))].filter(Boolean);
  if (lines.some(isMarker)) throw new NotPossibleHere(`${where}: has a line that marks Drydock's own keys; remove it`);
  const { path, shared } = await placeOf(account, host, where);
  const owner = host.ownerOnDisk(account);
  const folders = foldersInHome(path, account).map<Entry>((folder) => ({
    path: folder,
    origin: 'directory',
    where,
    state: { kind: 'directory', mode: FOLDER_MODE, ...owner },
  }));
  const contents = Buffer.from(lines.map((line) => `${line}\n`).join(''));
  const state: Entry['state'] = shared
    ? { kind: 'keys', lines, ...owner }
    : { kind: 'file', contents, mode: KEY_FILE_MODE, ...owner };
  return [...folders, { path, origin: 'sshKeys', where, state }];
}

async function placeOf(account: Account, host: EntryContext['host'], where: string) {
  try {
    return await host.sshKeyPlace(account);
  } catch (error) {
    if (error instanceof NotPossibleHere) throw new NotPossibleHere(`${where}: ${error.message}`);
    throw error;
  }
}

function passwordEntry(hash: string, { name }: Account, sshUser: string): Entry {
  const where = `passwd.users (${sshUser}).passwordHash`;
  const refusal = hashRefusal(hash);
  if (refusal !== undefined) throw new NotPossibleHere(`${where}: ${refusal}`);
  return { path: SHADOW_FILE, origin: 'password', where, state: { kind: 'password', account: name, hash } };
}
