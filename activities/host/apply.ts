import { mkdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Host } from './host.js';
import type { Journal } from './journal.js';
import type { Originals } from './originals.js';
import { removeIfEmpty } from './offline-systemctl.js';
import { putState, readState } from './path-state.js';
import type { PlannedChange, UpdatePlan } from './plan.js';
import { CURRENT_CONFIG_FILE, ORIGINALS_FILE, type StateStore, type StoredState } from './state-store.js';
import { undo, UndoFailedError } from './undo.js';

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
}

/**
 * Brings the host to the plan's target, all or nothing. How to get back is on the disk before anything is touched, so a
 * crash at any point is undone by `recover`; a failure is undone here. The host is at the target, durably, when the
 * journal says `applied`. Throws ApplyFailedError, or UndoFailedError with the journal left open.
 */
export async function applyPlan(input: ApplyInput): Promise<Journal> {
  const { host, store, plan } = input;
  const changes = [...plan.changes, ...(await stateChanges(input))];
  const journal = await openJournal(input, changes);
  let doing = 'opening the journal';
  const step = async (words: string) => {
    doing = words;
    input.onStep?.(words);
    await host.beforeStep(words);
  };
  try {
    await step('opening the journal');
    await store.writeJournal(journal);
    await carryOut(input, changes, step);
    await step('closing the change');
    const applied: Journal = { ...journal, phase: 'applied' };
    await store.writeJournal(applied);
    return applied;
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    try {
      await undo(host, store, journal);
    } catch (undoing) {
      const also = undoing instanceof Error ? undoing.message : String(undoing);
      throw new UndoFailedError(`${doing}: ${why}; and putting it back failed: ${also}`, { cause });
    }
    throw new ApplyFailedError(`${doing}: ${why}`, { cause });
  }
}

async function carryOut(
  { host, plan }: ApplyInput,
  changes: readonly PlannedChange[],
  step: (words: string) => Promise<void>,
): Promise<void> {
  const { enablement, os } = plan;
  if (enablement.disable.length > 0) {
    await step(`disabling ${enablement.disable.join(', ')}`);
    await host.systemctl.disable(enablement.disable);
  }
  for (const change of changes) {
    await step(describe(change));
    const path = join(host.root, change.path);
    if (change.origin === 'enablement') await mkdir(dirname(path), { recursive: true, mode: 0o755 });
    await putState(path, change.after);
    if (change.origin === 'enablement' && change.after.kind === 'absent') await removeIfEmpty(dirname(path));
  }
  if (changes.some(({ unit }) => unit !== undefined) || enablement.enable.length > 0) {
    await step('reloading systemd');
    await host.systemctl.reload();
  }
  if (enablement.enable.length > 0) {
    await step(`enabling ${enablement.enable.join(', ')}`);
    await host.systemctl.enable(enablement.enable);
  }
  if (os !== undefined) {
    await step('staging the operating system');
    await host.os.stage(os.after);
  }
}

function describe({ after, path, where }: PlannedChange): string {
  const verb = after.kind === 'absent' ? 'removing' : 'writing';
  return where === path ? `${verb} ${path}` : `${verb} ${path} of ${where}`;
}

/** Drydock's own records change with the files, and are undone with them. */
async function stateChanges({ host, store, plan }: ApplyInput): Promise<PlannedChange[]> {
  const paths: Record<string, StoredState> = {};
  for (const [path, state] of plan.originals.paths) paths[path] = await store.store(state);
  const originals: Originals = { paths, units: plan.originals.units };
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
  const bootId = await host.bootId();
  const stillDue = previous?.needsReboot === true && previous.bootId === bootId;
  const kept: { path: string; before: StoredState }[] = [];
  for (const { path, before } of changes) kept.push({ path, before: await store.store(before) });
  return {
    version: 1,
    phase: 'applying',
    target: plan.target.metadata.name,
    from: input.from,
    bootId,
    needsReboot: plan.needsReboot || stillDue,
    at: input.now,
    filesWritten: changes.filter(({ origin }) => origin === 'file' || origin === 'sshKeys').length,
    unitsChanged: plan.counts.units,
    undo: {
      changes: kept,
      links: plan.enablement.linksBefore,
      ...(plan.os === undefined ? {} : { os: plan.os.before }),
    },
    ...(previous === undefined ? {} : { previous }),
  };
}
