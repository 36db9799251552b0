import { join } from 'node:path';
import type { Desired } from './desired.js';
import { NotPossibleHere, parentsOf, type Entry } from './entry.js';
import {
  formerPart,
  isPart,
  keptOf,
  partChange,
  partRemoval,
  unknownOriginal,
  withPart,
  type FilePart,
  type PartChange,
} from './file-part.js';
import type { Host } from './host.js';
import { ABSENT, differenceOf, MASK_TARGET, readState, type PathState } from './path-state.js';
import type { PlannedChange } from './plan.js';
import type { StateStore } from './state-store.js';

/** What an update does to paths. */
export interface PathPlan {
  /** In the order in which they are made. */
  readonly changes: readonly PlannedChange[];
  /** What every managed path will be. */
  readonly after: ReadonlyMap<string, PathState>;
  /** To be remembered once the update is applied. */
  readonly originals: ReadonlyMap<string, PathState>;
}

/** `had`: what the config that the disk is at wants; undefined: there is none. */
export async function planPaths(
  { host, store }: { readonly host: Host; readonly store: StateStore },
  wanted: Desired,
  had: Desired | undefined,
): Promise<PathPlan> {
  const { originals, before } = await knownOriginals(store, host, wanted, had);
  const after = new Map<string, PathState>();
  const parts = new Map<string, PartChange>();
  for (const entry of wanted.entries.values()) {
    if (isPart(entry.state)) {
      after.set(entry.path, stateWithPart(entry, entry.state, before));
      parts.set(entry.path, partChange(entry.state));
    } else if (entry.state === 'unmasked') after.set(entry.path, unmask(entry, { had, originals, before }));
    else after.set(entry.path, wantedState(entry, entry.state, before));
  }
  const stale = [...originals.keys()].filter((path) => !isWanted(path, wanted));
  for (const path of stale) {
    const original = originals.get(path) ?? ABSENT;
    const found = before.get(path) ?? ABSENT;
    const kind = formerPart(path, had?.entries.get(path)?.state, found);
    const removal = kind === undefined ? undefined : partRemoval(kind, original);
    after.set(path, removal === undefined ? original : removal.change(found));
    if (removal !== undefined) parts.set(path, removal);
  }
  for (const path of await foldersToMake(host, after)) {
    before.set(path, ABSENT);
    originals.set(path, ABSENT);
    after.set(path, { kind: 'directory', mode: 0o755, ...host.ownerOnDisk({ uid: 0, gid: 0 }) });
  }
  for (const path of stale) originals.delete(path);
  const changes = changesOf(wanted, after, before, had).map((change) => {
    const part = parts.get(change.path);
    return part === undefined ? change : { ...change, part };
  });
  return { changes: inOrder(changes), after, originals };
}

/**
 * The original of every path that the old or the new config manages. A path that the old config manages and whose
 * original nobody kept (the node was set up by other means) had none.
 */
async function knownOriginals(store: StateStore, host: Host, wanted: Desired, had: Desired | undefined) {
  const originals = new Map<string, PathState>();
  const before = new Map<string, PathState>();
  for (const [path, stored] of Object.entries((await store.originals()).paths)) {
    originals.set(path, await store.load(stored));
  }
  for (const entry of had?.entries.values() ?? []) {
    if (originals.has(entry.path) || entry.state === 'unmasked') continue;
    originals.set(entry.path, isPart(entry.state) ? unknownOriginal(entry.state) : ABSENT);
  }
  for (const path of new Set([...originals.keys(), ...wanted.entries.keys()])) {
    const state = await readState(join(host.root, path));
    before.set(path, state);
    const part = wanted.entries.get(path)?.state ?? 'unmasked';
    if (!originals.has(path)) originals.set(path, isPart(part) ? keptOf(part, state) : state);
  }
  return { originals, before };
}

function stateWithPart({ path, where }: Entry, part: FilePart, before: ReadonlyMap<string, PathState>): PathState {
  try {
    return withPart(part, before.get(path) ?? ABSENT);
  } catch (error) {
    if (error instanceof NotPossibleHere) throw new NotPossibleHere(`${where}: ${path}: ${error.message}`);
    throw error;
  }
}

