import type { Host } from './host.js';
import type { StateStore } from './state-store.js';

/**
 * Where every image has its own `/etc`, booting an older one brings an older `/etc` under a newer journal, which says
 * how to undo what was never done there. Such a journal is closed as old, and the disk is left to be compared with what
 * is recorded. To be called with the host's lock held, before `recover`. True: one was closed.
 */
export async function closeJournalOfOtherDeployment(host: Host, store: StateStore): Promise<boolean> {
  const journal = await store.journal();
  if (journal?.deployment === undefined || journal.deployment === '') return false;
  if ((await host.os.deployment()) === journal.deployment) return false;
  // An update of the operating system itself is meant to come up in another deployment.
  if (journal.phase === 'applied' && journal.undo.os !== undefined) return false;
  await store.removeJournal();
  return true;
}
