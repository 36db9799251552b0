import type {
  IgnitionConfig,
  IgnitionDirectory,
  IgnitionDisk,
  IgnitionFile,
  IgnitionFilesystem,
  IgnitionGroup,
  IgnitionLink,
  IgnitionResource,
  IgnitionUser,
} from '../ignition/config.js';
import type { Written } from './to-version.js';

/** Spec 2 has defaults of its own, so the ones of spec 3 are written out. */
const FILE_MODE = 0o644;
const DIRECTORY_MODE = 0o755;

type IgnitionPartition = NonNullable<IgnitionDisk['partitions']>[number];
type Fields = Readonly<Record<string, unknown>>;

/** Translates to spec 2.2. What it does not know, or knows in another sense, is refused with its place. */
export function toSpec2(config: IgnitionConfig): Written {
  const [reason] = untranslatable(config);
  if (reason !== undefined) return { outcome: 'refused', reason: `${reason}, which Ignition 2.2.0 does not know` };
  const { ignition, passwd, storage = {}, systemd } = config;
  const { files, directories, links, disks, raid, filesystems } = storage;
  const document = {
    ignition: withoutUndefined({
      version: '2.2.0',
      timeouts: ignition.timeouts,
      security: ignition.security && {
        tls: {
          certificateAuthorities: ignition.security.tls?.certificateAuthorities?.map(({ source, verification }) =>
            withoutUndefined({ source, verification }),
          ),
        },
      },
    }),
    passwd: passwd && withoutUndefined({ users: passwd.users?.map(existing), groups: passwd.groups?.map(existing) }),
    storage: orAbsent(
      withoutUndefined({
        disks,
        raid,
        filesystems: filesystems?.map(filesystemOf),
        files: files?.flatMap(filesOf),
        directories: directories?.map(directoryOf),
        links: links?.map(linkOf),
      }),
    ),
    systemd,
  };
  return { outcome: 'written', document: withoutUndefined(document) };
}

function untranslatable(config: IgnitionConfig): string[] {
  const { ignition, kernelArguments, passwd, storage = {} } = config;
  const sections = {
    'spec.config.kernelArguments': kernelArguments,
    'spec.config.ignition.proxy': ignition.proxy,
    'spec.config.ignition.config': ignition.config,
    'spec.config.storage.luks': storage.luks,
  };
  const accounts = [...(passwd?.users ?? []), ...(passwd?.groups ?? [])];
  const specialModes = (storage.directories ?? []).filter(({ mode = 0 }) => mode > 0o777);
  return [
    ...Object.entries(sections).flatMap(([place, section]) => (section === undefined ? [] : [`${place} is set`])),
    ...untranslatableDisks(storage),
    ...accounts.flatMap(({ name, shouldExist }) => (shouldExist === false ? [`${name} should not exist`] : [])),
    ...specialModes.map(({ path }) => `the folder ${path} has a mode above 0777`),
    ...(storage.files ?? []).flatMap(untranslatableContents),
  ];
}

function untranslatableDisks({ disks = [], filesystems = [] }: NonNullable<IgnitionConfig['storage']>): string[] {
  const isNewer = ({ sizeMiB, startMiB, wipePartitionEntry, shouldExist, resize }: IgnitionPartition) =>
    [sizeMiB, startMiB, wipePartitionEntry, shouldExist, resize].some((field) => field !== undefined);
  return [
    ...filesystems.flatMap(({ device, path, mountOptions }) =>
      path === undefined && mountOptions === undefined ? [] : [`the filesystem ${device} has a path or mountOptions`],
    ),
    ...disks.flatMap(({ device, partitions = [] }) =>
      partitions.some(isNewer) ? [`the disk ${device} has partitions in mebibytes, or wiped or resized ones`] : [],
    ),
  ];
}

function untranslatableContents({ path, contents, append = [] }: IgnitionFile): string[] {
  const resources = [contents ?? {}, ...append];
  const reasons: string[] = [];
  if (resources.some(({ httpHeaders }) => httpHeaders !== undefined)) reasons.push(`${path} is fetched with headers`);
  const hashes = resources.flatMap(({ verification }) => verification?.hash ?? []);
  if (!hashes.every((hash) => hash.startsWith('sha512-'))) reasons.push(`${path} has another hash than a sha512`);
  return reasons;
}

/** One entry for the contents and one for each piece that is appended; a file without any is an empty one if absent. */
function filesOf({ path, user, group, mode = FILE_MODE, overwrite = false, contents, append }: IgnitionFile): Fields[] {
  const node = withoutUndefined({ filesystem: 'root', path, user, group, mode });
  const whole =
    contents?.source === undefined && append !== undefined ? [] : [{ ...node, overwrite, ...bodyOf(contents) }];
  return [...whole, ...(append ?? []).map((piece) => ({ ...node, append: true, ...bodyOf(piece) }))];
}

function bodyOf(resource: IgnitionResource | undefined): Fields {
  return { contents: withoutUndefined({ source: '', ...resource }) };
}

function directoryOf({ mode = DIRECTORY_MODE, overwrite = false, ...rest }: IgnitionDirectory): Fields {
  return { filesystem: 'root', ...rest, mode, overwrite };
}

function linkOf({ overwrite = false, ...rest }: IgnitionLink): Fields {
  return { filesystem: 'root', ...rest, overwrite };
}

function filesystemOf({ device, format, wipeFilesystem, label, uuid, options }: IgnitionFilesystem): Fields {
  return { mount: withoutUndefined({ device, format, wipeFilesystem, label, uuid, options }) };
}

/** In spec 2 all that is listed shall exist. */
function existing(account: IgnitionUser | IgnitionGroup): Fields {
  return Object.fromEntries(Object.entries(account).filter(([key]) => key !== 'shouldExist'));
}

function withoutUndefined(fields: Fields): Fields {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

function orAbsent(fields: Fields): Fields | undefined {
  return Object.keys(fields).length === 0 ? undefined : fields;
}
