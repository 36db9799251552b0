import type { IgnitionConfig } from '../../machine-config/ignition/config.js';
import { NotPossibleHere, type Entry, type EntryContext } from './entry.js';

/**
 * The SSH keys of the flavour's one user: one file, and the two folders above it, all the user's own, since sshd refuses
 * keys that others could have written.
 */
export function sshKeyEntries(ignition: Partial<IgnitionConfig>, { host, accounts, sshUser }: EntryContext): Entry[] {
  const users = ignition.passwd?.users ?? [];
  const keys: string[] = [];
  users.forEach((user, index) => {
    const where = `passwd.users[${index}] (${user.name})`;
    if (user.name !== sshUser) {
      throw new NotPossibleHere(`${where}: only the user ${sshUser} can be configured; remove the others`);
    }
    if (user.passwordHash) {
      throw new NotPossibleHere(`${where}.passwordHash: this host cannot set passwords yet; use SSH keys`);
    }
    keys.push(...(user.sshAuthorizedKeys ?? []));
  });
  if (keys.length === 0) return [];

  const where = `passwd.users (${sshUser}).sshAuthorizedKeys`;
  const account = accounts.user(sshUser);
  if (account === undefined) {
    throw new NotPossibleHere(`${where}: the user ${sshUser} does not exist on this host: create it first`);
  }
  const owner = host.ownerOnDisk(account);
  const folder = `${account.home}/.ssh`;
  const contents = Buffer.from([...new Set(keys.map((key) => key.trim()))].map((key) => `${key}\n`).join(''));
  const directory = (path: string): Entry => ({
    path,
    origin: 'directory',
    where,
    state: { kind: 'directory', mode: 0o700, ...owner },
  });
  return [
    directory(folder),
    directory(`${folder}/authorized_keys.d`),
    {
      path: `${folder}/authorized_keys.d/ignition`,
      origin: 'sshKeys',
      where,
      state: { kind: 'file', contents, mode: 0o600, ...owner },
    },
  ];
}
