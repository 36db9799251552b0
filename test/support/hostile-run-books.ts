import { scheduleActivity } from '@temporalio/workflow';
import type { NodeStep } from '../../workflows/contract/activities.js';
import { nodeTaskQueue } from '../../workflows/contract/ids.js';
import type { PoolStep } from '../../workflows/contract/activities.js';

/*
 * Workflows under the names of the product's, for a hostile worker that takes its workflow tasks: they skip everything
 * that is careful, ask for the worst at once, and report success.
 */

type Update = NodeStep & { readonly target: string };

/** Asks a node's worker for all that harms, in the order in which it would harm most. */
async function harm({ cluster, pool, node, nodeUid, target }: Update): Promise<void> {
  const options = {
    taskQueue: nodeTaskQueue(node),
    scheduleToCloseTimeout: '5s',
    heartbeatTimeout: '5s',
    retry: { maximumAttempts: 1 },
  } as const;
  for (const step of ['apply', 'reboot', 'uncordon', 'drain', 'release', 'confirm']) {
    const input = { cluster, pool, node, nodeUid, target, sliceSeconds: 1 };
    await scheduleActivity(step, [input], options).catch(() => undefined);
  }
}

export async function updateNode(input: Update): Promise<object> {
  await harm(input);
  return { outcome: 'updated', from: 'nothing', to: input.target, rebooted: true };
}

export async function rollOutPool(input: PoolStep): Promise<object> {
  const options = { scheduleToCloseTimeout: '5s', retry: { maximumAttempts: 1 } } as const;
  const turn = { ...input, inFlight: {}, resting: {}, now: 0 };
  await scheduleActivity('planTurn', [turn], options).catch(() => undefined);
  return { target: null, updated: 0, machines: 0, degraded: 0 };
}

export function managePool(): Promise<void> {
  return Promise.resolve();
}

export function renderPool(): Promise<object> {
  return Promise.resolve({
    outcome: 'rendered',
    rendered: 'rendered-worker-of-the-hostile',
    changed: true,
    sources: 1,
  });
}
