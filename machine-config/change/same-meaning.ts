import canonicalize from 'canonicalize';
import type { IgnitionFile, IgnitionUnit } from '../ignition/config.js';
import { fileContents } from '../ignition/contents.js';

/** Mode of a file that does not say one. */
export const DEFAULT_FILE_MODE = 0o644;

/** Equal as JSON, whatever the order of keys; absent equals absent only. */
export function sameJson(a: unknown, b: unknown): boolean {
  return canonicalize(a ?? null) === canonicalize(b ?? null);
}

/** The same entries by key, whatever their order. An absent list is an empty one. */
export function sameByKey<T>(
  a: readonly T[] | undefined,
  b: readonly T[] | undefined,
  key: (entry: T) => string,
): boolean {
  const sorted = (list: readonly T[] = []) => [...list].sort((x, y) => (key(x) < key(y) ? -1 : 1));
  return sameJson(sorted(a), sorted(b));
}

/** The same strings, whatever their order and however often. */
export function sameSet(a: readonly string[], b: readonly string[]): boolean {
  return sameJson([...new Set(a)].sort(), [...new Set(b)].sort());
}

function ownerOf(owner: { readonly id?: number; readonly name?: string } | undefined): number | string {
  if (owner?.id !== undefined) return owner.id;
  return owner?.name === undefined || owner.name === 'root' ? 0 : owner.name;
}

function sameContents(a: IgnitionFile, b: IgnitionFile): boolean {
  const [left, right] = [a.contents, b.contents];
  if (left?.source === right?.source && left?.compression === right?.compression) return true;
  return Buffer.compare(fileContents(a), fileContents(b)) === 0;
}

/**
 * Both end as the same file on disk: the same bytes once decoded, mode and owner. How it got there, `overwrite` or
 * `verification`, makes no difference. Throws ContentError where a source cannot be decoded.
 */
export function sameFile(a: IgnitionFile, b: IgnitionFile): boolean {
  return (
    (a.mode ?? DEFAULT_FILE_MODE) === (b.mode ?? DEFAULT_FILE_MODE) &&
    ownerOf(a.user) === ownerOf(b.user) &&
    ownerOf(a.group) === ownerOf(b.group) &&
    sameJson(a.append, b.append) &&
    sameContents(a, b)
  );
}

/** Names and contents of the drop-ins. An empty one is written by nobody, and their order means nothing to systemd. */
function dropinsOf(unit: IgnitionUnit): Record<string, string> {
  const written = (unit.dropins ?? []).filter((dropin) => (dropin.contents ?? '') !== '');
  return Object.fromEntries(written.map((dropin) => [dropin.name, dropin.contents ?? '']));
}

/** The same unit in effect. `enabled` has three values: absent leaves the state alone and differs from false. */
export function sameUnit(a: IgnitionUnit, b: IgnitionUnit): boolean {
  return (
    (a.contents ?? '') === (b.contents ?? '') &&
    a.enabled === b.enabled &&
    (a.mask ?? false) === (b.mask ?? false) &&
    sameJson(dropinsOf(a), dropinsOf(b))
  );
}
