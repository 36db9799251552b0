import type { MachineConfig } from '../../machine-config/api/machine-config.js';
import { NotPossibleHere } from '../host/entry.js';
import { ignitionOf } from '../host/rendered.js';
import { verifyHost, type DriftItem } from '../host/verify.js';
import type { NodeDependencies } from './dependencies.js';

/** One thing that is not as the config says; `impossible`: the config cannot even be meant for this host any more. */
export type DriftFound = Omit<DriftItem, 'kind'> & { readonly kind: DriftItem['kind'] | 'impossible' };

/** What one look at the disk found. */
export type DiskFinding =
  /** An update, or its taking back, is not at its end: its own steps judge the disk. */
  | { readonly outcome: 'inWork' }
  /** `config` absent: this host was never given one. */
  | { readonly outcome: 'asDeclared'; readonly config?: string }
  | { readonly outcome: 'drifted'; readonly config: string; readonly items: readonly DriftFound[] };

/** Compares the disk with the config that it was brought to last. Changes nothing. */
export async function lookAtDisk(deps: NodeDependencies): Promise<DiskFinding> {
  const config = await deps.store.currentConfig();
  if (await isInWork(deps)) return { outcome: 'inWork' };
  if (config === undefined) return { outcome: 'asDeclared' };
  const items = await compare(config, deps);
  const { name } = config.metadata;
  // One that began meanwhile was seen half done.
  const isStill = (await deps.store.currentConfig())?.metadata.name === name;
  if (!isStill || (await isInWork(deps))) return { outcome: 'inWork' };
  return items.length === 0 ? { outcome: 'asDeclared', config: name } : { outcome: 'drifted', config: name, items };
}

/** Between the first write of an update and its last step, and while one is taken back. */
export async function isInWork({ store, host }: NodeDependencies): Promise<boolean> {
  if ((await store.journal()) !== undefined) return true;
  const rollback = await store.rollback();
  return rollback !== undefined && rollback.bootId === (await host.bootId());
}

async function compare(config: MachineConfig, deps: NodeDependencies): Promise<readonly DriftFound[]> {
  const { host, flavour } = deps;
  const verify = (part: MachineConfig) => verifyHost(part, { host, sshUser: flavour.sshUser, booted: true });
  try {
    return await verify(config);
  } catch (error) {
    if (!(error instanceof NotPossibleHere)) throw error;
    return compareInParts(config, error, verify);
  }
}

/**
 * A user that is gone, or a file in the place of a folder, makes the config as a whole impossible. Part by part it shows
 * which of it, and what else differs.
 */
async function compareInParts(
  config: MachineConfig,
  whole: NotPossibleHere,
  verify: (part: MachineConfig) => Promise<DriftItem[]>,
): Promise<readonly DriftFound[]> {
  const found = new Map<string, DriftFound>();
  const note = (item: DriftFound) => found.set(`${item.path}\0${item.words}`, item);
  for (const { path, part } of partsOf(config)) {
    try {
      for (const item of await verify(part)) note(item);
    } catch (error) {
      if (!(error instanceof NotPossibleHere)) throw error;
      note({ path, kind: 'impossible', words: error.message });
    }
  }
  const items = [...found.values()];
  if (items.some(({ kind }) => kind === 'impossible')) return items;
  return [...items, { path: config.metadata.name, kind: 'impossible', words: whole.message }];
}

/** The config as many, each with one file, unit or user of it, and with all that is not of Ignition. */
function partsOf(config: MachineConfig): { path: string; part: MachineConfig }[] {
  const { ignition, storage, systemd, passwd } = ignitionOf(config);
  const withOnly = (only: object): MachineConfig => ({
    ...config,
    spec: { ...config.spec, config: { ignition, ...only } },
  });
  return [
    ...(storage?.files ?? []).map((file) => ({ path: file.path, part: withOnly({ storage: { files: [file] } }) })),
    ...(systemd?.units ?? []).map((unit) => ({ path: unit.name, part: withOnly({ systemd: { units: [unit] } }) })),
    ...(passwd === undefined ? [] : [{ path: 'passwd', part: withOnly({ passwd }) }]),
  ];
}
