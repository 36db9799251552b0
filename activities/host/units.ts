import { lstat, readlink } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { IgnitionConfig } from '../../machine-config/ignition/config.js';
import { isErrno, namesIn } from './durable.js';
import type { Entry, EntryContext } from './entry.js';
import { ABSENT, MASK_TARGET, type PathState } from './path-state.js';

/** Where an administrator's units live; links of enablement too. */
export const UNIT_FOLDER = '/etc/systemd/system';
/** Where unit files may come from, first wins. */
export const UNIT_PATHS = [
  UNIT_FOLDER,
  '/run/systemd/system',
  '/usr/local/lib/systemd/system',
  '/usr/lib/systemd/system',
  '/lib/systemd/system',
];
const UNIT_FILE_MODE = 0o644;

/**
 * The unit files, masks and drop-ins of a config. A mask wins over a body. A unit with neither body nor mask is left
 * alone, except that an explicit `mask: false` takes a mask away. A drop-in without contents is one that must not exist.
 */
export function unitEntries(ignition: Partial<IgnitionConfig>, { host }: EntryContext): Entry[] {
  const owner = host.ownerOnDisk({ uid: 0, gid: 0 });
  const file = (text: string): PathState => ({
    kind: 'file',
    contents: Buffer.from(text),
    mode: UNIT_FILE_MODE,
    ...owner,
  });
  return (ignition.systemd?.units ?? []).flatMap((unit, index) => {
    const where = `systemd.units[${index}] (${unit.name})`;
    const dropIns = (unit.dropins ?? []).map<Entry>((dropIn) => ({
      path: `${UNIT_FOLDER}/${unit.name}.d/${dropIn.name}`,
      origin: 'drop-in',
      unit: unit.name,
      where: `${where} drop-in ${dropIn.name}`,
      state: dropIn.contents ? file(dropIn.contents) : ABSENT,
    }));
    const path = `${UNIT_FOLDER}/${unit.name}`;
    const body = (state: Entry['state']): Entry => ({ path, origin: 'unit', unit: unit.name, where, state });
    if (unit.mask === true) return [body({ kind: 'link', target: MASK_TARGET, ...owner }), ...dropIns];
    if (unit.contents) return [body(file(unit.contents)), ...dropIns];
    if (unit.mask === false) return [body('unmasked'), ...dropIns];
    return dropIns;
  });
}

/** Units that shall be enabled (true) or disabled (false); a masked unit can be neither, and absent is not false. */
export function enablementWishes(ignition: Partial<IgnitionConfig>): Map<string, boolean> {
  const wishes = new Map<string, boolean>();
  for (const unit of ignition.systemd?.units ?? []) {
    if (typeof unit.enabled === 'boolean' && unit.mask !== true) wishes.set(unit.name, unit.enabled);
  }
  return wishes;
}

const UNIT_NAME = /^[^/]+\.(service|socket|device|mount|automount|swap|target|path|timer|slice|scope)$/;

/**
 * The unit that a path within the root defines, in whole or by a drop-in, if it lies where systemd looks for units:
 * `foo.service` for `/etc/systemd/system/foo.service` and for `/etc/systemd/system/foo.service.d/10-a.conf`.
 */
export function unitOfPath(path: string): string | undefined {
  const folder = UNIT_PATHS.find((candidate) => path.startsWith(`${candidate}/`));
  const [first = '', ...rest] = folder === undefined ? [] : path.slice(folder.length + 1).split('/');
  const isDropIn = rest.length === 1 && first.endsWith('.d') && rest[0]?.endsWith('.conf') === true;
  const unit = isDropIn ? first.slice(0, -'.d'.length) : first;
  return (rest.length === 0 || isDropIn) && UNIT_NAME.test(unit) ? unit : undefined;
}

/** systemd reads a path below one of its unit folders only when it is told to. */
export function isReadByDaemon(path: string): boolean {
  return UNIT_PATHS.some((folder) => path.startsWith(`${folder}/`));
}

/** `foo@.service`: nothing that could run, but what instances are made from. */
export const isTemplate = (unit: string): boolean => /@\.[a-z]+$/.test(unit);

/** True for `foo@bar.service` if asked for the instances of `foo@.service`. */
export function isInstanceOf(template: string, unit: string): boolean {
  return isTemplate(template) && unit !== template && templateOf(unit) === template;
}

/** `foo@.service` for `foo@bar.service`, else the name itself. */
export function templateOf(unit: string): string {
  return unit.replace(/@[^@]+(\.[a-z]+)$/, '@$1');
}

/** The path, within the root, of the file that defines a unit; undefined: the host has no such unit. */
export async function findUnitFile(
  root: string,
  unit: string,
  exists = (path: string) => isThere(join(root, path)),
): Promise<string | undefined> {
  for (const folder of UNIT_PATHS) {
    for (const name of new Set([unit, templateOf(unit)])) {
      const path = `${folder}/${name}`;
      if (await exists(path)) return path;
    }
  }
  return undefined;
}

/** Something is at the path, a broken link too. */
export async function isThere(path: string): Promise<boolean> {
  try {
    await lstat(path);
    return true;
  } catch (error) {
    if (isErrno(error, 'ENOENT', 'ENOTDIR')) return false;
    throw error;
  }
}

export interface EnablementLink {
  /** Within the root. */
  readonly path: string;
  readonly target: string;
}

/**
 * The links by which a unit is enabled: in the folders `*.wants`, `*.requires`, `*.upholds`, and its aliases; those of a
 * template are the links of its instances. Sorted.
 */
export async function enablementLinks(root: string, unit: string): Promise<EnablementLink[]> {
  const links: EnablementLink[] = [];
  for (const name of await namesIn(join(root, UNIT_FOLDER))) {
    const path = `${UNIT_FOLDER}/${name}`;
    if (/\.(wants|requires|upholds)$/.test(name)) {
      const all = isTemplate(unit) ? await namesIn(join(root, path)) : [];
      for (const link of [unit, ...all.filter((other) => isInstanceOf(unit, other))]) {
        const target = await linkTarget(join(root, path, link));
        if (target !== undefined) links.push({ path: `${path}/${link}`, target });
      }
    } else if (name !== unit) {
      const target = await linkTarget(join(root, path));
      if (target !== undefined && basename(target) === unit) links.push({ path, target });
    }
  }
  return links.sort((one, other) => (one.path < other.path ? -1 : 1));
}

async function linkTarget(path: string): Promise<string | undefined> {
  try {
    return await readlink(path);
  } catch (error) {
    if (isErrno(error, 'ENOENT', 'ENOTDIR', 'EINVAL')) return undefined;
    throw error;
  }
}
