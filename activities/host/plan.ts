import { join } from 'node:path';
import type { MachineConfig } from '../../machine-config/api/machine-config.js';
import { EMPTY_CONTENT } from '../../machine-config/change/content.js';
import { disruption, summariseCost, type DisruptionCost } from '../../machine-config/change/disruption.js';
import { usedOsFields } from '../../machine-config/change/os-fields.js';
import { DEFAULT_POLICIES } from '../../machine-config/change/policies.js';
import { readSpec } from '../../machine-config/render/spec.js';
import { desiredEntries, type Desired } from './desired.js';
import { NotPossibleHere, parentsOf, type Entry } from './entry.js';
import type { Host, OsState } from './host.js';
import type { ChangeOrigin } from './journal.js';
import { ABSENT, differenceOf, MASK_TARGET, readState, type PathState } from './path-state.js';
import { planEnablement, type EnablementPlan } from './plan-enablement.js';
import { checkPlace, checkRoom } from './room.js';
import type { StateStore } from './state-store.js';
import type { EnablementLink } from './units.js';

/** One path that an update changes. */
export interface PlannedChange {
  readonly path: string;
  readonly origin: ChangeOrigin;
  readonly unit?: string;
  /** The field of the config, for messages. */
  readonly where: string;
  readonly before: PathState;
  readonly after: PathState;
}

/** All that an update will do, known before anything is written. */
export interface UpdatePlan {
  readonly from: string;
  readonly target: MachineConfig;
  /** In the order in which they are made; undone in reverse. */
  readonly changes: readonly PlannedChange[];
  readonly enablement: EnablementPlan;
  /** Present if the operating system itself shall be another one after the next boot. */
  readonly os?: { readonly before: OsState; readonly after: OsState };
  /** The originals to remember once the update is applied. */
  readonly originals: {
    readonly paths: ReadonlyMap<string, PathState>;
    readonly units: Readonly<Record<string, readonly EnablementLink[]>>;
  };
  readonly counts: {
    readonly files: number;
    readonly units: number;
    readonly sshKeys: number;
    readonly kernelArguments: number;
  };
  readonly warnings: readonly string[];
  readonly needsReboot: boolean;
}

export interface PlanInput {
  readonly host: Host;
  readonly store: StateStore;
  /** What the disk is at; undefined: nothing of Drydock. */
  readonly current: MachineConfig | undefined;
  readonly target: MachineConfig;
  readonly sshUser: string;
}

/** Plans an update, and writes nothing. Throws NotPossibleHere where it cannot be carried out on this host. */
export async function planUpdate(input: PlanInput): Promise<UpdatePlan> {
  const { host, store, current, target, sshUser } = input;
  checkOperatingSystem(target, host);
  const wanted = await desiredEntries(target, host, sshUser);
  const had = current === undefined ? undefined : await desiredEntries(current, host, sshUser);
  const { originals, before } = await knownOriginals(store, host, wanted, had);

  const after = new Map<string, PathState>();
  for (const entry of wanted.entries.values()) {
    if (entry.state === 'unmasked') after.set(entry.path, unmask(entry, { had, originals, before }));
    else after.set(entry.path, wantedState(entry, entry.state, before));
  }
  const stale = [...originals.keys()].filter((path) => !isWanted(path, wanted));
  for (const path of stale) after.set(path, originals.get(path) ?? ABSENT);
  for (const path of missingParents(after)) {
    if ((await readState(join(host.root, path))).kind === 'absent') {
      before.set(path, ABSENT);
      originals.set(path, ABSENT);
      after.set(path, { kind: 'directory', mode: 0o755, ...host.ownerOnDisk({ uid: 0, gid: 0 }) });
    }
  }

  const changes = inOrder(changesOf(wanted, after, before, had));
  for (const change of changes) await checkPlace(host.root, change);
  await checkRoom(host.root, changes);
  for (const path of stale) originals.delete(path);

  const enablement = await planEnablement({ host, store, wanted, changes, after });
  return {
    from: current?.metadata.name ?? '',
    target,
    changes: [...changes, ...enablement.changes],
    enablement,
    ...(await operatingSystemChange(host, wanted)),
    originals: { paths: originals, units: enablement.originals },
    ...(await summing(input, wanted, changes, enablement)),
    warnings: enablement.warnings,
  };
}

