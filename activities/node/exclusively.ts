import { closeJournalOfOtherDeployment } from '../host/deployment.js';
import { withHostLock } from '../host/lock.js';
import { recover, UndoFailedError } from '../host/undo.js';
import type { NodeDependencies } from './dependencies.js';
import { failure, notYet, translated } from './failures.js';

/**
 * Runs a step as the only one on this host, after putting right what a crash left. Throws HostBusy (retryable) or
 * UndoFailed.
 */
export async function exclusively<T>(doing: string, deps: NodeDependencies, work: () => Promise<T>): Promise<T> {
  try {
    return await withHostLock(deps.host, doing, async () => {
      const { host, store } = deps;
      await closeJournalOfOtherDeployment(host, store);
      await refuseWhileTakenBack(deps);
      await recover(host, store, (sentence) => deps.events?.warning('ServiceNotRestored', sentence));
      return work();
    });
  } catch (error) {
    if (error instanceof UndoFailedError) {
      throw failure('UndoFailed', `${error.message}; mend the cause and the next attempt puts it back`, error);
    }
    throw translated(error);
  }
}

/** Between the decision to go back and the reboot into the old state nothing else may happen on the host. */
async function refuseWhileTakenBack({ host, store }: NodeDependencies): Promise<void> {
  const rollback = await store.rollback();
  if (rollback === undefined || rollback.bootId !== (await host.bootId())) return;
  throw notYet('HostBusy', `${rollback.target} is being taken back on this host, which reboots; trying again later`);
}
