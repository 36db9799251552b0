import { mkdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Host } from './host.js';
import type { Journal } from './journal.js';
import { removeIfEmpty } from './offline-systemctl.js';
import { ABSENT, putState } from './path-state.js';
import type { StateStore } from './state-store.js';
import { enablementLinks, type EnablementLink } from './units.js';

/** Putting the old state back failed; the journal stays open and the next attempt tries again. */
export class UndoFailedError extends Error {
  override readonly name = 'UndoFailedError';
}

/**
 * Brings back the state before an update that did not get through, in reverse order, and closes its journal. Each step
 * says what shall be, not what to do, so it may be interrupted and begun again as often as need be.
 */
export async function undo(host: Host, store: StateStore, journal: Journal): Promise<void> {
  const { changes, links, os } = journal.undo;
  if (os !== undefined) {
    await host.beforeStep('undo: staging the operating system');
    await host.os.stage(os);
  }
  for (const [unit, before] of Object.entries(links)) await removeOtherLinks(host, unit, before);
  for (const { path, before } of changes.toReversed()) {
    await host.beforeStep(`undo: putting back ${path}`);
    // Folders of links vanish with their last link, without being changes of their own.
    if (before.kind !== 'absent') await mkdir(dirname(join(host.root, path)), { recursive: true, mode: 0o755 });
    await putState(join(host.root, path), await store.load(before));
  }
  for (const before of Object.values(links)) await restoreLinks(host, before);
  await host.systemctl.reload();
  await host.beforeStep('undo: closing the journal');
  if (journal.previous === undefined) await store.removeJournal();
  else await store.writeJournal(journal.previous);
}

/**
 * Puts right what a crash left: an update in the middle of being applied is undone. To be called, with the host's lock
 * held, before anything else looks at the disk. Throws UndoFailedError.
 */
export async function recover(host: Host, store: StateStore): Promise<'nothing' | 'undone'> {
  const journal = await store.journal();
  if (journal?.phase !== 'applying') return 'nothing';
  try {
    await undo(host, store, journal);
    return 'undone';
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new UndoFailedError(`the unfinished change to ${journal.target} could not be put back: ${why}`, { cause });
  }
}

async function removeOtherLinks(host: Host, unit: string, before: readonly EnablementLink[]): Promise<void> {
  const keep = new Set(before.map(({ path }) => path));
  for (const { path } of await enablementLinks(host.root, unit)) {
    if (keep.has(path)) continue;
    await putState(join(host.root, path), ABSENT);
    await removeIfEmpty(dirname(join(host.root, path)));
  }
}

async function restoreLinks(host: Host, links: readonly EnablementLink[]): Promise<void> {
  const owner = host.ownerOnDisk({ uid: 0, gid: 0 });
  for (const { path, target } of links) {
    await mkdir(dirname(join(host.root, path)), { recursive: true, mode: 0o755 });
    await putState(join(host.root, path), { kind: 'link', target, ...owner });
  }
}
