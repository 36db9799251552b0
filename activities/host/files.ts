import type { IgnitionConfig, IgnitionFile } from '../../machine-config/ignition/config.js';
import { NotPossibleHere, type Entry, type EntryContext } from './entry.js';
import type { Owner } from './path-state.js';
import { contentsOf } from './rendered.js';

const DEFAULT_FILE_MODE = 0o644;
/** Permissions, set-id bits and the sticky bit. What the API allows is less; see rendering. */
const MOST_PERMISSIONS = 0o7777;

/** The files of a config. */
export function fileEntries(ignition: Partial<IgnitionConfig>, context: EntryContext): Entry[] {
  return (ignition.storage?.files ?? []).map((file, index) => {
    const where = `storage.files[${index}] (${file.path})`;
    if ((file.append ?? []).length > 0) {
      throw new NotPossibleHere(`${where}: append only works at first boot; write the whole file with contents`);
    }
    const owner = context.host.ownerOnDisk(ownerOf(file, where, context));
    const mode = modeOf(file, where);
    return {
      path: file.path,
      origin: 'file',
      where,
      state: { kind: 'file', contents: contentsOf(file), mode, ...owner },
    };
  });
}

function modeOf({ mode = DEFAULT_FILE_MODE }: IgnitionFile, where: string): number {
  if (Number.isInteger(mode) && mode >= 0 && mode <= MOST_PERMISSIONS) return mode;
  throw new NotPossibleHere(`${where}.mode: ${mode} is no mode of a file, which are 0 to 4095 (octal 7777)`);
}

function ownerOf(file: IgnitionFile, where: string, { accounts }: EntryContext): Owner {
  const user = lookUp(file.user, (name) => accounts.user(name)?.uid, `${where}.user`);
  const group = lookUp(file.group, (name) => accounts.group(name), `${where}.group`);
  return { uid: user, gid: group };
}

/** The id wins over the name; an id need not exist on the host, a name must. */
function lookUp(owner: IgnitionFile['user'], find: (name: string) => number | undefined, where: string): number {
  if (typeof owner?.id === 'number') return owner.id;
  if (!owner?.name) return 0;
  const id = find(owner.name);
  if (id === undefined) {
    throw new NotPossibleHere(`${where}.name: ${owner.name} does not exist on this host: create it, or use an id`);
  }
  return id;
}
