import { withHostLock } from '../host/lock.js';
import { undo } from '../host/undo.js';
import type { NodeDependencies } from './dependencies.js';

/**
 * Takes an update back that was applied and booted: the old state is restored and booted. What is to be done is on the
 * disk first, so that a crash anywhere ends in the same. False: the update is not there any more, or was confirmed
 * meanwhile. Throws HostBusyError.
 */
export async function rollBack(deps: NodeDependencies, target: string, reason: string): Promise<boolean> {
  const { host, store } = deps;
  const isOurs = await withHostLock(host, `taking ${target} back`, async () => {
    const journal = await store.journal();
    if (journal?.phase !== 'applied' || journal.target !== target) return false;
    await store.writeRollback({ target, reason, bootId: await host.bootId(), at: deps.now().toISOString() });
    return true;
  });
  if (isOurs) await finishRollBack(deps);
  return isOurs;
}

/**
 * Brings a roll-back to its end as far as this host goes: the old state is on the disk, and the boot in which it was
 * decided is over. Does nothing where there is none, or where it is done.
 */
export async function finishRollBack(deps: NodeDependencies): Promise<void> {
  const { host, store } = deps;
  if ((await store.rollback()) === undefined) return;
  await withHostLock(host, 'taking an update back', async () => {
    const rollback = await store.rollback();
    if (rollback === undefined) return;
    const journal = await store.journal();
    // A later attempt at the same target has a journal of its own.
    if (journal?.target === rollback.target && journal.at <= rollback.at) await undo(host, store, journal);
    // Of the boot in which it was decided; in a later one it does nothing.
    await host.reboot({ bootId: rollback.bootId, reason: `Drydock: ${rollback.target} is taken back` });
  });
}
