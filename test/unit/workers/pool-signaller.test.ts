import { WorkflowNotFoundError, type Client } from '@temporalio/client';
import pino from 'pino';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { PoolSignaller } from '../../../workers/pool-signaller.js';
import { DEFAULT_TUNING } from '../../../workflows/contract/inputs.js';

let sent: string[];
let rollouts: Set<string>;
let isAway: boolean;

/** What a client sends, as `wake rollout/worker` or `config pool/worker`. */
function fakeClient(): Client {
  const send = (id: string, what: string) => {
    if (isAway) return Promise.reject(new Error('no connection'));
    sent.push(`${what} ${id}`);
    return Promise.resolve();
  };
  const workflow = {
    getHandle: (id: string) => ({
      signal: () =>
        rollouts.has(id) || isAway
          ? send(id, 'wake')
          : Promise.reject(new WorkflowNotFoundError('workflow not found', id, undefined)),
    }),
    signalWithStart: (_type: string, options: { workflowId: string; signalArgs: [{ what: string }] }) =>
      send(options.workflowId, options.signalArgs[0].what),
  };
  return { workflow } as unknown as Client;
}

function signaller(): PoolSignaller {
  const logger = pino({ level: 'silent' });
  return new PoolSignaller({ client: fakeClient(), cluster: 'cluster-1', tuning: DEFAULT_TUNING, logger });
}

beforeEach(() => {
  vi.useFakeTimers();
  sent = [];
  rollouts = new Set(['rollout/worker']);
  isAway = false;
});
afterEach(() => vi.useRealTimers());

it('sends one signal a pool in a second, the most urgent one', async () => {
  const hints = signaller();
  hints.hint([
    { pool: 'worker', what: 'nodes' },
    { pool: 'infra', what: 'nodes' },
  ]);
  hints.hint([{ pool: 'worker', what: 'config' }]);
  hints.hint([{ pool: 'worker', what: 'progress' }]);
  await vi.advanceTimersByTimeAsync(999);
  expect(sent).toEqual([]);
  await vi.advanceTimersByTimeAsync(1);
  expect(sent.sort()).toEqual(['config pool/worker', 'nodes pool/infra']);
});

it('tells of the progress of running updates once in five seconds, and not behind other news', async () => {
  const hints = signaller();
  for (let second = 0; second < 10; second += 1) {
    hints.hint([{ pool: 'worker', what: 'progress' }]);
    await vi.advanceTimersByTimeAsync(1000);
  }
  expect(sent).toEqual(['wake rollout/worker', 'wake rollout/worker']);
  hints.hint([{ pool: 'worker', what: 'progress' }]);
  hints.hint([{ pool: 'worker', what: 'nodes' }]);
  await vi.advanceTimersByTimeAsync(1000);
  expect(sent).toHaveLength(3);
});

it('sends again what Temporal did not take', async () => {
  isAway = true;
  const hints = signaller();
  hints.hint([{ pool: 'worker', what: 'progress' }]);
  await vi.advanceTimersByTimeAsync(5000);
  isAway = false;
  await vi.advanceTimersByTimeAsync(5000);
  expect(sent).toEqual(['wake rollout/worker']);
  hints.hint([{ pool: 'worker', what: 'nodes' }]);
  hints.stop();
  await vi.advanceTimersByTimeAsync(60_000);
  expect(sent).toHaveLength(1);
});
