import type { NodeRun } from './node-run.js';

/** A reboot that may not be made yet is asked for again after these times, unless the tuning says otherwise. */
const FIRST_SECONDS = 15;
const MAX_SECONDS = 600;

/**
 * Waits, once the change is on the disk, until the node may reboot: while everything is stopped, or the rest of its
 * control plane is not well, it may not. Asked again whenever the rollout says that this may have changed, and else at
 * growing intervals, so that a week of waiting stays a short history. Here the node is safe: nothing but the reboot is
 * left to do, and until then it runs as before.
 */
export async function awaitRebootClearance(run: NodeRun): Promise<void> {
  if (run.input.asksBeforeReboot !== true) return;
  const { clearanceFirstSeconds = FIRST_SECONDS, clearanceMaxSeconds = MAX_SECONDS } = run.input.tuning;
  for (let seconds = clearanceFirstSeconds; ; seconds = Math.min(seconds * 2, clearanceMaxSeconds)) {
    const clearance = await run.askToReboot();
    if (clearance.clear) return;
    run.progress.at('reboot', `Waiting: ${clearance.sentence}`);
    await run.reconsidered(Math.min(seconds * 1000, Math.max((clearance.until ?? Infinity) - Date.now(), 1000)));
  }
}
