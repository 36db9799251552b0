import type { MachineConfig } from '../../machine-config/api/machine-config.js';
import type { DisruptionAction } from '../../machine-config/api/node-disruption-policy.js';
import type { DisruptionCost } from '../../machine-config/change/disruption.js';
import { usedOsFields } from '../../machine-config/change/os-fields.js';
import { readSpec } from '../../machine-config/render/spec.js';
import { changedParts } from './changed-parts.js';
import { desiredEntries, type Desired } from './desired.js';
import { NotPossibleHere } from './entry.js';
import type { PartChange } from './file-part.js';
import type { Host, OsState } from './host.js';
import type { ChangeOrigin } from './journal.js';
import { countDifferentArguments, isRunningAlready, sameOsState } from './os-state.js';
import type { PathState } from './path-state.js';
import { planCost, REBOOT, type CostPlan } from './plan-cost.js';
import { planEnablement, type EnablementPlan } from './plan-enablement.js';
import { planPaths } from './plan-paths.js';
import { lastingUntilReboot, unitsToStop } from './plan-services.js';
import { refuseProtected } from './protected-paths.js';
import { osStateOf } from './rendered.js';
import { checkPlaces, checkRoom } from './room.js';
import type { StateStore } from './state-store.js';
import type { EnablementLink } from './units.js';
import { unitsAfter, type UnitsAfter } from './units-after.js';
import { verifyPlannedUnits } from './verify-planned-units.js';

/** One path that an update changes. */
export interface PlannedChange {
  readonly path: string;
  /** The path as the config writes it, where that differs. */
  readonly declared?: string;
  readonly origin: ChangeOrigin;
  readonly unit?: string;
  /** The field of the config, for messages. */
  readonly where: string;
  readonly before: PathState;
  readonly after: PathState;
  /** Only a part of the file is changed, whatever others write in it until then. */
  readonly part?: PartChange;
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
  /** Every unit of which anything changes, sorted. */
  readonly units: readonly string[];
  readonly cost: DisruptionCost;
  /** What is done once the files are there, in order; empty where nothing is to be done. `Reboot` stands alone. */
  readonly actions: readonly DisruptionAction[];
  /** Units that run and whose file goes for good; none where a reboot follows. */
  readonly stop: readonly string[];
  readonly warnings: readonly string[];
}

export interface PlanInput {
  readonly host: Host;
  readonly store: StateStore;
  /** What the disk is at; undefined: nothing of Drydock. */
  readonly current: MachineConfig | undefined;
  readonly target: MachineConfig;
  readonly sshUser: string;
  /** Somebody asked on the host that the config is applied again as a whole: the node reboots, whatever changes. */
  readonly forced?: boolean;
}

/** Plans an update, and writes nothing. Throws NotPossibleHere where it cannot be carried out on this host. */
export async function planUpdate(input: PlanInput): Promise<UpdatePlan> {
  const { host, store, current, target, sshUser } = input;
  checkOperatingSystem(target, host);
  const wanted = await desiredEntries(target, host, sshUser);
  const had = current === undefined ? undefined : await desiredEntries(current, host, sshUser);

  const { changes: paths, after, originals } = await planPaths({ host, store }, wanted, had);
  const units = unitsAfter(host, after, paths);
  await refuseProtected(host, target, { wanted, changes: paths });
  const enablement = await planEnablement({ host, store, wanted, had, changes: paths, units });
  const changes = [...paths, ...enablement.changes];
  await checkPlaces(host, changes);
  await checkRoom(host, changes);
  const unitWarnings = await verifyPlannedUnits(host, changes, { after, units });

  const os = await operatingSystemChange(host, wanted);
  const names = changedUnits(changes, enablement);
  const cost = await costOf(input, { changes, names, wanted, had, units, os });
  const isRebooted = cost.cost === 'reboot';
  return {
    from: current?.metadata.name ?? '',
    target,
    changes,
    enablement,
    ...(os === undefined ? {} : { os }),
    originals: { paths: originals, units: enablement.originals },
    counts: counts(paths, names, os),
    units: names,
    cost: cost.cost,
    actions: cost.actions,
    stop: isRebooted ? [] : await unitsToStop(paths, { units, systemctl: host.systemctl, had }),
    warnings: [
      ...enablement.warnings,
      ...unitWarnings,
      ...cost.warnings,
      ...(isRebooted ? [] : await lastingUntilReboot(paths, cost.actions, host.systemctl)),
    ],
  };
}

/** Nothing of the host is to be changed. */
export function isEmpty({ changes, enablement, os, cost }: UpdatePlan): boolean {
  const { enable, disable } = enablement;
  return changes.length + enable.length + disable.length === 0 && os === undefined && cost === 'none';
}

/** What this host's operating system cannot do is refused, not left out. */
function checkOperatingSystem(target: MachineConfig, { os }: Host): void {
  const wanted = osStateOf(target);
  for (const field of usedOsFields(readSpec(target.spec))) {
    const why = os.refusal(field, wanted);
    if (why !== undefined) {
      throw new NotPossibleHere(`spec.${field}: ${why}; remove it from the MachineConfigs of this pool`);
    }
  }
}

async function operatingSystemChange(host: Host, wanted: Desired): Promise<UpdatePlan['os']> {
  const before = await host.os.staged();
  return sameOsState(before, wanted.os) ? undefined : { before, after: wanted.os };
}

function changedUnits(changes: readonly PlannedChange[], { enable, disable }: EnablementPlan): string[] {
  const units = new Set([...changes.flatMap(({ unit }) => unit ?? []), ...enable, ...disable]);
  return [...units].sort();
}

interface Found {
  readonly changes: readonly PlannedChange[];
  readonly names: readonly string[];
  readonly wanted: Desired;
  readonly had: Desired | undefined;
  readonly units: UnitsAfter;
  readonly os: UpdatePlan['os'];
}

async function costOf(input: PlanInput, found: Found): Promise<CostPlan> {
  const { host, store, forced = false } = input;
  const { changes, names, os } = found;
  if (forced || (await isRebootDue(host, store))) return REBOOT;
  if (os !== undefined && !(await isRunningAlready(host.os, os.before, os.after))) return REBOOT;
  return planCost(input, changedParts(changes, names, found), found.units);
}

/** An earlier update is applied and waits for its reboot, which the next one does not save. */
async function isRebootDue(host: Host, store: StateStore): Promise<boolean> {
  const journal = await store.journal();
  return journal?.needsReboot === true && journal.bootId === (await host.bootId());
}

function counts(paths: readonly PlannedChange[], units: readonly string[], os: UpdatePlan['os']): UpdatePlan['counts'] {
  const count = (origin: ChangeOrigin) => paths.filter((change) => change.origin === origin).length;
  return {
    files: count('file'),
    units: units.length,
    sshKeys: count('sshKeys'),
    kernelArguments: os === undefined ? 0 : countDifferentArguments(os.before, os.after),
  };
}
