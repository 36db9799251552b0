import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Grant, Turn } from '../../machine-config/pool/turn.js';
import type { AssignInput } from '../../workflows/contract/activities.js';
import { updateNodeId } from '../../workflows/contract/ids.js';
import { wake } from '../../workflows/contract/messages.js';
import { BareTemporal } from '../support/bare-temporal.js';
import { Gate } from '../support/gate.js';

const TARGET = 'rendered-torn-2';
const CURRENT = 'rendered-torn-1';
const START = { node: 'torn-n1', nodeUid: 'uid-1', target: TARGET, current: CURRENT };
const turn = (start: Turn['start']): Turn => ({
  start,
  cancel: [],
  reconsider: [],
  waiting: null,
  done: false,
  counts: { machines: 2, updated: 0, ready: 2, unavailable: 1, degraded: 0, unmanaged: 0 },
  target: TARGET,
  maxUnavailable: 2,
});

let temporal: BareTemporal;
beforeAll(async () => {
  temporal = await BareTemporal.start();
});
afterAll(() => temporal.stop());

it('a rollout that is cancelled in the middle of a turn cancels its updates, and starts no more', async () => {
  const slot = new Gate();
  const secondTurn = new Gate();
  let turns = 0;
  const intents: string[] = [];
  const worker = await temporal.controlWorker({
    planTurn: async () => {
      turns += 1;
      if (turns === 1) return turn([START]);
      await secondTurn.wait();
      return turn([{ ...START, node: 'torn-n2', nodeUid: 'uid-2' }]);
    },
    syncPool: () => Promise.resolve({ exists: true, needsRollout: true, target: TARGET }),
    assign: async ({ intent }: AssignInput): Promise<Grant> => {
      intents.push(intent);
      if (intent === 'start') await slot.wait();
      return { outcome: 'granted', target: TARGET, current: CURRENT };
    },
  });
  await worker.runUntil(async () => {
    const { client } = temporal;
    const rollout = await temporal.startRollout('torn');
    await slot.reached;
    await rollout.signal(wake);
    await secondTurn.reached;
    await rollout.cancel();
    // Answered only when the cancellation before it has been taken in.
    await rollout.query('rolloutStatus');
    secondTurn.open();
    slot.open();
    expect(await client.workflow.getHandle(updateNodeId('torn-n1')).result()).toMatchObject({ outcome: 'cancelled' });
    await expect(rollout.result()).rejects.toThrow('Workflow execution cancelled');
    await expect(client.workflow.getHandle(updateNodeId('torn-n2')).describe()).rejects.toThrow('not found');
  });
  expect(intents).toEqual(['start', 'withdraw']);
});
