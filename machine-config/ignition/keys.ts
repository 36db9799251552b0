import { z } from 'zod';
import { hasLoneSurrogate, isList, isRecord, quote, type FieldPath, type Findings } from './findings.js';

/** Where a key belongs that people write in the wrong place or in the words of another format. */
const ADVICE: Readonly<Record<string, string>> = {
  osImageURL: 'it belongs in spec, beside config',
  baseOSExtensionsContainerImage: 'it belongs in spec, beside config',
  kernelType: 'it belongs in spec, beside config',
  extensions: 'it belongs in spec, beside config',
  fips: 'it belongs in spec, beside config',
  config: 'ignition, storage, systemd and passwd stand directly in spec.config',
  networkd: 'a section of spec 2; write the files below /etc/systemd/network under storage.files',
  filesystem: 'a key of spec 2; paths are those of the running system',
  create: 'a key of spec 2; write its fields directly into the user',
  inline: 'a key of Butane; write source: data:,…',
  local: 'a key of Butane; write source: data:,…',
  trees: 'a key of Butane; list each file under storage.files',
};

export interface KeyCheck {
  readonly findings: Findings;
  /** Minor version that the config declares: newer fields are refused. Absent: no field is too new. */
  readonly minor?: number;
}

/**
 * Compares the keys of a value with those that a schema knows, and returns the value without nulls, empty objects, empty
 * lists and unknown keys. An unknown key is a problem, because what it asks for would silently not happen; it
 * is only a warning where leaving it out changes nothing. Types are not looked at.
 */
export function withKnownKeys(schema: z.core.$ZodType, value: unknown, path: FieldPath, check: KeyCheck): unknown {
  const inner = unwrap(schema);
  if (isList(value)) {
    const element = inner instanceof z.ZodArray ? inner.element : z.unknown();
    return value.map((entry, index) => withKnownKeys(element, entry, [...path, index], check));
  }
  if (isRecord(value) && inner instanceof z.ZodObject) return withKnownFields(inner, value, path, check);
  if (typeof value === 'string' && hasLoneSurrogate(value)) {
    check.findings.refuse(path, 'contains half a Unicode character (a lone surrogate); write the whole character');
  }
  return value;
}

function withKnownFields(
  schema: z.ZodObject,
  value: Readonly<Record<string, unknown>>,
  path: FieldPath,
  check: KeyCheck,
): unknown {
  const shape: Readonly<Record<string, z.core.$ZodType>> = schema.shape;
  const kept: [string, unknown][] = [];
  for (const [key, field] of Object.entries(value)) {
    const known = Object.hasOwn(shape, key) ? shape[key] : undefined;
    if (known === undefined) {
      reportUnknownKey(Object.keys(shape), field, [...path, key], check.findings);
      continue;
    }
    const cleaned = withKnownKeys(known, field, [...path, key], check);
    if (isNothing(cleaned)) continue;
    reportTooNew(known, [...path, key], check);
    kept.push([key, cleaned]);
  }
  return Object.fromEntries(kept);
}

function unwrap(schema: z.core.$ZodType): z.core.$ZodType {
  return schema instanceof z.ZodExactOptional || schema instanceof z.ZodOptional || schema instanceof z.ZodNullable
    ? unwrap(schema.unwrap())
    : schema;
}

/** Absent, null, [] and {} mean the same everywhere in Ignition. An empty string does not. */
function isNothing(value: unknown): boolean {
  if (value === undefined || value === null) return true;
  if (isList(value)) return value.length === 0;
  return isRecord(value) && Object.keys(value).length === 0;
}

function reportTooNew(schema: z.core.$ZodType, path: FieldPath, { minor, findings }: KeyCheck): void {
  const inner = unwrap(schema);
  const since = inner instanceof z.ZodType ? inner.meta()?.since : undefined;
  if (minor === undefined || typeof since !== 'number' || since <= minor) return;
  findings.refuse(
    path,
    `exists from Ignition 3.${since}.0 on, but ignition.version says 3.${minor}.0; write version: 3.${Math.max(since, 4)}.0`,
  );
}

