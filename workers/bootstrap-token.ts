import type { Client } from '@temporalio/client';
import type { Logger } from 'pino';
import { bootstrapTokenSecrets } from '../activities/cluster/bootstrap-token.js';
import { CLUSTER_MEMO } from '../activities/cluster/signal-pool.js';
import type { KubernetesClient } from '../activities/kubernetes/client.js';
import { CONTROL_TASK_QUEUE, KEEP_BOOTSTRAP_TOKEN_ID } from '../workflows/contract/ids.js';

interface BootstrapTokenOptions {
  readonly kubernetes: KubernetesClient;
  readonly temporal: Client;
  readonly cluster: string;
  readonly logger: Logger;
}

/**
 * Starts what renews the bootstrap token, where machines may boot from the Ignition server and it does not run yet.
 * Never rejects: every control worker does this again and again.
 */
export async function ensureBootstrapTokenKept(options: BootstrapTokenOptions): Promise<void> {
  const { kubernetes, temporal, cluster, logger } = options;
  try {
    if ((await bootstrapTokenSecrets(kubernetes)) === undefined) return;
    await temporal.workflow.start('keepBootstrapToken', {
      workflowId: KEEP_BOOTSTRAP_TOKEN_ID,
      workflowIdConflictPolicy: 'USE_EXISTING',
      taskQueue: CONTROL_TASK_QUEUE,
      args: [{ cluster }],
      memo: { [CLUSTER_MEMO]: cluster },
      staticSummary: 'renews the token with which new machines join',
    });
  } catch (err) {
    logger.warn({ err }, 'What renews the bootstrap token could not be started; it is tried again');
  }
}
