import { Context } from '@temporalio/activity';
import type { DrainInput, DrainResult } from '../../workflows/contract/activities.js';
import { failedWith } from '../kubernetes/failures.js';
import type { NodeDependencies } from './dependencies.js';
import { DrainRun } from './drain-run.js';
import { checkCostsDrain } from './plan-here.js';

/** How often the list of pods is read: often at first, when most pods go, and then less and less. */
const FIRST_POLL_MS = 1_000;
const SLOWEST_PACE = 5;
const POLLS_AT_FIRST_PACE = 10;

/**
 * One slice of draining: evicts every pod that has to move and waits until it is gone, as far as the slice lasts. What
 * holds otherwise, and for how long, is the policy of the node's own pool, which is read again as it goes on. A pod
 * keeps its own grace period. The slice ends early where the pool's window closes. Whoever uncordons the node meanwhile finds it cordoned again. An API server that does not
 * answer is waited for. Heartbeats with counts; ends at once when cancelled.
 */
export async function drain(input: DrainInput, deps: NodeDependencies): Promise<DrainResult> {
  const context = Context.current();
  const beganAt = deps.now().getTime();
  await checkCostsDrain(input, deps);
  const run = await DrainRun.begin(input, deps);
  for (let polls = 1; ; polls++) {
    const endsAt = run.endOfSlice(beganAt, beganAt + input.sliceSeconds * 1000);
    const left = endsAt - deps.now().getTime();
    const result = await lookOrWait(run, left <= 0, context.cancellationSignal);
    if (result !== undefined) return result;
    context.heartbeat({ evicted: run.evicted, remaining: run.remaining });
    const pace = Math.min(SLOWEST_PACE, Math.max(1, polls - POLLS_AT_FIRST_PACE));
    const pause = pace * (deps.drainPollMs ?? FIRST_POLL_MS);
    await context.sleep(Math.max(0, Math.min(pause, endsAt - deps.now().getTime())));
  }
}

/** At the end of the slice there has to be an answer, or a failure. */
async function lookOrWait(run: DrainRun, isEnd: boolean, signal: AbortSignal): Promise<DrainResult | undefined> {
  try {
    return await run.look(isEnd, signal);
  } catch (error) {
    if (isEnd || !failedWith(error, 'ApiUnavailable')) throw error;
    return undefined;
  }
}
