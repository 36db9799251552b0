import { join } from 'node:path';
import { readIfThere } from './durable.js';

export interface Account {
  readonly name: string;
  readonly uid: number;
  readonly gid: number;
  readonly home: string;
}

/** The users and groups of a root folder, from its own /etc/passwd and /etc/group (never those of the machine we run on). */
export interface Accounts {
  user(name: string): Account | undefined;
  /** The group's id. */
  group(name: string): number | undefined;
}

export async function readAccounts(root: string): Promise<Accounts> {
  const users = new Map<string, Account>();
  for (const [name = '', , uid = '', gid = '', , home = ''] of await readTable(join(root, 'etc/passwd'))) {
    users.set(name, { name, uid: Number(uid), gid: Number(gid), home });
  }
  const groups = new Map<string, number>();
  for (const [name = '', , gid = ''] of await readTable(join(root, 'etc/group'))) groups.set(name, Number(gid));
  return { user: (name) => users.get(name), group: (name) => groups.get(name) };
}

async function readTable(path: string): Promise<string[][]> {
  const text = (await readIfThere(path)) ?? '';
  return text
    .split('\n')
    .filter((line) => line.includes(':'))
    .map((line) => line.split(':'));
}
