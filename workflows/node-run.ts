import {
  CancellationScope,
  condition,
  getExternalWorkflowHandle,
  isCancellation,
  log,
  setHandler,
  workflowInfo,
} from '@temporalio/workflow';
import type { Grant } from '../machine-config/pool/turn.js';
import { atOnce, control, controlCleanUp, nodeSteps } from './activity-proxies.js';
import { classify, type StepFailure } from './classify.js';
import type { ApplyResult, ConfirmResult, NodeStep, PrepareResult, RebootClearance } from './contract/activities.js';
import { rollOutPoolId } from './contract/ids.js';
import type { UpdateNodeInput, UpdateNodeResult } from './contract/inputs.js';
import { announceEnd, reconsider, settled, type Settled } from './contract/messages.js';
import type { DrainState } from './drain-node.js';
import { shortConfigName, trackProgress, type Progress } from './progress.js';

/** One run of the run-book: which node, towards which target, and its steps with what the UI shows of them. */
export interface NodeRun {
  readonly id: NodeStep;
  readonly input: UpdateNodeInput;
  readonly steps: ReturnType<typeof nodeSteps>;
  readonly progress: Progress;
  readonly target: string;
  readonly drain: DrainState;
  /** What the node ran before; known after `prepare`. */
  from(): string;
  mustDrain(): boolean;
  /** Its pods could run nowhere else: it is cordoned and not drained. */
  keepsPods(): boolean;
  /** Runs `cut` as soon as the pool may want something else; at once if that was said before. */
  onReconsider(cut: () => void): void;
  /** Asks for a slot; a grant decides the target. */
  takeSlot(): Promise<Grant>;
  /** Asks, holding the slot, what the pool wants by now; a grant may change the target. */
  askAgain(): Promise<Grant & { changed: boolean }>;
  prepare(): Promise<void>;
  /** `notDrained`: nothing was changed, the node has to be planned, cordoned and drained again. */
  apply(): Promise<ApplyResult | 'notDrained'>;
  /** Asks whether it may reboot now. */
  askToReboot(): Promise<RebootClearance>;
  /** Resolves as soon as the pool may want something else, or something may be allowed by now; at the latest after that time. */
  reconsidered(milliseconds: number): Promise<void>;
  reboot(): Promise<void>;
  confirm(): Promise<ConfirmResult>;
  uncordon(): Promise<void>;
}

export function nodeRun(input: UpdateNodeInput): NodeRun {
  const { cluster, pool, node, nodeUid } = input;
  const id: NodeStep = { cluster, pool, node, nodeUid };
  const steps = nodeSteps(node, input.tuning);
  const progress = trackProgress(input);
  let target = input.target;
  let plan: PrepareResult | undefined;
  let cut: (() => void) | undefined;
  let reconsidered = false;
  setHandler(
    reconsider,
    () => {
      reconsidered = true;
      cut?.();
    },
    { description: 'The pool may want something else: ask again before going on' },
  );
  // That it may go on is asked in passing; that it may begin is a step that people look for.
  const inPassing = input.asksInPassing === true ? atOnce : control;
  async function assign(intent: 'start' | 'continue', summary: string) {
    const { assign: ask } = intent === 'start' ? control : inPassing;
    const grant = await ask.executeWithOptions({ summary }, [{ ...id, intent }]);
    const changed = grant.outcome === 'granted' && grant.target !== target;
    if (changed) {
      target = grant.target;
      progress.retarget(target);
    }
    return { grant, changed };
  }
  const drain: DrainState = {
    cordoned: false,
    sliceSeconds: input.tuning.drainFirstSliceSeconds,
    since: undefined,
    waiting: undefined,
  };
  return {
    id,
    input,
    steps,
    progress,
    drain,
    get target() {
      return target;
    },
    from: () => plan?.from ?? input.current,
    mustDrain: () => plan?.disruption === 'drain' || plan?.disruption === 'reboot',
    keepsPods: () => plan?.noDrain === true,
    onReconsider(nextCut) {
      cut = nextCut;
      if (reconsidered) cut();
    },
    async takeSlot() {
      return (await assign('start', `slot for ${node}`)).grant;
    },
    async askAgain() {
      reconsidered = false;
      const { grant, changed } = await assign('continue', `still ${shortConfigName(target)} for ${node}?`);
      return { ...grant, changed };
    },
    async prepare() {
      if (plan?.target === target) return;
      progress.at('prepare', `Plans the update of ${node} to ${target}`);
      plan = await steps.prepare.executeWithOptions({ summary: `plan ${node} → ${shortConfigName(target)}` }, [
        { ...id, target },
      ]);
    },
    async apply() {
      progress.at('apply', `Applies ${target} on ${node}: ${plan?.summary ?? ''}`);
      const summary = `apply ${node} (${plan?.summary ?? ''})`;
      try {
        return await steps.apply.executeWithOptions({ summary }, [{ ...id, target }]);
      } catch (error) {
        const failure = classify(error);
        if (failure.kind !== 'refused' || failure.code !== 'NotDrained') throw error;
        log.warn('The plan needs a drained node by now: planning, cordoning and draining again', { error });
        plan = undefined;
        drain.cordoned = false;
        return 'notDrained';
      }
    },
    askToReboot() {
      reconsidered = false;
      return inPassing.clearReboot.executeWithOptions({ summary: `may ${node} reboot?` }, [{ ...id, target }]);
    },
    async reconsidered(milliseconds) {
      await condition(() => reconsidered, milliseconds);
    },
    async reboot() {
      progress.at('reboot', `Reboots ${node}`);
      await steps.reboot.executeWithOptions({ summary: `reboot ${node}` }, [{ ...id, target }]);
    },
    async confirm() {
      progress.at('confirm', `Waits until ${node} is back, Ready, and its disk is as ${target} says`);
      return steps.confirm.executeWithOptions({ summary: `is ${node} as ${shortConfigName(target)} says?` }, [
        { ...id, target },
      ]);
    },
    async uncordon() {
      progress.at('uncordon', `Gives ${node} back`);
      await steps.uncordon.executeWithOptions({ summary: `uncordon ${node}` }, [{ ...id, target }]);
    },
  };
}

