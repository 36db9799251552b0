import { join } from 'node:path';
import type { MachineConfig } from '../../machine-config/api/machine-config.js';
import { desiredEntries } from '../host/desired.js';
import { namesIn } from '../host/durable.js';
import { NotPossibleHere } from '../host/entry.js';
import { FORCE_FILE } from '../host/force.js';
import { ignitionOf } from '../host/rendered.js';
import { CURRENT_CONFIG_FILE, JOURNAL_FILE } from '../host/state-store.js';
import { enablementWishes, templateOf, UNIT_FOLDER, UNIT_PATHS } from '../host/units.js';
import type { WatchedPaths } from '../host/watch-paths.js';
import type { NodeDependencies } from './dependencies.js';

/** An update that ends, the file that forces one, and the accounts that owners and keys are looked up in. */
const ALWAYS = [JOURNAL_FILE, CURRENT_CONFIG_FILE, FORCE_FILE, '/etc/passwd', '/etc/group', '/etc/shadow'];
/** Where the kernel arguments of the next boot are written, by whichever means. */
const BOOT_FOLDERS = ['/etc/default/grub.d', '/boot/loader/entries', '/boot/grub', '/boot/grub2'];
const LINK_FOLDER = /\.(wants|requires|upholds)$/;
/** Unit folders in which links of enablement and masks lie. */
const LINK_ROOTS = [UNIT_FOLDER, '/run/systemd/system'];

/**
 * What to watch so that no change goes unseen which makes the host differ from a config, or ends such a difference. The
 * places of entries, which take a look at the host's accounts and services, are those of the last `refresh`.
 */
export class DriftPaths {
  private readonly deps: NodeDependencies;
  private places: { readonly config: string; readonly paths: readonly string[] } | undefined;

  constructor(deps: NodeDependencies) {
    this.deps = deps;
  }

  async of(config: MachineConfig | undefined, refresh: boolean): Promise<WatchedPaths> {
    if (config === undefined) return { paths: ALWAYS, folders: [] };
    if (refresh || this.places?.config !== config.metadata.name) {
      this.places = { config: config.metadata.name, paths: await entryPaths(config, this.deps) };
    }
    const units = [...enablementWishes(ignitionOf(config)).keys()];
    return {
      paths: [...ALWAYS, ...declaredPaths(config), ...this.places.paths, ...units.flatMap(unitFiles)],
      folders: [...BOOT_FOLDERS, ...(units.length === 0 ? [] : await linkFolders(this.deps.host.root))],
    };
  }
}

/** What a config manages, as it names it and where it lies on this host. */
export async function managedPaths(config: MachineConfig, deps: NodeDependencies): Promise<string[]> {
  return [...declaredPaths(config), ...(await entryPaths(config, deps))];
}

/** Where the entries lie once links among their parents are followed, and the files of keys. */
async function entryPaths(config: MachineConfig, { host, flavour }: NodeDependencies): Promise<string[]> {
  try {
    return [...(await desiredEntries(config, host, flavour.sshUser)).entries.keys()];
  } catch (error) {
    // Drift itself: the paths as they are written tell when it ends.
    if (error instanceof NotPossibleHere) return [];
    throw error;
  }
}

/** Paths as the config writes them, links among their parents and all. */
function declaredPaths(config: MachineConfig): string[] {
  const { storage, systemd } = ignitionOf(config);
  const files = (storage?.files ?? []).map(({ path }) => path);
  const units = (systemd?.units ?? []).flatMap(({ name, dropins }) => [
    `${UNIT_FOLDER}/${name}`,
    ...(dropins ?? []).map((dropIn) => `${UNIT_FOLDER}/${name}.d/${dropIn.name}`),
  ]);
  return [...files, ...units];
}

/** Wherever a unit that shall be enabled or disabled may come from: one that appears counts, one that goes does not. */
function unitFiles(unit: string): string[] {
  return UNIT_PATHS.flatMap((folder) => [...new Set([unit, templateOf(unit)])].map((name) => `${folder}/${name}`));
}

/** The unit folders and those in them in which units are linked when they are enabled. */
async function linkFolders(root: string): Promise<string[]> {
  const folders = [...LINK_ROOTS];
  for (const folder of LINK_ROOTS) {
    for (const name of await namesIn(join(root, folder))) {
      if (LINK_FOLDER.test(name)) folders.push(`${folder}/${name}`);
    }
  }
  return folders;
}
