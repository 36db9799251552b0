import { withHostLock } from '../host/lock.js';
import { recover, UndoFailedError } from '../host/undo.js';
import type { NodeDependencies } from './dependencies.js';
import { failure, translated } from './failures.js';

/**
 * Runs a step as the only one on this host, after putting right what a crash left. Throws HostBusy (retryable) or
 * UndoFailed.
 */
export async function exclusively<T>(doing: string, deps: NodeDependencies, work: () => Promise<T>): Promise<T> {
  try {
    return await withHostLock(deps.host, doing, async () => {
      await recover(deps.host, deps.store);
      return work();
    });
  } catch (error) {
    if (error instanceof UndoFailedError) {
      throw failure('UndoFailed', `${error.message}; mend the cause and the next attempt puts it back`, error);
    }
    throw translated(error);
  }
}
