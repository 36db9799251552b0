import { CancellationScope, isCancellation, log } from '@temporalio/workflow';
import type { DrainResult } from './contract/activities.js';
import type { NodeRun } from './node-run.js';

/** What the drains of one update remember from slice to slice. */
export interface DrainState {
  cordoned: boolean;
  sliceSeconds: number;
  /** Epoch milliseconds of the first slice. */
  since: number | undefined;
  /** What the last slice met, told until the next one ends. */
  waiting: string | undefined;
}

/** `empty`: nothing is left to move. `blocked`: another slice is needed. Else the pool wants the node given back. */
export type DrainOutcome = 'empty' | 'blocked' | { readonly reason: string; readonly retryAfterSeconds: number };

/**
 * Cordons, then drains for one slice, cut short when the pool may want something else. Slices grow from the first to the
 * longest, so that a week of waiting stays a short history. A node whose pods could run nowhere else is only cordoned.
 */
export async function drainSlice(run: NodeRun): Promise<DrainOutcome> {
  const { node } = run.id;
  const { drain } = run;
  const target = { ...run.id, target: run.target };
  if (!drain.cordoned) {
    run.progress.at('cordon', `Cordons ${node}`);
    await run.steps.cordon.executeWithOptions({ summary: `cordon ${node}` }, [target]);
    drain.cordoned = true;
  }
  if (run.keepsPods()) return 'empty';
  drain.since ??= Date.now();
  run.progress.at('drain', drain.waiting ?? `Drains ${node} since ${clock(drain.since)}`);
  const result = await cuttable(run, () =>
    run.steps
      .drain(drain.sliceSeconds)
      .executeWithOptions({ summary: `drain ${node}` }, [{ ...target, sliceSeconds: drain.sliceSeconds }]),
  );
  if (result === undefined) return 'blocked';
  if (result.warnings !== undefined) log.warn(`Drain of ${node}: ${result.warnings.join('; ')}`);
  if (result.giveBack !== undefined) return result.giveBack;
  drain.sliceSeconds = Math.min(drain.sliceSeconds * 2, run.input.tuning.drainMaxSliceSeconds);
  if (result.drained) return 'empty';
  drain.waiting = result.sentence ?? blockedSentence(node, drain.since, result);
  run.progress.at('drain', drain.waiting);
  return 'blocked';
}

/** Runs a step that a `reconsider` may cut short; undefined: it was. The update's own cancellation passes through. */
async function cuttable<T>(run: NodeRun, step: () => Promise<T>): Promise<T | undefined> {
  const slice = new CancellationScope();
  const cut = { asked: false };
  run.onReconsider(() => {
    cut.asked = true;
    slice.cancel();
  });
  try {
    return await slice.run(step);
  } catch (error) {
    const onlyTheSlice = cut.asked && !CancellationScope.current().consideredCancelled;
    if (onlyTheSlice && isCancellation(error)) return undefined;
    throw error;
  }
}

/** For node workers that tell no sentence of their own. */
function blockedSentence(node: string, since: number, result: DrainResult): string {
  const [first, ...others] = result.blockers;
  const left = `${result.remaining} pods left on ${node}; drain since ${clock(since)}`;
  if (first === undefined) return `Waiting: ${left}`;
  const more = others.length === 0 ? '' : ` and ${others.length} more`;
  return `Waiting: ${first.why} (pod ${first.pod}${more}); ${left}; free the pod or scale up what its budget guards`;
}

/** UTC, `02:14`. */
function clock(epoch: number): string {
  return new Date(epoch).toISOString().slice(11, 16);
}
