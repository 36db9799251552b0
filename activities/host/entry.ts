import { dirname } from 'node:path';
import type { Accounts } from './accounts.js';
import type { FilePart } from './file-part.js';
import type { Host } from './host.js';
import type { PathState } from './path-state.js';

export type EntryOrigin = 'file' | 'unit' | 'drop-in' | 'sshKeys' | 'password' | 'directory';

/** One path of the host that a config manages, and what it shall be. */
export interface Entry {
  /** Absolute within the host's root; after `desiredEntries` without links among its parents. */
  readonly path: string;
  /** The path as the config writes it, where that differs. */
  readonly declared?: string;
  readonly origin: EntryOrigin;
  /** For a unit or drop-in: the unit. */
  readonly unit?: string;
  /** `unmasked`: whatever was there before, only not masked. A part: the rest of the file is others'. */
  readonly state: PathState | FilePart | 'unmasked';
  /** Where the config says so, for example `storage.files[2]`. */
  readonly where: string;
}

/** What entries are made from. */
export interface EntryContext {
  readonly host: Host;
  readonly accounts: Accounts;
  readonly sshUser: string;
}

/** A config cannot be brought to this host; one line for people that names the field. */
export class NotPossibleHere extends Error {
  override readonly name = 'NotPossibleHere';
}

/** All folders above a path, outermost first, without `/`. */
export function parentsOf(path: string): string[] {
  const parents: string[] = [];
  for (let parent = dirname(path); parent !== '/'; parent = dirname(parent)) parents.unshift(parent);
  return parents;
}
