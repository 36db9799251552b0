import {
  CancellationScope,
  getExternalWorkflowHandle,
  isCancellation,
  log,
  setHandler,
  workflowInfo,
} from '@temporalio/workflow';
import type { Grant } from '../machine-config/pool/turn.js';
import { control, controlCleanUp, nodeSteps } from './activity-proxies.js';
import { classify, type StepFailure } from './classify.js';
import type { ApplyResult, ConfirmResult, DrainResult, NodeStep, PrepareResult } from './contract/activities.js';
import { rollOutPoolId } from './contract/ids.js';
import type { UpdateNodeInput, UpdateNodeResult } from './contract/inputs.js';
import { reconsider, settled } from './contract/messages.js';
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
  /** Pods that `prepare` counted. */
  pods(): number;
  /** Runs `cut` as soon as the pool may want something else; at once if that was said before. */
  onReconsider(cut: () => void): void;
  /** Asks for a slot; a grant decides the target. */
  takeSlot(): Promise<Grant>;
  /** Asks, holding the slot, what the pool wants by now; a grant may change the target. */
  askAgain(): Promise<Grant & { changed: boolean }>;
  prepare(): Promise<void>;
  /** `notDrained`: nothing was changed, the node has to be planned, cordoned and drained again. */
  apply(): Promise<ApplyResult | 'notDrained'>;
  reboot(): Promise<void>;
  confirm(): Promise<ConfirmResult>;
  uncordon(): Promise<void>;
}

interface DrainState {
  cordoned: boolean;
  sliceSeconds: number;
  /** Epoch milliseconds of the first slice. */
  since: number | undefined;
  /** What the last slice met, told until the next one ends. */
  waiting: string | undefined;
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
  async function assign(intent: 'start' | 'continue', summary: string) {
    const grant = await control.assign.executeWithOptions({ summary }, [{ ...id, intent }]);
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
    pods: () => plan?.pods ?? 0,
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

/**
 * Cordons, then drains for one slice, cut short when the pool may want something else. Slices grow from the first to the
 * longest, so that a week of waiting stays a short history. True: nothing is left to evict.
 */
export async function drainSlice(run: NodeRun): Promise<boolean> {
  const { node } = run.id;
  const { drain } = run;
  const target = { ...run.id, target: run.target };
  if (!drain.cordoned) {
    run.progress.at('cordon', `Cordons ${node}`);
    await run.steps.cordon.executeWithOptions({ summary: `cordon ${node}` }, [target]);
    drain.cordoned = true;
  }
  drain.since ??= Date.now();
  run.progress.at('drain', drain.waiting ?? `Drains ${node} since ${clock(drain.since)}`);
  const result = await cuttable(run, () =>
    run.steps
      .drain(drain.sliceSeconds)
      .executeWithOptions({ summary: `drain ${node} (${run.pods()} pods)` }, [
        { ...target, sliceSeconds: drain.sliceSeconds },
      ]),
  );
  if (result === undefined) return false;
  if (!result.drained) {
    drain.waiting = blockedSentence(node, drain.since, result);
    run.progress.at('drain', drain.waiting);
  }
  drain.sliceSeconds = Math.min(drain.sliceSeconds * 2, run.input.tuning.drainMaxSliceSeconds);
  return result.drained;
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

/** Runs the update and tells its rollout how it ended, also when it failed or was cancelled. */
export async function announceEnd(run: NodeRun, update: () => Promise<UpdateNodeResult>): Promise<UpdateNodeResult> {
  const { pool, node } = run.id;
  const tell = (outcome: UpdateNodeResult['outcome']) =>
    CancellationScope.nonCancellable(async () => {
      try {
        const rollout = getExternalWorkflowHandle(rollOutPoolId(pool));
        await rollout.signal(settled, { node, runId: workflowInfo().runId, outcome });
      } catch {
        log.debug('No rollout is running to be told');
      }
    });
  try {
    const result = await update();
    await tell(result.outcome);
    return result;
  } catch (error) {
    await tell(isCancellation(error) ? 'cancelled' : 'degraded');
    throw error;
  }
}