function reportUnknownKey(known: readonly string[], value: unknown, path: FieldPath, findings: Findings): void {
  const key = String(path.at(-1));
  const harmless =
    isNothing(value) ||
    value === '' ||
    (isRecord(value) && Object.values(value).every(isNothing)) ||
    isRootFilesystem(key, value);
  const meant = knownKeyLike(key, known);
  const advice = ADVICE[key];
  if (harmless) {
    findings.warn(
      path,
      `is not a key of this place and does nothing${advice === undefined ? '' : ` (${advice})`}; leave it out`,
    );
  } else if (meant !== undefined) {
    findings.refuse(path, `${quote(key)} is not a key of this place and would be ignored; write ${meant}`);
  } else {
    const hint = advice ?? `known here: ${known.join(', ')}`;
    findings.refuse(path, `${quote(key)} is not a key of this place and would be ignored; ${hint}`);
  }
}

/** Files of spec 2 name the filesystem they are in; `root` is where spec 3 writes them anyway. */
function isRootFilesystem(key: string, value: unknown): boolean {
  return key === 'filesystem' && value === 'root';
}

/** Other words for a key, in lower case, where the given neighbours are known too. */
const ALIASES: Readonly<Record<string, { readonly key: string; readonly place: readonly string[] }>> = {
  user: { key: 'name', place: ['sshAuthorizedKeys'] },
  sshkeys: { key: 'sshAuthorizedKeys', place: ['sshAuthorizedKeys'] },
  authorizedkeys: { key: 'sshAuthorizedKeys', place: ['sshAuthorizedKeys'] },
  kernelargs: { key: 'kernelArguments', place: ['kernelArguments', 'kernelType'] },
  kargs: { key: 'kernelArguments', place: ['kernelArguments', 'kernelType'] },
  osimage: { key: 'osImageURL', place: ['osImageURL'] },
  permissions: { key: 'mode', place: ['mode'] },
};

/** The key that somebody meant: another word for it, other case, words joined with _ or -, a letter or two wrong. */
export function knownKeyLike(key: string, known: readonly string[]): string | undefined {
  const plain = key.toLowerCase().replaceAll(/[_-]/g, '');
  const alias = Object.hasOwn(ALIASES, plain) ? ALIASES[plain] : undefined;
  if (alias?.place.every((neighbour) => known.includes(neighbour))) return alias.key;
  const same = known.find((candidate) => candidate.toLowerCase() === plain);
  if (same !== undefined) return same;
  return known.find((candidate) => candidate.length > 3 && isWithinEdits(plain, candidate.toLowerCase(), 2));
}

/** Whether one text becomes the other with at most `limit` letters added, left out, exchanged or swapped with a neighbour. */
function isWithinEdits(left: string, right: string, limit: number): boolean {
  if (Math.abs(left.length - right.length) > limit) return false;
  let beforePrevious: number[] = [];
  let previous = Array.from({ length: right.length + 1 }, (_, index) => index);
  for (let row = 1; row <= left.length; row += 1) {
    const current = [row];
    for (let column = 1; column <= right.length; column += 1) {
      const same = left[row - 1] === right[column - 1];
      const costs = [
        (previous[column] ?? 0) + 1,
        (current[column - 1] ?? 0) + 1,
        (previous[column - 1] ?? 0) + (same ? 0 : 1),
      ];
      const swapped = left[row - 1] === right[column - 2] && left[row - 2] === right[column - 1];
      if (swapped && row > 1 && column > 1) costs.push((beforePrevious[column - 2] ?? 0) + 1);
      current.push(Math.min(...costs));
    }
    beforePrevious = previous;
    previous = current;
  }
  return (previous.at(-1) ?? limit + 1) <= limit;
}
