import { ApplicationFailure, WorkflowExecutionAlreadyStartedError } from '@temporalio/common';
import {
  ChildWorkflowCancellationType,
  condition,
  continueAsNew,
  executeChild,
  getExternalWorkflowHandle,
  log,
  ParentClosePolicy,
  setCurrentDetails,
  setHandler,
  sleep,
  startChild,
} from '@temporalio/workflow';
import { control } from './activity-proxies.js';
import type { SyncPoolResult } from './contract/activities.js';
import type { FailureCode } from './contract/failure-codes.js';
import { renderPoolId, rollOutPoolId } from './contract/ids.js';
import type { ManagePoolInput, RollOutPoolInput } from './contract/inputs.js';
import { lookNow, poolChanged, wake } from './contract/messages.js';
import { SEARCH_ATTRIBUTES } from './contract/search-attributes.js';
import { historyIsFull } from './history.js';
import { refusalToLook, willLook } from './look-now.js';
import { shortConfigName } from './progress.js';
import { renderPool } from './render-pool.js';
import { rollOutPool } from './roll-out-pool.js';

/**
 * Looks after one pool for as long as it exists: renders when its configs change, and sees to it that a rollout runs
 * whenever one has something to do. Started and told of changes by signal-with-start; lost signals are made good by the
 * next one, since every control worker repeats it.
 */
export async function managePool(input: ManagePoolInput): Promise<void> {
  const { cluster, pool, tuning } = input;
  let configChanged = true;
  let nodesChanged = true;
  let seen: SyncPoolResult | undefined;
  setHandler(
    poolChanged,
    ({ what }) => {
      if (what === 'config') configChanged = true;
      else nodesChanged = true;
    },
    { description: 'Configs or nodes of the pool have changed: look again' },
  );
  setHandler(
    lookNow,
    () => {
      configChanged = true;
      return willLook(input, seen);
    },
    {
      description: 'Render the pool and look at its nodes now',
      validator(request) {
        const refusal = refusalToLook(request, input, seen);
        if (refusal !== undefined) throw ApplicationFailure.nonRetryable(refusal, 'Refused' satisfies FailureCode);
      },
    },
  );

  for (;;) {
    await condition(() => configChanged || nodesChanged);
    if (configChanged) {
      await sleep(tuning.debounceSeconds * 1000, { summary: 'more changes may come' });
      configChanged = false;
      if (!(await render(input))) configChanged = true;
    }
    nodesChanged = false;
    const state = await control.syncPool.executeWithOptions({ summary: `status of ${pool}` }, [{ cluster, pool }]);
    seen = state;
    if (!state.exists) return;
    setCurrentDetails(sentenceOf(pool, state));
    if (state.needsRollout) await ensureRollout(input, state);
    if (historyIsFull(tuning.maxEvents) && !configChanged) {
      await continueAsNew<typeof managePool>(input);
    }
    await sleep(tuning.turnSeconds * 1000, { summary: 'at most one look in this time' });
  }
}

/** False: a render of somebody else is running; ours is to be done after it. */
async function render({ cluster, pool }: ManagePoolInput): Promise<boolean> {
  try {
    await executeChild(renderPool, {
      workflowId: renderPoolId(pool),
      args: [{ cluster, pool }],
      parentClosePolicy: ParentClosePolicy.REQUEST_CANCEL,
      cancellationType: ChildWorkflowCancellationType.WAIT_CANCELLATION_COMPLETED,
      staticSummary: `render ${pool}`,
      typedSearchAttributes: [{ key: SEARCH_ATTRIBUTES.pool, value: pool }],
    });
    return true;
  } catch (error) {
    if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error;
    return false;
  }
}

/** A running rollout is woken, otherwise one is started; it outlives this run and continues as new by itself. */
async function ensureRollout(input: ManagePoolInput, state: SyncPoolResult): Promise<void> {
  const { cluster, pool, tuning } = input;
  const rollout: RollOutPoolInput = { cluster, pool, tuning };
  try {
    await startChild(rollOutPool, {
      workflowId: rollOutPoolId(pool),
      args: [rollout],
      parentClosePolicy: ParentClosePolicy.ABANDON,
      cancellationType: ChildWorkflowCancellationType.ABANDON,
      staticSummary: `roll ${pool} out to ${shortConfigName(state.target ?? 'nothing')}`,
      typedSearchAttributes: [
        { key: SEARCH_ATTRIBUTES.pool, value: pool },
        ...(state.target === null ? [] : [{ key: SEARCH_ATTRIBUTES.rendered, value: state.target }]),
      ],
    });
  } catch (error) {
    if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error;
    try {
      await getExternalWorkflowHandle(rollOutPoolId(pool)).signal(wake);
    } catch {
      log.info('The rollout ended just now; the next look will find what is left to do');
    }
  }
}

function sentenceOf(pool: string, state: SyncPoolResult): string {
  if (state.target === null) return `The pool ${pool} has no rendered config yet`;
  return state.needsRollout ? `Rolling out ${state.target}` : `Every node of ${pool} runs ${state.target}`;
}
