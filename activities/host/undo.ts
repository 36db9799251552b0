import { mkdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { putPart, withPartOf } from './file-part.js';
import type { Host } from './host.js';
import type { Journal, UndoRecord } from './journal.js';
import { removeIfEmpty } from './offline-systemctl.js';
import { ABSENT } from './path-state.js';
import { putPath } from './put-path.js';
import { undoServices } from './services.js';
import type { StateStore } from './state-store.js';
import { enablementLinks, type EnablementLink } from './units.js';

/** Putting the old state back failed; the journal stays open and the next attempt tries again. */
export class UndoFailedError extends Error {
  override readonly name = 'UndoFailedError';
}

/**
 * Brings back the state before an update that did not get through, in reverse order, and closes its journal. Each step
 * says what shall be, not what to do, so it may be interrupted and begun again as often as need be. Returns, in
 * sentences, which services did not take their old files: they are told of, and nothing is left open for them. In a
 * later boot than the journal's every service has started with the files that are there.
 */
export async function undo(host: Host, store: StateStore, journal: Journal): Promise<readonly string[]> {
  const { links, os, daemonReload = true, services = [] } = journal.undo;
  if (os !== undefined) {
    await host.beforeStep('undo: staging the operating system');
    await host.os.stage(os);
  }
  for (const [unit, before] of Object.entries(links)) await removeOtherLinks(host, unit, before);
  for (const { path, before, part } of freeingRoomFirst(journal.undo.changes)) {
    await host.beforeStep(`undo: putting back ${path}`);
    // Folders of links vanish with their last link, without being changes of their own.
    if (before.kind !== 'absent') await mkdir(dirname(join(host.root, path)), { recursive: true, mode: 0o755 });
    const state = await store.load(before);
    if (part === undefined) await putPath(host, path, state);
    else await putPart(host, path, (found) => withPartOf(part, state, found));
  }
  for (const before of Object.values(links)) await restoreLinks(host, before);
  if (daemonReload) {
    await host.beforeStep('undo: reloading systemd');
    await host.systemctl.reload();
  }
  const problems = (await host.bootId()) === journal.bootId ? await undoServices(host, services) : [];
  await host.beforeStep('undo: closing the journal');
  if (journal.previous === undefined) await store.removeJournal();
  else await store.writeJournal(journal.previous);
  return problems;
}

/** In reverse order, but what was not there before goes first: on a full disk there is no room for the rest until then. */
function freeingRoomFirst(changes: UndoRecord['changes']): UndoRecord['changes'] {
  const reversed = changes.toReversed();
  const wasAbsent = ({ before }: UndoRecord['changes'][number]) => before.kind === 'absent';
  return [...reversed.filter(wasAbsent), ...reversed.filter((change) => !wasAbsent(change))];
}

/**
 * Puts right what a crash left: an update in the middle of being applied is undone. To be called, with the host's lock
 * held, before anything else looks at the disk. `onProblem` hears of services that did not take their old files. Throws
 * UndoFailedError.
 */
export async function recover(
  host: Host,
  store: StateStore,
  onProblem: (sentence: string) => void = () => undefined,
): Promise<'nothing' | 'undone'> {
  await store.removeUnfinished();
  const journal = await store.journal();
  if (journal?.phase !== 'applying') return 'nothing';
  try {
    for (const sentence of await undo(host, store, journal)) onProblem(sentence);
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
    await putPath(host, path, ABSENT);
    await removeIfEmpty(dirname(join(host.root, path)));
  }
}

async function restoreLinks(host: Host, links: readonly EnablementLink[]): Promise<void> {
  const owner = host.ownerOnDisk({ uid: 0, gid: 0 });
  for (const { path, target } of links) {
    await mkdir(dirname(join(host.root, path)), { recursive: true, mode: 0o755 });
    await putPath(host, path, { kind: 'link', target, ...owner });
  }
}
