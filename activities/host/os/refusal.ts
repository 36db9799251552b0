import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { OS_FIELDS, type OsField } from '../../../machine-config/change/os-fields.js';
import { isErrno } from '../durable.js';
import type { OsBackendName, OsState } from '../host.js';

/** Nothing of the operating system is asked for. */
export const PLAIN_OS: OsState = { kernelArguments: [], osImageURL: '', kernelType: 'default', extensions: [] };

/** Reasons by field; a field without one can be carried out. */
export type Refusals = Readonly<Partial<Record<OsField, string>>>;

const NEEDS_IMAGES = 'this host has no image-based operating system (bootc or rpm-ostree)';

/** What a host whose packages are installed one by one cannot do. */
export const REFUSALS_WITHOUT_IMAGES: Refusals = {
  osImageURL: NEEDS_IMAGES,
  extensions: `${NEEDS_IMAGES} that could take extensions: install the packages by other means`,
  kernelType: `${NEEDS_IMAGES} whose kernel could be exchanged: install that kernel by other means`,
};

/**
 * FIPS mode is set when a machine is installed: switched on later, keys made before would not comply. So a config may ask
 * for it only where the running kernel has it already.
 */
export async function fipsRefusal(root: string): Promise<Refusals> {
  const found = await readOrNothing(join(root, 'proc/sys/crypto/fips_enabled'));
  if (found.trim() === '1') return {};
  return {
    fips: 'the running kernel is not in FIPS mode, and that cannot be changed later: reinstall the node with it',
  };
}

/** Every field is refused for one reason, except what holds already. */
export function refuseAll(reason: string, fips: Refusals): Refusals {
  const all = Object.fromEntries(OS_FIELDS.map((field) => [field, reason]));
  if (fips.fips === undefined) delete all['fips'];
  return { ...all, ...fips };
}

/** Throws for what the backend does not do. It was refused before; this is for what would otherwise be left out in silence. */
export function refuseOthers(backend: OsBackendName, wanted: OsState, supported: readonly (keyof OsState)[]): void {
  const isPlain: Record<keyof OsState, boolean> = {
    kernelArguments: wanted.kernelArguments.length === 0,
    osImageURL: wanted.osImageURL === '',
    kernelType: wanted.kernelType === 'default',
    extensions: wanted.extensions.length === 0,
  };
  for (const [field, plain] of Object.entries(isPlain) as [keyof OsState, boolean][]) {
    if (!plain && !supported.includes(field)) throw new Error(`${field}: the backend ${backend} cannot change it`);
  }
}

async function readOrNothing(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if (isErrno(error, 'ENOENT', 'ENOTDIR')) return '';
    throw error;
  }
}
