import { afterAll, beforeAll, expect, test } from 'vitest';
import { connectTemporal, TemporalEngine } from '../../client/temporal.js';
import { startLab, type Lab } from '../../dev/lab.js';
import { CONTROL_TASK_QUEUE, managePoolId, rollOutPoolId } from '../../workflows/contract/ids.js';
import { DEFAULT_TUNING } from '../../workflows/contract/inputs.js';

let lab: Lab;
let client: Awaited<ReturnType<typeof connectTemporal>>;
let engine: TemporalEngine;

beforeAll(async () => {
  lab = await startLab({ kubernetes: false });
  client = await connectTemporal({ environment: { TEMPORAL_ADDRESS: lab.temporal.address } });
  engine = new TemporalEngine(client, 2000);
});
afterAll(async () => {
  await engine.close();
  await lab.stop();
});

test('a pool that nobody looks after is seen as such, which is no problem', async () => {
  expect(await engine.view('nobodys')).toEqual({ manager: 'notRunning', rollout: 'notRunning' });
});

test('without a worker nobody says yes to a start, and the pool is looked after as soon as there is one', async () => {
  const input = { cluster: 'cluster-1', pool: 'twice', tuning: DEFAULT_TUNING };
  const nobody =
    /^start pool\/twice in Temporal namespace .*: no worker answered within 2 s; is the control worker running\?/;
  await expect(engine.startPool(input)).rejects.toMatchObject({ exit: 'unreachable' });
  const first = await client.workflow.getHandle(managePoolId('twice')).describe();
  await expect(engine.startPool(input)).rejects.toThrow(nobody);
  const handle = client.workflow.getHandle(managePoolId('twice'));
  expect((await handle.describe()).runId).toBe(first.runId);
  expect(await engine.view('twice')).toMatchObject({ manager: 'running', rollout: 'notRunning' });
});

test('without a worker the running rollout is seen, and why it says nothing', async () => {
  await client.workflow.start('rollOutPool', {
    workflowId: rollOutPoolId('silent'),
    taskQueue: CONTROL_TASK_QUEUE,
    args: [{}],
  });
  const view = await engine.view('silent');
  expect(view).toMatchObject({ manager: 'notRunning', rollout: 'running' });
  expect(view.status).toBeUndefined();
  expect(view.problem).toMatch(/^rollout\/silent does not say how far it is: .*is the control worker running\?$/);
  expect(await engine.nodeUpdates(['nobody'])).toEqual([]);
});

test('a Temporal that is not there is named in one line', async () => {
  const settings = { address: '127.0.0.1:1', environment: {} };
  await expect(connectTemporal(settings)).rejects.toMatchObject({ exit: 'unreachable' });
  await expect(connectTemporal(settings)).rejects.toThrow(/^Temporal at 127\.0\.0\.1:1 was not reached: .*\?$/);
});
