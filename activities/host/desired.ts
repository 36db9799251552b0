import type { MachineConfig } from '../../machine-config/api/machine-config.js';
import { readAccounts } from './accounts.js';
import { NotPossibleHere, parentsOf, type Entry, type EntryContext } from './entry.js';
import { fileEntries } from './files.js';
import type { Host, OsState } from './host.js';
import { ignitionOf, osStateOf } from './rendered.js';
import { checkManageable, PathRefused, resolveInRoot } from './root-path.js';
import { accountEntries } from './ssh-keys.js';
import { enablementWishes, unitEntries } from './units.js';

/** All that a config wants of a host. */
export interface Desired {
  readonly name: string;
  readonly entries: ReadonlyMap<string, Entry>;
  /** Unit to wish; units without a wish are left alone. */
  readonly enablement: ReadonlyMap<string, boolean>;
  readonly os: OsState;
}

/**
 * Translates a rendered config into paths and their states, with owners looked up in the host's own accounts.
 * Throws NotPossibleHere: unknown user, path outside or protected, one path wanted twice.
 */
export async function desiredEntries(config: MachineConfig, host: Host, sshUser: string): Promise<Desired> {
  const context: EntryContext = { host, accounts: await readAccounts(host.root), sshUser };
  const ignition = ignitionOf(config);
  const wanted = [
    ...fileEntries(ignition, context),
    ...unitEntries(ignition, context),
    ...(await accountEntries(ignition, context)),
  ];
  const entries = new Map<string, Entry>();
  for (const entry of wanted) {
    const path = await placeOf(host, entry);
    const other = entries.get(path);
    if (other !== undefined) {
      throw new NotPossibleHere(`${entry.where} and ${other.where} are the same path on this host, ${path}: keep one`);
    }
    entries.set(path, { ...entry, path, ...(path === entry.path ? {} : { declared: entry.path }) });
  }
  refuseFilesBelowFiles(entries);
  return {
    name: config.metadata.name,
    entries,
    enablement: enablementWishes(ignition),
    os: osStateOf(config),
  };
}

async function placeOf(host: Host, entry: Entry): Promise<string> {
  try {
    checkManageable(entry.path);
    const path = await resolveInRoot(host.root, entry.path);
    checkManageable(path);
    return path;
  } catch (error) {
    if (error instanceof PathRefused) throw new NotPossibleHere(`${entry.where}: ${error.message}`);
    throw error;
  }
}

function refuseFilesBelowFiles(entries: ReadonlyMap<string, Entry>): void {
  for (const entry of entries.values()) {
    for (const parent of parentsOf(entry.path)) {
      const above = entries.get(parent);
      if (above !== undefined && above.origin !== 'directory') {
        throw new NotPossibleHere(`${entry.where}: ${entry.path} lies below the file of ${above.where}: keep one`);
      }
    }
  }
}
