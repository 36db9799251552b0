import { createHash } from 'node:crypto';
import canonicalize from 'canonicalize';
import type { MachineConfig, MachineConfigSpec } from '../api/machine-config.js';
import type { IgnitionConfig, IgnitionFile, IgnitionUnit } from '../ignition/config.js';
import { fileContents } from '../ignition/contents.js';
import { isRecord } from '../ignition/findings.js';
import { readSpec, type SpecContent } from './spec.js';
import { compareText } from './select.js';

const DEFAULT_FILE_MODE = 0o644;
/** 128 bits, as the field's names have; enough that no two configs of a cluster meet, also on purpose it takes 2^64 tries. */
const HASH_CHARACTERS = 32;

/** The spec has no meaning, so it has no name: it was not rendered here, or was changed. */
export class UnreadableSpecError extends Error {
  override readonly name = 'UnreadableSpecError';
}

/**
 * `rendered-<pool>-<hash>`, the hash of what the spec means: how a file is encoded, the order of files and
 * units, null or absent, defaults written out, the Ignition version make no difference; the order of kernel arguments,
 * extensions and SSH keys does. The pool is not part of the hash. Throws UnreadableSpecError.
 */
export function renderedName(pool: string, spec: MachineConfigSpec): string {
  const content = readSpec(spec);
  const problem = content.problems[0];
  if (problem !== undefined) throw new UnreadableSpecError(`${problem.path}: ${problem.message}`);
  return nameOfContent(pool, content);
}

/** As renderedName, for a spec that is parsed already. */
export function nameOfContent(pool: string, content: SpecContent): string {
  return `rendered-${pool}-${hashOf(meaningOf(content)).slice(0, HASH_CHARACTERS)}`;
}

/** The pool that a rendered config was made for; undefined: it is not the name of one. */
export function poolInName(name: string): string | undefined {
  return /^rendered-(.+)-[\da-f]{32}$/.exec(name)?.[1];
}

/**
 * Whether a rendered config has the content that its name promises. A node trusts no other: a config that somebody changed in the
 * API keeps its name and loses its hash. Also false for whatever cannot be read, or asks for more than a name covers.
 */
export function verifyRenderedName(config: Pick<MachineConfig, 'metadata' | 'spec'>): boolean {
  const { name } = config.metadata;
  const pool = poolInName(name);
  if (pool === undefined) return false;
  const content = readSpec(config.spec);
  return content.problems.length === 0 && content.unknownKeys.length === 0 && nameOfContent(pool, content) === name;
}

function hashOf(value: unknown): string {
  return createHash('sha256')
    .update(canonicalize(value) ?? '')
    .digest('hex');
}

function meaningOf(content: SpecContent): unknown {
  const { osImageURL, baseOSExtensionsContainerImage, kernelArguments, extensions, fips, kernelType } = content;
  return {
    osImageURL,
    baseOSExtensionsContainerImage,
    kernelArguments,
    extensions,
    fips,
    kernelType,
    config: content.config === undefined ? {} : configMeaning(content.config),
  };
}

function configMeaning({ ignition, storage, systemd, passwd, ...rest }: IgnitionConfig): unknown {
  const { config, proxy, security, timeouts } = ignition;
  const { files, links, directories, disks, raid, luks, filesystems } = storage ?? {};
  return withoutEmpty({
    ...rest,
    ignition: withoutEmpty({ config, proxy, security, timeouts }),
    files: sorted(files?.map(fileMeaning)),
    links: sorted(links?.map((link) => withoutFalse(link, ['overwrite', 'hard']))),
    directories: sorted(directories?.map((directory) => withoutFalse(directory, ['overwrite']))),
    disks: sorted(disks),
    raid: sorted(raid),
    luks: sorted(luks),
    filesystems: sorted(filesystems),
    units: sorted(systemd?.units?.map(unitMeaning)),
    users: sorted(passwd?.users),
    groups: sorted(passwd?.groups),
  });
}

function fileMeaning({ contents, overwrite = true, mode = DEFAULT_FILE_MODE, ...rest }: IgnitionFile): unknown {
  const bytes = fileContents({ path: rest.path, ...(contents === undefined ? {} : { contents }) });
  const sha256 = createHash('sha256').update(bytes).digest('hex');
  return { ...rest, overwrite, mode, contents: { bytes: bytes.length, sha256 } };
}

function unitMeaning(unit: IgnitionUnit): unknown {
  const dropins = sorted(unit.dropins?.map((dropin) => withoutEmptyText(dropin)));
  return withoutEmpty({ ...withoutEmptyText(withoutFalse(unit, ['mask'])), dropins });
}

/** No text and no field are the same for the body of a unit: no file is written. */
function withoutEmptyText(entry: { readonly contents?: string }): object {
  const { contents, ...rest } = entry;
  return contents === undefined || contents === '' ? rest : { ...rest, contents };
}

function withoutFalse<T extends object>(entry: T, keys: readonly (keyof T)[]): T {
  const left = Object.entries(entry).filter(([key, value]) => !(keys.includes(key as keyof T) && value === false));
  return Object.fromEntries(left) as T;
}

function withoutEmpty(fields: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(fields).filter(
      ([, value]) => value !== undefined && !(isRecord(value) && Object.keys(value).length === 0),
    ),
  );
}

/** Entries that are told apart by path, name or device have no order. */
function sorted(entries: readonly unknown[] | undefined): unknown[] | undefined {
  if (entries === undefined || entries.length === 0) return undefined;
  const keyed = entries.map((entry) => ({ entry, key: canonicalize(entry) ?? '' }));
  return keyed.sort((left, right) => compareText(left.key, right.key)).map(({ entry }) => entry);
}
