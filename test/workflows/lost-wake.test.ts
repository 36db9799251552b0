import { Worker } from '@temporalio/worker';
import { TestWorkflowEnvironment } from '@temporalio/testing';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startLab, type Lab } from '../../dev/lab.js';
import type { Turn } from '../../machine-config/pool/turn.js';
import { CONTROL_TASK_QUEUE, rollOutPoolId } from '../../workflows/contract/ids.js';
import { wake } from '../../workflows/contract/messages.js';
import { Gate } from '../support/gate.js';
import { TEST_TUNING, workflowBundle } from '../support/workflow-lab.js';

const DONE: Turn = {
  start: [],
  cancel: [],
  reconsider: [],
  waiting: null,
  done: true,
  counts: { machines: 1, updated: 1, ready: 1, unavailable: 0, degraded: 0, unmanaged: 0 },
  target: 'rendered-woken-1',
  maxUnavailable: 1,
};

let lab: Lab;
let environment: TestWorkflowEnvironment;
beforeAll(async () => {
  lab = await startLab({ kubernetes: false });
  const { address, namespace } = lab.temporal;
  environment = await TestWorkflowEnvironment.createFromExistingServer({ address, namespace });
});
afterAll(async () => {
  await environment.teardown();
  await lab.stop();
});

it('a rollout that is woken while it ends takes another turn before it does', async () => {
  const ending = new Gate();
  const calls = { planTurn: 0, syncPool: 0 };
  const worker = await Worker.create({
    connection: environment.nativeConnection,
    namespace: lab.temporal.namespace,
    taskQueue: CONTROL_TASK_QUEUE,
    workflowBundle: await workflowBundle(),
    activities: {
      planTurn: () => {
        calls.planTurn += 1;
        return Promise.resolve(DONE);
      },
      // The first goes with the turn, the second is the last thing a rollout does.
      syncPool: async () => {
        calls.syncPool += 1;
        if (calls.syncPool === 2) await ending.wait();
        return { exists: true, needsRollout: false, target: DONE.target };
      },
    },
  });
  await worker.runUntil(async () => {
    const rollout = await environment.client.workflow.start('rollOutPool', {
      workflowId: rollOutPoolId('woken'),
      taskQueue: CONTROL_TASK_QUEUE,
      args: [{ cluster: 'cluster-1', pool: 'woken', tuning: TEST_TUNING }],
    });
    await ending.reached;
    await rollout.signal(wake);
    ending.open();
    await rollout.result();
  });
  expect(calls.planTurn).toBe(2);
});
