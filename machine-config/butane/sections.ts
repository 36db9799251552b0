import { isList, isRecord, type FieldPath } from '../ignition/findings.js';
import { embedContents } from './contents.js';
import type { LocalFiles } from './local-files.js';
import type { Origins } from './origins.js';
import type { ButaneFindings } from './places.js';
import { packsContents } from './rules.js';
import { toIgnitionKey } from './schema.js';
import type { ButaneSpec } from './specs.js';

export interface Translating {
  readonly spec: ButaneSpec;
  readonly findings: ButaneFindings;
  readonly origins: Origins;
  readonly files: LocalFiles;
}

/** Sugar that is translated on its own, and is nothing of Ignition's. */
const TRANSLATED_ELSEWHERE = new Set(['trees', 'with_mount_unit']);

/**
 * A section that Ignition has too, in Ignition's words: keys in camel case, `inline` and `local` as data URLs,
 * `contents_local` and `ssh_authorized_keys_local` read. `value` has the shape that the schema of Butane demands.
 */
export function translateSection(value: unknown, path: FieldPath, to: Translating): unknown {
  if (isList(value)) return value.map((item, index) => translateSection(item, [...path, index], to));
  if (!isRecord(value)) return value;
  const fields: [string, unknown][] = [];
  for (const [key, field] of Object.entries(value)) {
    if (TRANSLATED_ELSEWHERE.has(key) || isLocalSugar(key)) continue;
    fields.push([toIgnitionKey(key), translateSection(field, [...path, key], to)]);
  }
  return {
    ...Object.fromEntries(fields),
    ...embedded(value, path, to),
    ...unitText(value, path, to),
    ...userKeys(value, path, to),
  };
}

function isLocalSugar(key: string): boolean {
  return ['inline', 'local', 'contents_local', 'ssh_authorized_keys_local'].includes(key);
}

type Fields = Readonly<Record<string, unknown>>;

function placeInConfig(path: FieldPath): FieldPath {
  return path.map((step) => (typeof step === 'number' ? step : toIgnitionKey(step)));
}

function embedded(value: Fields, path: FieldPath, to: Translating): Fields {
  const given = ['source', 'inline', 'local'].filter((key) => typeof value[key] === 'string');
  const [way] = given;
  if (way === undefined || (way === 'source' && given.length === 1)) return {};
  if (given.length > 1) {
    to.findings.refuse([...path, given[1] ?? way], `stands beside ${way}; write only one of source, inline and local`);
    return {};
  }
  const at = [...path, way];
  const bytes = way === 'inline' ? new TextEncoder().encode(String(value.inline)) : readLocal(value.local, at, to);
  if (bytes === undefined) return {};
  to.origins.fromOne([...placeInConfig(path), 'source'], at);
  const isPacked = typeof value.compression === 'string' && value.compression !== '';
  return { ...embedContents(bytes, packsContents(to.spec) && !isPacked) };
}

function unitText(value: Fields, path: FieldPath, to: Translating): Fields {
  if (value.contents_local === undefined) return {};
  const at = [...path, 'contents_local'];
  if (value.contents !== undefined) {
    to.findings.refuse(at, 'stands beside contents; write only one of the two');
    return {};
  }
  const text = readLocalText(value.contents_local, at, to);
  if (text === undefined) return {};
  to.origins.fromOne([...placeInConfig(path), 'contents'], at);
  return { contents: text };
}

/** Keys that stand in the file come first; of a local file each line that is not blank or a comment is one. */
function userKeys(value: Fields, path: FieldPath, to: Translating): Fields {
  if (!isList(value.ssh_authorized_keys_local)) return {};
  const keys = isList(value.ssh_authorized_keys) ? [...value.ssh_authorized_keys] : [];
  value.ssh_authorized_keys_local.forEach((file, index) => {
    const at = [...path, 'ssh_authorized_keys_local', index];
    for (const line of (readLocalText(file, at, to) ?? '').split(/\r?\n/)) {
      if (line.trim() === '' || line.trimStart().startsWith('#')) continue;
      to.origins.fromOne([...placeInConfig(path), 'sshAuthorizedKeys', keys.length], at);
      keys.push(line);
    }
  });
  return { sshAuthorizedKeys: keys };
}

function readLocal(file: unknown, at: FieldPath, to: Translating): Uint8Array | undefined {
  const read = to.files.readFile(String(file));
  if (read.ok) return read.bytes;
  to.findings.refuse(at, read.error);
  return undefined;
}

function readLocalText(file: unknown, at: FieldPath, to: Translating): string | undefined {
  const bytes = readLocal(file, at, to);
  if (bytes === undefined) return undefined;
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    to.findings.refuse(at, 'is not UTF-8 text; save it as UTF-8');
    return undefined;
  }
}
