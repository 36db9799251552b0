import { join } from 'node:path';
import type { Desired } from './desired.js';
import { NotPossibleHere } from './entry.js';
import type { Host } from './host.js';
import { ABSENT, MASK_TARGET, readState, type PathState } from './path-state.js';
import type { PlannedChange } from './plan.js';
import type { StateStore } from './state-store.js';
import { enablementLinks, findUnitFile, UNIT_FOLDER, type EnablementLink } from './units.js';

/** What an update does about which units start by themselves. */
export interface EnablementPlan {
  /** Before the files change, so that the old [Install] section says which links go. */
  readonly disable: readonly string[];
  /** After the files have changed. */
  readonly enable: readonly string[];
  /** Units that no config speaks of any more get back the links they had. */
  readonly changes: readonly PlannedChange[];
  readonly linksBefore: Readonly<Record<string, readonly EnablementLink[]>>;
  readonly originals: Readonly<Record<string, readonly EnablementLink[]>>;
  readonly warnings: readonly string[];
}

interface Input {
  readonly host: Host;
  readonly store: StateStore;
  readonly wanted: Desired;
  readonly changes: readonly PlannedChange[];
  /** What managed paths will be. */
  readonly after: ReadonlyMap<string, PathState>;
}

/** Acts where the unit file changes or where the host's state is not the wish, and nowhere else. */
export async function planEnablement(input: Input): Promise<EnablementPlan> {
  const { host, store, wanted, changes } = input;
  const disable = new Set<string>();
  const enable = new Set<string>();
  const warnings: string[] = [];
  const known = (await store.originals()).units;
  const originals: Record<string, readonly EnablementLink[]> = {};
  const linksBefore: Record<string, readonly EnablementLink[]> = {};

  for (const [unit, wish] of wanted.enablement) {
    if (!(await willExist(unit, input))) {
      warnings.push(`${unit} shall be ${wish ? 'enabled' : 'disabled'}, but this host has no such unit`);
      continue;
    }
    originals[unit] = known[unit] ?? (await enablementLinks(host.root, unit));
    await planWish(unit, wish, input, { disable, enable });
  }
  for (const { unit, path } of changes) {
    if (unit === undefined || wanted.enablement.has(unit) || path !== `${UNIT_FOLDER}/${unit}`) continue;
    await planUnwished(unit, input, { disable, enable, stale: known[unit] !== undefined });
  }
  for (const unit of new Set([...disable, ...enable])) linksBefore[unit] = await enablementLinks(host.root, unit);

  const restored = await linksToRestore(host, known, originals, wanted, disable);
  return { disable: [...disable], enable: [...enable], changes: restored, linksBefore, originals, warnings };
}

async function planWish(
  unit: string,
  wish: boolean,
  input: Input,
  { disable, enable }: { disable: Set<string>; enable: Set<string> },
): Promise<void> {
  const isEnabled = (await input.host.systemctl.enablement(unit)).startsWith('enabled');
  if (!wish) {
    if (isEnabled) disable.add(unit);
    return;
  }
  await refuseMasked(unit, input);
  const changes = bodyChanges(unit, input.changes);
  if (!isEnabled || changes) enable.add(unit);
  if (isEnabled && changes) disable.add(unit);
}

const bodyChanges = (unit: string, changes: readonly PlannedChange[]): boolean =>
  changes.some(({ path }) => path === `${UNIT_FOLDER}/${unit}`);

/**
 * A unit whose file changes and of whose enablement nobody speaks: it stays enabled if it was, by its new [Install]
 * section; if its file goes for good, so do its links.
 */
async function planUnwished(
  unit: string,
  input: Input,
  { disable, enable, stale }: { disable: Set<string>; enable: Set<string>; stale: boolean },
): Promise<void> {
  if (stale || !(await input.host.systemctl.enablement(unit)).startsWith('enabled')) return;
  disable.add(unit);
  const masked = input.after.get(`${UNIT_FOLDER}/${unit}`)?.kind === 'link';
  if (!masked && (await willExist(unit, input))) enable.add(unit);
}

/** True if the host has a file for the unit once the update is applied. */
async function willExist(unit: string, { host, after }: Input): Promise<boolean> {
  const path = await findUnitFile(host.root, unit, async (candidate) => {
    const state = after.get(candidate) ?? (await readState(join(host.root, candidate)));
    return state.kind !== 'absent';
  });
  return path !== undefined;
}

async function refuseMasked(unit: string, { host, after }: Input): Promise<void> {
  const path = `${UNIT_FOLDER}/${unit}`;
  const state = after.get(path) ?? (await readState(join(host.root, path)));
  if (state.kind === 'link' && state.target === MASK_TARGET) {
    throw new NotPossibleHere(
      `systemd.units (${unit}): enabled, but masked on this host; add mask: false to unmask it`,
    );
  }
}

async function linksToRestore(
  host: Host,
  known: Readonly<Record<string, readonly EnablementLink[]>>,
  kept: Readonly<Record<string, unknown>>,
  wanted: Desired,
  disabled: ReadonlySet<string>,
): Promise<PlannedChange[]> {
  const changes: PlannedChange[] = [];
  const owner = host.ownerOnDisk({ uid: 0, gid: 0 });
  for (const [unit, original] of Object.entries(known)) {
    if (unit in kept || wanted.enablement.has(unit) || disabled.has(unit)) continue;
    const where = `enablement of ${unit}`;
    const now = await enablementLinks(host.root, unit);
    const asBefore = new Map(original.map((link) => [link.path, link.target]));
    for (const path of new Set([...now.map((link) => link.path), ...asBefore.keys()])) {
      const target = asBefore.get(path);
      const before = await readState(join(host.root, path));
      const after: PathState = target === undefined ? ABSENT : { kind: 'link', target, ...owner };
      changes.push({ path, origin: 'enablement', unit, where, before, after });
    }
  }
  return changes;
}