/** What this host's operating system cannot do is refused, not left out. */
function checkOperatingSystem(target: MachineConfig, { os }: Host): void {
  for (const field of usedOsFields(readSpec(target.spec))) {
    const why = os.refusal(field);
    if (why !== undefined) {
      throw new NotPossibleHere(`spec.${field}: ${why}; remove it from the MachineConfigs of this pool`);
    }
  }
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
    if (!originals.has(entry.path) && entry.state !== 'unmasked') originals.set(entry.path, ABSENT);
  }
  for (const path of new Set([...originals.keys(), ...wanted.entries.keys()])) {
    const state = await readState(join(host.root, path));
    before.set(path, state);
    if (!originals.has(path)) originals.set(path, state);
  }
  return { originals, before };
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

function missingParents(after: ReadonlyMap<string, PathState>): Set<string> {
  const parents = new Set<string>();
  for (const [path, state] of after) {
    if (state.kind === 'absent') continue;
    for (const parent of parentsOf(path)) if (!after.has(parent)) parents.add(parent);
  }
  return parents;
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
    const origin = entry?.origin ?? (state.kind === 'directory' || found.kind === 'directory' ? 'directory' : 'file');
    changes.push({
      path,
      origin,
      where: entry?.where ?? path,
      before: found,
      after: state,
      ...(entry?.unit === undefined ? {} : { unit: entry.unit }),
    });
  }
  return changes;
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

async function operatingSystemChange(host: Host, wanted: Desired) {
  const before = await host.os.staged();
  const after = wanted.os;
  return sameOsState(before, after) ? {} : { os: { before, after } };
}

export function sameOsState(one: OsState, other: OsState): boolean {
  return (
    sameList(one.kernelArguments, other.kernelArguments) &&
    sameList(one.extensions.toSorted(), other.extensions.toSorted()) &&
    one.osImageURL === other.osImageURL &&
    one.kernelType === other.kernelType
  );
}

export function sameList(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && one.every((value, index) => value === other[index]);
}

/** Arguments that one side has and the other has not; a changed order alone counts as one. */
function countDifferent({ before, after }: { before: readonly string[]; after: readonly string[] }): number {
  const onlyOneSide = [
    ...before.filter((argument) => !after.includes(argument)),
    ...after.filter((argument) => !before.includes(argument)),
  ];
  return sameList(before, after) ? 0 : Math.max(1, onlyOneSide.length);
}

async function summing(
  { host, current, target }: PlanInput,
  wanted: Desired,
  changes: readonly PlannedChange[],
  enablement: EnablementPlan,
) {
  const { os } = await operatingSystemChange(host, wanted);
  const count = (origin: ChangeOrigin) => changes.filter((change) => change.origin === origin).length;
  const units = new Set([
    ...changes.flatMap((change) => change.unit ?? []),
    ...enablement.enable,
    ...enablement.disable,
    ...enablement.changes.flatMap((change) => change.unit ?? []),
  ]);
  const argumentCount =
    os === undefined ? 0 : countDifferent({ before: os.before.kernelArguments, after: os.after.kernelArguments });
  const changesSomething = changes.length > 0 || units.size > 0 || os !== undefined;
  return {
    counts: { files: count('file'), units: units.size, sshKeys: count('sshKeys'), kernelArguments: argumentCount },
    needsReboot: changesSomething && costOf(current, target) !== 'none',
  };
}

/** By the built-in policies. This release carries out none of their lesser actions: what costs anything costs a reboot. */
function costOf(current: MachineConfig | undefined, target: MachineConfig): DisruptionCost {
  const old = current === undefined ? EMPTY_CONTENT : readSpec(current.spec);
  return summariseCost(disruption(old, readSpec(target.spec), DEFAULT_POLICIES));
}
