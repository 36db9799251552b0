import type { IgnitionConfig, IgnitionUser } from '../ignition/config.js';
import type { ConfigContent } from './content.js';
import { sameByKey, sameFile, sameJson, sameSet, sameUnit } from './same-meaning.js';

/** Keys by what happened to them, each list sorted. */
export interface KeyedChange {
  readonly added: readonly string[];
  readonly changed: readonly string[];
  readonly removed: readonly string[];
}

/** What differs between two rendered configs, in names and counts; never contents, keys or hashes. */
export interface ConfigDiff {
  /** By path. */
  readonly files: KeyedChange;
  /** By name; a change of a drop-in is a change of its unit. */
  readonly units: KeyedChange;
  /** SSH keys that come and go, over all users. */
  readonly sshKeys: { readonly added: number; readonly removed: number };
  readonly password: boolean;
  /** Anything about users and groups, SSH keys and passwords included. */
  readonly passwd: boolean;
  /** `changed` also when only the order differs: the last of two settings wins. */
  readonly kernelArguments: { readonly changed: boolean; readonly added: number; readonly removed: number };
  /** The OS image, or the image that its extensions come from. */
  readonly osImage: boolean;
  readonly kernelType: boolean;
  readonly extensions: boolean;
  readonly fips: boolean;
}

function byKey<T>(list: readonly T[] | undefined, key: (entry: T) => string): Map<string, T> {
  return new Map((list ?? []).map((entry) => [key(entry), entry]));
}

function diffKeyed<T>(old: Map<string, T>, next: Map<string, T>, same: (a: T, b: T) => boolean): KeyedChange {
  const changed = [...next].filter(([key, entry]) => {
    const before = old.get(key);
    return before !== undefined && !same(before, entry);
  });
  return {
    added: [...next.keys()].filter((key) => !old.has(key)).sort(),
    changed: changed.map(([key]) => key).sort(),
    removed: [...old.keys()].filter((key) => !next.has(key)).sort(),
  };
}

/** Entries of `list` that `other` lacks, each as often as it is missing. */
function countMissing(list: readonly string[], other: readonly string[]): number {
  const left = [...other];
  return list.filter((entry) => {
    const found = left.indexOf(entry);
    if (found >= 0) left.splice(found, 1);
    return found < 0;
  }).length;
}

const usersOf = (config: IgnitionConfig | undefined): readonly IgnitionUser[] => config?.passwd?.users ?? [];

function keysOf(config: IgnitionConfig | undefined): string[] {
  const keys = usersOf(config).flatMap((user) => (user.sshAuthorizedKeys ?? []).map((key) => `${user.name} ${key}`));
  return [...new Set(keys)];
}

function passwordsOf(config: IgnitionConfig | undefined): Record<string, string> {
  const withPassword = usersOf(config).filter((user) => user.passwordHash !== undefined);
  return Object.fromEntries(withPassword.map((user) => [user.name, user.passwordHash ?? '']));
}

function samePasswd(old: IgnitionConfig | undefined, next: IgnitionConfig | undefined): boolean {
  const users = (config: IgnitionConfig | undefined) =>
    usersOf(config).map((user) => ({ ...user, sshAuthorizedKeys: [...new Set(user.sshAuthorizedKeys ?? [])].sort() }));
  return (
    sameByKey(users(old), users(next), (user) => user.name) &&
    sameByKey(old?.passwd?.groups, next?.passwd?.groups, (group) => group.name)
  );
}

/**
 * Compares two rendered configs by what they mean on a node: decoded contents, not their encoding, and no list by its
 * order where order means nothing. Sections that only take effect at first boot are `checkReconcilable`'s matter.
 * Throws ContentError where a file's source cannot be decoded, which no rendered config has.
 */
export function diffConfigs(old: ConfigContent, next: ConfigContent): ConfigDiff {
  const [a, b] = [old.config, next.config];
  const [oldKeys, nextKeys] = [keysOf(a), keysOf(b)];
  return {
    files: diffKeyed(
      byKey(a?.storage?.files, (file) => file.path),
      byKey(b?.storage?.files, (file) => file.path),
      sameFile,
    ),
    units: diffKeyed(
      byKey(a?.systemd?.units, (unit) => unit.name),
      byKey(b?.systemd?.units, (unit) => unit.name),
      sameUnit,
    ),
    sshKeys: { added: countMissing(nextKeys, oldKeys), removed: countMissing(oldKeys, nextKeys) },
    password: !sameJson(passwordsOf(a), passwordsOf(b)),
    passwd: !samePasswd(a, b),
    kernelArguments: {
      changed: !sameJson(old.kernelArguments, next.kernelArguments),
      added: countMissing(next.kernelArguments, old.kernelArguments),
      removed: countMissing(old.kernelArguments, next.kernelArguments),
    },
    osImage:
      old.osImageURL !== next.osImageURL || old.baseOSExtensionsContainerImage !== next.baseOSExtensionsContainerImage,
    kernelType: old.kernelType !== next.kernelType,
    extensions: !sameSet(old.extensions, next.extensions),
    fips: old.fips !== next.fips,
  };
}

/** How many files, units, keys and kernel arguments differ. Kernel arguments in another order count as one. */
export function countChanges(diff: ConfigDiff): {
  readonly files: number;
  readonly units: number;
  readonly sshKeys: number;
  readonly kernelArguments: number;
} {
  const keyed = ({ added, changed, removed }: KeyedChange) => added.length + changed.length + removed.length;
  const { kernelArguments, sshKeys } = diff;
  const counted = kernelArguments.added + kernelArguments.removed;
  return {
    files: keyed(diff.files),
    units: keyed(diff.units),
    sshKeys: sshKeys.added + sshKeys.removed,
    kernelArguments: kernelArguments.changed ? Math.max(1, counted) : 0,
  };
}

/** Whether a node has nothing to do between the two. */
export function isSameOnNode(diff: ConfigDiff): boolean {
  const counts = countChanges(diff);
  const counted = counts.files + counts.units + counts.sshKeys + counts.kernelArguments;
  return counted === 0 && !(diff.passwd || diff.osImage || diff.kernelType || diff.extensions || diff.fips);
}
