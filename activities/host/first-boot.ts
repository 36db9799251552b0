import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { MachineConfig } from '../../machine-config/api/machine-config.js';
import { MACHINE_CONFIG_FILE, NODE_ANNOTATIONS_FILE } from '../../machine-config/first-boot/paths.js';
import { isRecord } from '../../machine-config/ignition/findings.js';
import { readIfThere, writeDurably } from './durable.js';
import { desiredEntries } from './desired.js';
import { NotPossibleHere } from './entry.js';
import { isPart, putPart } from './file-part.js';
import type { Host } from './host.js';
import { withKeyBlock } from './key-block.js';
import { isRunningAlready, sameOsState } from './os-state.js';
import type { PathState } from './path-state.js';
import { osStateOf } from './rendered.js';
import { CURRENT_CONFIG_FILE, type StateStore } from './state-store.js';

interface Adoption {
  readonly host: Host;
  readonly store: StateStore;
  /** The user whose keys a config carries. */
  readonly sshUser: string;
  /** Annotation of a Node with the config that it runs. */
  readonly currentConfigKey: string;
  /** Whether a rendered config's contents have the hash in its name. */
  readonly hasItsName: (rendered: MachineConfig) => boolean;
}

/**
 * Takes the disk of a machine that was booted with a config of the Ignition server for what it is: at that config. Later
 * it is what was applied last that counts, so what the first boot left is read once and removed. A record that is not
 * whole is not believed: then the node is brought to its config by an update, which finds all of it there.
 */
export async function adoptFirstBoot(adoption: Adoption): Promise<void> {
  const { host, store, currentConfigKey, hasItsName } = adoption;
  const { root } = host;
  const name = annotationIn(await readIfThere(join(root, NODE_ANNOTATIONS_FILE)), currentConfigKey);
  if (name === undefined) return;
  if ((await store.currentConfig()) === undefined && (await store.journal()) === undefined) {
    const config = await firstBootConfig(root);
    if (config?.metadata.name !== name || !hasItsName(config)) return;
    await markKeys(config, adoption);
    await writeDurably(join(root, CURRENT_CONFIG_FILE), JSON.stringify(config));
  }
  for (const file of [NODE_ANNOTATIONS_FILE, MACHINE_CONFIG_FILE]) await rm(join(root, file), { force: true });
}

/**
 * In a file of keys that others may write as well, ours stand in a block of their own; Ignition knows of none. They are
 * put into one, so that a later config can take them away again.
 */
async function markKeys(config: MachineConfig, { host, sshUser }: Adoption): Promise<void> {
  try {
    const { entries } = await desiredEntries(config, host, sshUser);
    for (const { path, state } of entries.values()) {
      if (!isPart(state) || state.kind !== 'keys') continue;
      await putPart(host, path, (found) => withKeyBlock(state, withoutLines(found, state.lines)));
    }
  } catch (error) {
    // A config that is not possible on this host is found as that by the look for drift.
    if (!(error instanceof NotPossibleHere)) throw error;
  }
}

function withoutLines(found: PathState, lines: readonly string[]): PathState {
  if (found.kind !== 'file') return found;
  const unwanted = new Set(lines.map((line) => Buffer.from(line).toString('latin1')));
  const kept = found.contents.toString('latin1').match(/[^\n]*\n|[^\n]+$/gu) ?? [];
  const contents = kept.filter((line) => !unwanted.has(line.trim())).join('');
  return { ...found, contents: Buffer.from(contents, 'latin1') };
}

/** The config that this machine was booted with, until it is adopted; undefined: none, or what is there is damaged. */
export async function firstBootConfig(root: string): Promise<MachineConfig | undefined> {
  const record = parsed(await readIfThere(join(root, MACHINE_CONFIG_FILE)));
  return isRecord(record) && isRecord(record.metadata) && typeof record.metadata.name === 'string'
    ? (record as unknown as MachineConfig)
    : undefined;
}

function annotationIn(text: string | undefined, key: string): string | undefined {
  const annotations = parsed(text);
  const value = isRecord(annotations) ? annotations[key] : undefined;
  return typeof value === 'string' && value !== '' ? value : undefined;
}

function parsed(text: string | undefined): unknown {
  try {
    return text === undefined ? undefined : JSON.parse(text);
  } catch {
    return undefined;
  }
}

/**
 * What Ignition does not do: the operating system's image, kernel, packages and arguments as the config says. Nothing is
 * done where the next boot has them; a reboot is due unless the machine runs with them already.
 *
 * @throws NotPossibleHere where the host cannot do it.
 */
export async function stageFirstBoot(config: MachineConfig, { os }: Pick<Host, 'os'>): Promise<{ reboot: boolean }> {
  const wanted = osStateOf(config);
  const staged = await os.staged();
  if (sameOsState(staged, wanted)) return { reboot: false };
  const isThere = await isRunningAlready(os, staged, wanted);
  await os.stage(wanted);
  return { reboot: !isThere };
}
