import type { Client } from '@temporalio/client';
import { CONTROL_TASK_QUEUE, manageSourcesId } from '../../workflows/contract/ids.js';
import type { ManageSourcesInput } from '../../workflows/contract/inputs.js';
import { sourcesChanged } from '../../workflows/contract/messages.js';
import { CLUSTER_MEMO } from './signal-pool.js';

/** Tells `source/<kind>` that something has changed, and starts it if it is not running. A hint. */
export async function signalSources(client: Client, input: ManageSourcesInput): Promise<void> {
  await client.workflow.signalWithStart('manageSources', {
    workflowId: manageSourcesId(input.kind),
    taskQueue: CONTROL_TASK_QUEUE,
    args: [input],
    signal: sourcesChanged,
    memo: { [CLUSTER_MEMO]: input.cluster },
    staticSummary: `generates MachineConfigs from every ${input.kind}`,
  });
}
