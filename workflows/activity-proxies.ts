import { ActivityCancellationType, proxyActivities, proxyLocalActivities } from '@temporalio/workflow';
import type { ControlActivities, NodeActivities } from './contract/activities.js';
import { CONTROL_TASK_QUEUE, nodeTaskQueue } from './contract/ids.js';
import type { NodeTuning } from './contract/inputs.js';

/*
 * The only place with proxyActivities: one proxy a kind of step, its reason beside it. Every one waits for the
 * cancellation to be acknowledged (the SDK's default does not), so that no step still works on a node whose update has
 * moved on. Which failures are worth another attempt is said by the activity (see contract/failure-codes.ts).
 */

const RETRY_WITHOUT_END = { initialInterval: '1s', backoffCoefficient: 2, maximumInterval: '30s' } as const;

const WAIT = ActivityCancellationType.WAIT_CANCELLATION_COMPLETED;

/** Reads and small idempotent writes on the control queue: the API server comes back, so they are tried for ever. */
export const control = proxyActivities<ControlActivities>({
  taskQueue: CONTROL_TASK_QUEUE,
  startToCloseTimeout: '30s',
  cancellationType: WAIT,
  retry: RETRY_WITHOUT_END,
});

/**
 * Questions that are asked often, are answered in milliseconds, and by whoever runs the workflow: the control worker has
 * the watches. With the workflow's own task, one costs the history a single event instead of six, and its input none. A
 * failed one is tried again by a timer of the history soon, so that an API server that stays away holds up no workflow
 * task.
 */
export const atOnce = proxyLocalActivities<Pick<ControlActivities, 'planTurn' | 'assign' | 'clearReboot'>>({
  startToCloseTimeout: '30s',
  localRetryThreshold: '2s',
  cancellationType: WAIT,
  retry: RETRY_WITHOUT_END,
});

/** Rendering, and generating, read every MachineConfig of a pool: slower, and bad input is an answer, not a failure. */
export const rendering = proxyActivities<Pick<ControlActivities, 'renderPool' | 'reconcileSources'>>({
  taskQueue: CONTROL_TASK_QUEUE,
  startToCloseTimeout: '2m',
  cancellationType: WAIT,
  retry: RETRY_WITHOUT_END,
});

/** Tidying up: a rollout waits for it, so it is not tried for long; the next render does what this one did not come to. */
export const tidying = proxyActivities<Pick<ControlActivities, 'collectRendered'>>({
  taskQueue: CONTROL_TASK_QUEUE,
  startToCloseTimeout: '30s',
  scheduleToCloseTimeout: '1m',
  cancellationType: WAIT,
  retry: { ...RETRY_WITHOUT_END, maximumAttempts: 3 },
});

/** Undoing a grant while an update ends: bounded, since the same is found and done again by the next turn. */
export const controlCleanUp = (tuning: NodeTuning) =>
  proxyActivities<Pick<ControlActivities, 'assign'>>({
    taskQueue: CONTROL_TASK_QUEUE,
    startToCloseTimeout: `${tuning.stepSeconds}s`,
    scheduleToCloseTimeout: `${tuning.cleanUpSeconds}s`,
    cancellationType: WAIT,
    retry: RETRY_WITHOUT_END,
  });

/**
 * The steps of one node, on the queue that only this node's worker polls.
 * A proxy costs nothing, so each update makes its own from the node's name and its tuning.
 */
export function nodeSteps(node: string, tuning: NodeTuning) {
  const taskQueue = nodeTaskQueue(node);
  const heartbeatTimeout = `${tuning.heartbeatSeconds}s`;
  const quick = { taskQueue, startToCloseTimeout: `${tuning.stepSeconds}s`, cancellationType: WAIT } as const;

  /** "Is this node's worker there?" The one step with schedule-to-start: it holds for every attempt and ends all retrying. */
  const present = proxyActivities<Pick<NodeActivities, 'prepare'>>({
    ...quick,
    scheduleToStartTimeout: `${tuning.workerPresentSeconds}s`,
    retry: RETRY_WITHOUT_END,
  });

  /** The worker may restart meanwhile: patient as long as with a reboot, then the node counts as unreachable. */
  const step = proxyActivities<Pick<NodeActivities, 'cordon' | 'reboot' | 'uncordon'>>({
    ...quick,
    scheduleToCloseTimeout: `${tuning.rebootLimitSeconds}s`,
    retry: RETRY_WITHOUT_END,
  });

  /** One slice of a drain; what blocks is a result, so an attempt fails only when its worker is lost. */
  const drain = (sliceSeconds: number) =>
    proxyActivities<Pick<NodeActivities, 'drain'>>({
      taskQueue,
      startToCloseTimeout: `${sliceSeconds + tuning.stepSeconds}s`,
      scheduleToCloseTimeout: `${sliceSeconds + tuning.rebootLimitSeconds}s`,
      heartbeatTimeout,
      cancellationType: WAIT,
      retry: RETRY_WITHOUT_END,
    }).drain;

  /** Writes the disk; the journal makes another attempt safe wherever the last one died. */
  const apply = proxyActivities<Pick<NodeActivities, 'apply'>>({
    taskQueue,
    startToCloseTimeout: `${tuning.applyLimitSeconds}s`,
    scheduleToCloseTimeout: `${tuning.applyLimitSeconds}s`,
    heartbeatTimeout,
    cancellationType: WAIT,
    retry: RETRY_WITHOUT_END,
  });

  /** Asks again until the node is back: no schedule-to-start, since nobody polls while it boots. Its limit is the reboot's. */
  const confirm = proxyActivities<Pick<NodeActivities, 'confirm'>>({
    ...quick,
    scheduleToCloseTimeout: `${tuning.rebootLimitSeconds}s`,
    retry: {
      initialInterval: `${tuning.confirmEverySeconds}s`,
      backoffCoefficient: 1,
      maximumInterval: `${tuning.confirmEverySeconds}s`,
    },
  });

  /** Clean-up of an update that ends early: bounded; a cordon that stays is found and lifted by the next update. */
  const cleanUp = proxyActivities<Pick<NodeActivities, 'release'>>({
    ...quick,
    scheduleToCloseTimeout: `${tuning.cleanUpSeconds}s`,
    retry: RETRY_WITHOUT_END,
  });

  return {
    prepare: present.prepare,
    cordon: step.cordon,
    drain,
    apply: apply.apply,
    reboot: step.reboot,
    confirm: confirm.confirm,
    uncordon: step.uncordon,
    release: cleanUp.release,
  };
}