/** There was nothing to take a slot for: nothing was touched, unless a cordon of an earlier run is left to lift. */
export async function endWithoutGrant(
  run: NodeRun,
  grant: Exclude<Grant, { outcome: 'granted' }>,
): Promise<UpdateNodeResult> {
  if (grant.outcome === 'refused') return { outcome: 'superseded', reason: grant.sentence };
  // Also where nothing is cordoned: a node that failed on another target than the one it runs is Done by that.
  await tryRelease(run);
  return { outcome: 'superseded', reason: `${run.id.node} runs ${grant.target} already` };
}

/** Ends before anything was applied: the slot and the node are given back. Bounded; what is missed the next turn finds. */
export async function endEarly(run: NodeRun, result: UpdateNodeResult): Promise<UpdateNodeResult> {
  return CancellationScope.nonCancellable(async () => {
    const cleanUp = controlCleanUp(run.input.tuning);
    try {
      const grant = await cleanUp.assign.executeWithOptions({ summary: `give back the slot of ${run.id.node}` }, [
        { ...run.id, intent: 'withdraw' },
      ]);
      if (grant.outcome === 'refused' && (grant.code === 'NodeGone' || grant.code === 'NodeReplaced')) return result;
    } catch (error) {
      log.warn('Could not give back the slot; the next turn will', { error });
    }
    await tryRelease(run);
    return result;
  });
}

/** Failures after which the node is whole and in its old state, so that its cordon may be lifted. */
const UNDONE = new Set([
  'Unreconcilable',
  'Unplannable',
  'Drifted',
  'UntrustedConfig',
  'ApplyFailed',
  'RolledBackAfterBoot',
]);
/** The node worker's own read of its Node said no: somebody changed it under us. */
const NOT_OURS = new Set(['NotGranted', 'NodeGone', 'WrongNode']);

/** Ends because a step failed; what may be undone has been undone by the step itself. */
export async function endFailed(run: NodeRun, failure: StepFailure): Promise<UpdateNodeResult> {
  const { step } = run.progress;
  if (failure.kind === 'cancelled') return endEarly(run, { outcome: 'cancelled', step });
  if (failure.kind === 'unreachable') return { outcome: 'unreachable', step };
  if (NOT_OURS.has(failure.code)) return endEarly(run, { outcome: 'superseded', reason: failure.reason });
  if (UNDONE.has(failure.code)) await CancellationScope.nonCancellable(() => tryRelease(run));
  return { outcome: 'degraded', step, code: failure.code, reason: failure.reason };
}

async function tryRelease(run: NodeRun): Promise<void> {
  try {
    await run.steps.release.executeWithOptions({ summary: `give back ${run.id.node} as it was` }, [run.id]);
  } catch (error) {
    log.warn('The node did not answer in time; its next update will lift the cordon', { error });
  }
}

/**
 * Runs the update and sees to it that its rollout hears how it ended, also when it failed or was cancelled. The run of
 * the rollout that started it awaits its result, and needs no signal; whoever comes after that run asks for one.
 */
export async function reportingEnd(run: NodeRun, update: () => Promise<UpdateNodeResult>): Promise<UpdateNodeResult> {
  const { pool, node } = run.id;
  const wanted = { signal: run.input.endsQuietly !== true };
  setHandler(announceEnd, () => void (wanted.signal = true), {
    description: 'Nobody awaits the result any more: tell the rollout by a signal',
  });
  const tell = (end: Pick<Settled, 'outcome' | 'restSeconds'>) =>
    CancellationScope.nonCancellable(async () => {
      if (!wanted.signal) return;
      try {
        const rollout = getExternalWorkflowHandle(rollOutPoolId(pool));
        await rollout.signal(settled, { node, runId: workflowInfo().runId, ...end });
      } catch {
        log.debug('No rollout is running to be told');
      }
    });
  try {
    const result = await update();
    await tell({ outcome: result.outcome, ...restOf(result) });
    return result;
  } catch (error) {
    await tell({ outcome: isCancellation(error) ? 'cancelled' : 'degraded' });
    throw error;
  }
}

/** How long a node is to be left alone after an update that says so itself. */
export function restOf(result: UpdateNodeResult): Pick<Settled, 'restSeconds'> {
  return result.outcome === 'postponed' ? { restSeconds: result.retryAfterSeconds } : {};
}
