import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Turn } from '../../machine-config/pool/turn.js';
import { wake } from '../../workflows/contract/messages.js';
import { BareTemporal } from '../support/bare-temporal.js';
import { Gate } from '../support/gate.js';

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

let temporal: BareTemporal;
beforeAll(async () => {
  temporal = await BareTemporal.start();
});
afterAll(() => temporal.stop());

it('a rollout that is woken while it ends takes another turn before it does', async () => {
  const ending = new Gate();
  const calls = { planTurn: 0, syncPool: 0 };
  const worker = await temporal.controlWorker({
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
  });
  await worker.runUntil(async () => {
    const rollout = await temporal.startRollout('woken');
    await ending.reached;
    await rollout.signal(wake);
    ending.open();
    await rollout.result();
  });
  expect(calls.planTurn).toBe(2);
});
