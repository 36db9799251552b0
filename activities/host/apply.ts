import { mkdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { touchesNetworkOrKubelet } from '../../machine-config/change/touches-network.js';
import { enableUnits } from './enabling.js';
import { putPart } from './file-part.js';
import type { Host } from './host.js';
import { ApplyInterruptedError, interruptibleJobs, Interruption, refuseIfInterrupted } from './interruption.js';
import type { BegunService, Journal, KeptState } from './journal.js';
import type { Originals } from './originals.js';
import { removeIfEmpty } from './offline-systemctl.js';
import { readState } from './path-state.js';
import type { PlannedChange, UpdatePlan } from './plan.js';
import { putPath } from './put-path.js';
import { actOnServices, stopUnits, type ServiceSteps } from './services.js';
import { CURRENT_CONFIG_FILE, ORIGINALS_FILE, type StateStore, type StoredState } from './state-store.js';
import { undo, UndoFailedError } from './undo.js';
import { isReadByDaemon } from './units.js';

/** Applying failed and the host is as it was before; names the step and what it was about. */
export class ApplyFailedError extends Error {
  override readonly name = 'ApplyFailedError';
}

export interface ApplyInput {
  readonly host: Host;
  readonly store: StateStore;
  readonly plan: UpdatePlan;
  /** The node's confirmed config, for the journal. */
  readonly from: string;
  /** Called before each step, with words for it. */
  readonly onStep?: (step: string) => void;
  /** ISO 8601. */
  readonly now: string;
  /** Tells when it was done; absent: that is not recorded. */
  readonly clock?: () => Date;
  /** The process is to end: no further step is begun, no job of systemd waited for, and everything is put back. */
  readonly signal?: AbortSignal;
}

/**
 * Brings the host to the plan's target, all or nothing. How to get back is on the disk before anything is touched, so a
 * crash at any point is undone by `recover`; a failure is undone here, with the services that were acted upon. The host
 * is at the target, durably, when the journal says `applied`. Throws ApplyFailedError, ApplyInterruptedError after the
 * signal, or UndoFailedError with the journal left open.
 */
export async function applyPlan(input: ApplyInput): Promise<Journal> {
  const { host, store } = input;
  const changes = [...input.plan.changes, ...(await stateChanges(input))];
  let journal = await openJournal(input, changes);
  let doing = 'opening the journal';
  const step = async (words: string) => {
    doing = words;
    input.onStep?.(words);
    await host.beforeStep(words);
  };
  const begin = async (service: BegunService) => {
    const { undo } = journal;
    journal = { ...journal, undo: { ...undo, services: [...(undo.services ?? []), service] } };
    await store.writeJournal(journal);
  };
  try {
    await step(doing);
    await store.writeJournal(journal);
    await carryOut(input.plan, changes, {
      host: { ...host, systemctl: interruptibleJobs(host.systemctl, input.signal) },
      begin,
      step(words) {
        refuseIfInterrupted(input.signal);
        return step(words);
      },
    });
    // All is done: to close is less than to put everything back.
    await step('closing the change');
    const appliedAt = input.clock?.().toISOString();
    const applied: Journal = { ...journal, phase: 'applied', ...(appliedAt === undefined ? {} : { appliedAt }) };
    await store.writeJournal(applied);
    return applied;
  } catch (cause) {
    throw await takenBack(input, journal, `${doing}: ${inOneLine(cause)}`, cause);
  }
}

/** Puts everything back; the error to throw then. */
async function takenBack({ host, store }: ApplyInput, journal: Journal, why: string, cause: unknown): Promise<Error> {
  try {
    const problems = await undo(host, store, journal);
    const but = problems.length === 0 ? '' : `, but ${problems.map(inOneLine).join('; ')}`;
    const Kind = cause instanceof Interruption ? ApplyInterruptedError : ApplyFailedError;
    return new Kind(`${why}; everything was put back as it was${but}`, { cause });
  } catch (undoing) {
    return new UndoFailedError(`${why}; and putting it back failed: ${inOneLine(undoing)}`, { cause });
  }
}

/** So much of one cause is told: reasons name several things and have an end. */
const LONGEST_CAUSE = 600;

function inOneLine(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  return text.replace(/\s*\n\s*/g, ' ').slice(0, LONGEST_CAUSE);
}

async function carryOut(plan: UpdatePlan, changes: readonly PlannedChange[], steps: ServiceSteps): Promise<void> {
  const { enablement, os } = plan;
  const { host, step } = steps;
  await stopUnits(plan.stop, steps);
  if (enablement.disable.length > 0) {
    await step(`disabling ${listed(enablement.disable)}`);
    await host.systemctl.disable(enablement.disable);
  }
  for (const change of changes) {
    await step(describe(change));
    await makeChange(host, change);
  }
  if (needsDaemonReload(plan)) {
    await step('reloading systemd');
    await host.systemctl.reload();
  }
  if (enablement.enable.length > 0) {
    await step(`enabling ${listed(enablement.enable)}`);
    await enableUnits(host, enablement.enable);
  }
  if (os !== undefined) {
    await step('staging the operating system');
    await host.os.stage(os.after);
  }
  await actOnServices(plan.actions, steps);
}

async function makeChange(host: Host, { path, origin, after, part }: PlannedChange): Promise<void> {
  if (part !== undefined) return putPart(host, path, (found) => part.change(found));
  const folder = dirname(join(host.root, path));
  if (origin === 'enablement') await mkdir(folder, { recursive: true, mode: 0o755 });
  await putPath(host, path, after);
  if (origin === 'enablement' && after.kind === 'absent') await removeIfEmpty(folder);
}

/** Only then: on a host with many units it takes seconds, and it starts what generators find. */
function needsDaemonReload({ changes, actions }: UpdatePlan): boolean {
  return changes.some(({ path }) => isReadByDaemon(path)) || actions.some(({ type }) => type === 'DaemonReload');
}

const MOST_LISTED = 10;

function listed(units: readonly string[]): string {
  const more = units.length > MOST_LISTED ? ` and ${units.length - MOST_LISTED} more` : '';
  return `${units.slice(0, MOST_LISTED).join(', ')}${more}`;
}

function describe({ after, path, where }: PlannedChange): string {
  const verb = after.kind === 'absent' ? 'removing' : 'writing';
  return where === path ? `${verb} ${path}` : `${verb} ${path} of ${where}`;
}

/** By key: the same records are the same bytes, whichever way a host came to them. */
function sorted<T>(entries: Iterable<readonly [string, T]>): (readonly [string, T])[] {
  return [...entries].sort(([one], [other]) => (one < other ? -1 : 1));
}

/** Drydock's own records change with the files, and are undone with them. */
async function stateChanges({ host, store, plan }: ApplyInput): Promise<PlannedChange[]> {
  const paths: Record<string, StoredState> = {};
  for (const [path, state] of sorted(plan.originals.paths)) paths[path] = await store.store(state);
  const units = Object.fromEntries(sorted(Object.entries(plan.originals.units)));
  const originals: Originals = { paths, units };
  const owner = host.ownerOnDisk({ uid: 0, gid: 0 });
  const record = async (path: string, value: unknown): Promise<PlannedChange> => ({
    path,
    origin: 'state',
    where: path,
    before: await readState(join(host.root, path)),
    after: { kind: 'file', contents: Buffer.from(JSON.stringify(value)), mode: 0o600, ...owner },
  });
  return [await record(ORIGINALS_FILE, originals), await record(CURRENT_CONFIG_FILE, plan.target)];
}

async function openJournal(input: ApplyInput, changes: readonly PlannedChange[]): Promise<Journal> {
  const { host, store, plan } = input;
  const previous = await store.journal();
  const kept: KeptState[] = [];
  for (const { path, before, part } of changes) {
    if (part === undefined) kept.push({ path, before: await store.store(before) });
    else kept.push({ path, before: await store.store(part.keep(before)), part: part.kind });
  }
  return {
    version: 1,
    phase: 'applying',
    target: plan.target.metadata.name,
    from: input.from,
    bootId: await host.bootId(),
    needsReboot: plan.cost === 'reboot',
    deployment: await host.os.deployment(),
    touchesNetwork: touchesNetwork(plan) || (plan.cost === 'reboot' && previous?.touchesNetwork === true),
    at: input.now,
    filesWritten: changes.filter(({ origin }) => origin === 'file' || origin === 'sshKeys').length,
    unitsChanged: plan.counts.units,
    undo: {
      changes: kept,
      links: plan.enablement.linksBefore,
      ...(plan.os === undefined ? {} : { os: plan.os.before }),
      daemonReload: needsDaemonReload(plan) || plan.enablement.enable.length + plan.enablement.disable.length > 0,
    },
    ...(previous === undefined ? {} : { previous }),
  };
}

function touchesNetwork({ changes, units, os }: UpdatePlan): boolean {
  return touchesNetworkOrKubelet({
    paths: changes.map(({ path }) => path),
    units,
    operatingSystem: os !== undefined,
  });
}
