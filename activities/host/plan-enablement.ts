import { basename, join } from 'node:path';
import { withAlso } from './also-units.js';
import type { Desired } from './desired.js';
import { NotPossibleHere } from './entry.js';
import type { Host } from './host.js';
import { ABSENT, differenceOf, readState, type PathState } from './path-state.js';
import type { PlannedChange } from './plan.js';
import type { StateStore } from './state-store.js';
import { enablementLinks, isTemplate, UNIT_FOLDER, type EnablementLink } from './units.js';
import type { UnitsAfter } from './units-after.js';

/** What an update does about which units start by themselves. */
export interface EnablementPlan {
  /** Before the files change, so that the old [Install] section says which links go. */
  readonly disable: readonly string[];
  /** After the files have changed. */
  readonly enable: readonly string[];
  /** Units that no config speaks of any more get back the links they had. */
  readonly changes: readonly PlannedChange[];
  /** Of every unit that is enabled or disabled, or that systemd treats together with one. */
  readonly linksBefore: Readonly<Record<string, readonly EnablementLink[]>>;
  readonly originals: Readonly<Record<string, readonly EnablementLink[]>>;
  readonly warnings: readonly string[];
}

interface Input {
  readonly host: Host;
  readonly store: StateStore;
  readonly wanted: Desired;
  readonly had: Desired | undefined;
  readonly changes: readonly PlannedChange[];
  readonly units: UnitsAfter;
}

interface Plan {
  readonly disable: Set<string>;
  readonly enable: Set<string>;
  readonly warnings: string[];
}

/**
 * Acts where the unit file changes or where the host's state is not the wish, and nowhere else. A unit without a wish
 * keeps its state, whatever the presets of the host say; one that no config speaks of any more gets back the links that
 * it had before the first config did, and one whose file goes for good has none.
 */
export async function planEnablement(input: Input): Promise<EnablementPlan> {
  const { host, store, wanted } = input;
  const plan: Plan = { disable: new Set(), enable: new Set(), warnings: [] };
  const known = (await store.originals()).units;
  const originals: Record<string, readonly EnablementLink[]> = {};
  const linksBefore: Record<string, readonly EnablementLink[]> = {};

  for (const [unit, wish] of wanted.enablement) {
    if (!(await input.units.exists(unit))) {
      plan.warnings.push(`${unit} shall be ${wish ? 'enabled' : 'disabled'}, but this host has no such unit`);
      continue;
    }
    originals[unit] = known[unit] ?? (await enablementLinks(host.root, unit));
    await (wish ? planEnabled(unit, input, plan) : planDisabled(unit, input, plan));
  }
  for (const unit of await unitsWithoutWish(input)) {
    if (known[unit] === undefined) await planUnwished(unit, input, plan);
  }
  const { disable, enable } = plan;
  for (const unit of await withAlso([...disable, ...enable], host.root, input.units)) {
    linksBefore[unit] = await enablementLinks(host.root, unit);
  }

  const restored = await linksToRestore(input, { known, kept: originals, disable });
  return {
    disable: [...disable],
    enable: [...enable],
    changes: restored,
    linksBefore,
    originals,
    warnings: plan.warnings,
  };
}

async function planDisabled(unit: string, { host }: Input, { disable }: Plan): Promise<void> {
  // What is enabled until the next boot only is an administrator's passing decision.
  if ((await host.systemctl.enablement(unit)) === 'enabled') disable.add(unit);
}

/** Nothing is to be made for these: nothing in their file says by what they would be enabled. */
const WITHOUT_INSTALL: ReadonlySet<string> = new Set(['static', 'generated', 'transient', 'alias']);

async function planEnabled(unit: string, input: Input, { disable, enable, warnings }: Plan): Promise<void> {
  const state = await input.host.systemctl.enablement(unit);
  await refuseMasked(unit, state, input);
  if (input.units.isChanged(unit)) {
    if (state === 'enabled') disable.add(unit);
    enable.add(unit);
    return;
  }
  if (WITHOUT_INSTALL.has(state)) {
    warnings.push(`${unit} shall be enabled, but is ${state}: its file does not say by what`);
    return;
  }
  // It stays indirect after it was enabled, so only what the configs say can tell whether that was done.
  const isEnabled = state === 'indirect' ? input.had?.enablement.get(unit) === true : state === 'enabled';
  if (!isEnabled) enable.add(unit);
}

/** Units whose own file, or whose template's, changes, and of whose enablement nobody speaks. */
async function unitsWithoutWish({ host, wanted, changes }: Input): Promise<string[]> {
  const units = new Set<string>();
  for (const { unit, path } of changes) {
    if (unit === undefined || path !== `${UNIT_FOLDER}/${unit}`) continue;
    const links = isTemplate(unit) ? await enablementLinks(host.root, unit) : [];
    for (const name of isTemplate(unit) ? links.map((link) => basename(link.path)) : [unit]) units.add(name);
  }
  return [...units].filter((unit) => !wanted.enablement.has(unit));
}

/**
 * It stays enabled if it was, by its new [Install] section; if its file goes for good, so do its links. A mask leaves
 * them: without it the unit is what it was.
 */
async function planUnwished(unit: string, { host, units }: Input, { disable, enable }: Plan): Promise<void> {
  if ((await units.isMasked(unit)) || (await host.systemctl.enablement(unit)) !== 'enabled') return;
  disable.add(unit);
  if (await units.exists(unit)) enable.add(unit);
}

async function refuseMasked(unit: string, state: string, { units }: Input): Promise<void> {
  if (await units.isMasked(unit)) {
    throw new NotPossibleHere(
      `systemd.units (${unit}): enabled, but masked on this host; add mask: false to unmask it`,
    );
  }
  if (state === 'masked-runtime') {
    throw new NotPossibleHere(
      `systemd.units (${unit}): enabled, but masked until the next boot; run systemctl unmask --runtime ${unit}`,
    );
  }
}

async function linksToRestore(
  { host, wanted }: Input,
  {
    known,
    kept,
    disable,
  }: {
    known: Readonly<Record<string, readonly EnablementLink[]>>;
    kept: Readonly<Record<string, unknown>>;
    disable: ReadonlySet<string>;
  },
): Promise<PlannedChange[]> {
  const changes: PlannedChange[] = [];
  const owner = host.ownerOnDisk({ uid: 0, gid: 0 });
  for (const [unit, original] of Object.entries(known)) {
    if (unit in kept || wanted.enablement.has(unit) || disable.has(unit)) continue;
    const where = `enablement of ${unit}`;
    const now = await enablementLinks(host.root, unit);
    const asBefore = new Map(original.map((link) => [link.path, link.target]));
    for (const path of new Set([...now.map((link) => link.path), ...asBefore.keys()])) {
      // An instance of a template may have a wish of its own.
      if (wanted.enablement.has(basename(path))) continue;
      const target = asBefore.get(path);
      const before = await readState(join(host.root, path));
      const after: PathState = target === undefined ? ABSENT : { kind: 'link', target, ...owner };
      if (differenceOf(after, before) === undefined) continue;
      changes.push({ path, origin: 'enablement', unit, where, before, after });
    }
  }
  return changes;
}