function wantedState(entry: Entry, state: PathState, before: ReadonlyMap<string, PathState>): PathState {
  const found = before.get(entry.path) ?? ABSENT;
  const replaceable = found.kind === 'absent' || (found.kind === 'directory') === (state.kind === 'directory');
  if (found.kind === 'special' || !replaceable) {
    throw new NotPossibleHere(`${entry.where}: ${entry.path} is a ${found.kind} on this host: move it away first`);
  }
  return state;
}

/**
 * What is there without a mask: the original where a config had put something else in its place, else what is found.
 * Only a mask that we take away is remembered; anything else is not ours from here on.
 */
function unmask(
  entry: Entry,
  known: { had: Desired | undefined; originals: Map<string, PathState>; before: ReadonlyMap<string, PathState> },
): PathState {
  const old = known.had?.entries.get(entry.path);
  const original = known.originals.get(entry.path) ?? ABSENT;
  const base = old === undefined || old.state === 'unmasked' ? (known.before.get(entry.path) ?? ABSENT) : original;
  const isMask = (state: PathState) => state.kind === 'link' && state.target === MASK_TARGET;
  if (!isMask(original)) known.originals.delete(entry.path);
  return isMask(base) ? ABSENT : base;
}

function isWanted(path: string, wanted: Desired): boolean {
  if (wanted.entries.has(path)) return true;
  return [...wanted.entries.keys()].some((other) => other.startsWith(`${path}/`));
}

/** Folders above what will be there that are not there yet. */
async function foldersToMake(host: Host, after: ReadonlyMap<string, PathState>): Promise<string[]> {
  const parents = new Set<string>();
  for (const [path, state] of after) {
    if (state.kind === 'absent') continue;
    for (const parent of parentsOf(path)) if (!after.has(parent)) parents.add(parent);
  }
  const missing: string[] = [];
  for (const path of parents) {
    if ((await readState(join(host.root, path))).kind === 'absent') missing.push(path);
  }
  return missing;
}

function changesOf(
  wanted: Desired,
  after: ReadonlyMap<string, PathState>,
  before: ReadonlyMap<string, PathState>,
  had: Desired | undefined,
): PlannedChange[] {
  const changes: PlannedChange[] = [];
  for (const [path, state] of after) {
    const entry = wanted.entries.get(path) ?? had?.entries.get(path);
    const found = before.get(path) ?? ABSENT;
    if (differenceOf(state, found) === undefined) continue;
    changes.push(changeOf(path, entry, { before: found, after: state }));
  }
  return changes;
}

function changeOf(
  path: string,
  entry: Entry | undefined,
  { before, after }: Pick<PlannedChange, 'before' | 'after'>,
): PlannedChange {
  if (entry === undefined) {
    const origin = after.kind === 'directory' || before.kind === 'directory' ? 'directory' : 'file';
    return { path, origin, where: path, before, after };
  }
  const { origin, where, declared, unit } = entry;
  return {
    path,
    origin,
    where,
    before,
    after,
    ...(declared === undefined ? {} : { declared }),
    ...(unit === undefined ? {} : { unit }),
  };
}

/** Folders first, outermost first; then what is written; then what is removed, folders last and innermost first. */
function inOrder(changes: readonly PlannedChange[]): PlannedChange[] {
  const depth = (change: PlannedChange) => change.path.split('/').length;
  const rank = ({ before, after }: PlannedChange) => {
    if (after.kind === 'directory') return 0;
    if (after.kind !== 'absent') return 1;
    return before.kind === 'directory' ? 3 : 2;
  };
  return changes.toSorted((one, other) => {
    if (rank(one) !== rank(other)) return rank(one) - rank(other);
    if (depth(one) !== depth(other)) return (depth(one) - depth(other)) * (rank(one) === 3 ? -1 : 1);
    return one.path < other.path ? -1 : 1;
  });
}
