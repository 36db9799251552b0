import { WithStartWorkflowOperation, WorkflowNotFoundError, type Client } from '@temporalio/client';
import { CONTROL_TASK_QUEUE, managePoolId, rollOutPoolId } from '../../workflows/contract/ids.js';
import type { ManagePoolInput } from '../../workflows/contract/inputs.js';
import { lookNow, poolChanged, wake, type LookNowAnswer, type PoolChanged } from '../../workflows/contract/messages.js';
import { SEARCH_ATTRIBUTES } from '../../workflows/contract/search-attributes.js';

/** Memo of `pool/<pool>`: the cluster it looks after, so that a control worker of another one refuses to start. */
export const CLUSTER_MEMO = 'cluster';

/**
 * Tells `pool/<pool>` that something has changed, and starts it if it is not running. A hint: what is to be done is
 * read from Kubernetes by whoever hears it.
 */
export async function signalPool(client: Client, input: ManagePoolInput, what: PoolChanged['what']): Promise<void> {
  await client.workflow.signalWithStart('managePool', {
    ...startOf(input),
    signal: poolChanged,
    signalArgs: [{ what }],
  });
}

/**
 * Has `pool/<pool>` render and look at its nodes now, starts it if it is not running, and waits for its answer.
 *
 * @throws WorkflowUpdateFailedError with its reason when it refuses, and the client's errors, of the deadline too: there
 * is no answer without a control worker.
 */
export async function askPoolToLook(client: Client, input: ManagePoolInput): Promise<LookNowAnswer> {
  const { cluster, pool } = input;
  return client.workflow.executeUpdateWithStart(lookNow, {
    args: [{ cluster, pool }],
    startWorkflowOperation: new WithStartWorkflowOperation('managePool', {
      ...startOf(input),
      workflowIdConflictPolicy: 'USE_EXISTING',
    }),
  });
}

function startOf(input: ManagePoolInput) {
  return {
    workflowId: managePoolId(input.pool),
    taskQueue: CONTROL_TASK_QUEUE,
    args: [input],
    memo: { [CLUSTER_MEMO]: input.cluster },
    staticSummary: `looks after the pool ${input.pool}`,
    typedSearchAttributes: [{ key: SEARCH_ATTRIBUTES.pool, value: input.pool }],
  };
}

/** Wakes the pool's rollout; false: none is running. */
export async function wakeRollout(client: Client, pool: string): Promise<boolean> {
  try {
    await client.workflow.getHandle(rollOutPoolId(pool)).signal(wake);
    return true;
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return false;
    throw error;
  }
}
