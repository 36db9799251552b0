import { fileURLToPath } from 'node:url';
import { Client, Connection } from '@temporalio/client';
import { DefaultLogger, NativeConnection, Runtime, Worker } from '@temporalio/worker';
import { CONTROL_TASK_QUEUE, nodeTaskQueue, rollOutPoolId } from '../../../workflows/contract/ids.js';
import { DEFAULT_TUNING, type RollOutPoolInput } from '../../../workflows/contract/inputs.js';
import { SEARCH_ATTRIBUTES } from '../../../workflows/contract/search-attributes.js';
import type { LabTemporal } from '../../temporal.js';
import type { Log } from '../../tools/cache.js';
import { readHistories, type Histories } from './histories.js';
import type { RolloutBenchOptions } from './options.js';
import { PlayedPool } from './played-pool.js';

const POOL = 'floor';
const WORKFLOWS = fileURLToPath(new URL('../../../workflows/index.ts', import.meta.url));

/**
 * What the workflows alone cost: the same workflows on the same server with one queue a node, where nothing is done in
 * the activities but to wait for the step. No engine built on these workflows can be faster.
 */
export async function measureFloor(
  temporal: Pick<LabTemporal, 'address' | 'namespace'>,
  options: RolloutBenchOptions,
  log: Log,
): Promise<Histories> {
  Runtime.install({ logger: new DefaultLogger('ERROR') });
  const { address, namespace } = temporal;
  const connection = await NativeConnection.connect({ address });
  const forClient = await Connection.connect({ address });
  const client = new Client({ connection: forClient, namespace });
  const pool = new PlayedPool(POOL, options);
  const workers = await Promise.all([
    Worker.create({
      connection,
      namespace,
      taskQueue: CONTROL_TASK_QUEUE,
      workflowsPath: WORKFLOWS,
      activities: pool.control(),
    }),
    ...pool.names.map((name) =>
      Worker.create({
        connection,
        namespace,
        taskQueue: nodeTaskQueue(name),
        activities: pool.node(name),
        maxConcurrentActivityTaskExecutions: 2,
        maxConcurrentActivityTaskPolls: 1,
      }),
    ),
  ]);
  const ended = workers.map((worker) => worker.run());
  const since = Date.now();
  try {
    log(`floor: ${options.nodes} nodes with nothing to do but to wait`);
    const input: RollOutPoolInput = { cluster: POOL, pool: POOL, tuning: DEFAULT_TUNING };
    await client.workflow.execute('rollOutPool', {
      workflowId: rollOutPoolId(POOL),
      taskQueue: CONTROL_TASK_QUEUE,
      args: [input],
      typedSearchAttributes: [{ key: SEARCH_ATTRIBUTES.pool, value: POOL }],
    });
    return await readHistories({ client, pool: POOL, nodes: options.nodes, since });
  } finally {
    for (const worker of workers) worker.shutdown();
    await Promise.all(ended);
    await forClient.close();
    await connection.close();
  }
}
