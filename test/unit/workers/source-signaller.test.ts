import type { Client } from '@temporalio/client';
import { pino } from 'pino';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { SourceSignaller } from '../../../workers/source-signaller.js';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function signallerOver(signalWithStart: () => Promise<unknown>) {
  const client = { workflow: { signalWithStart } } as unknown as Client;
  const tuning = { debounceSeconds: 1, turnSeconds: 1 };
  return new SourceSignaller({ client, cluster: 'c', tuning, logger: pino({ level: 'silent' }) });
}

it('sends one signal for a burst', async () => {
  const send = vi.fn(() => Promise.resolve());
  const signaller = signallerOver(send);
  for (let times = 0; times < 5; times += 1) signaller.hint('KubeletConfig');
  await vi.advanceTimersByTimeAsync(10_000);
  expect(send).toHaveBeenCalledExactlyOnceWith(
    'manageSources',
    expect.objectContaining({ workflowId: 'source/KubeletConfig', memo: { cluster: 'c' } }),
  );
});

it('sends again what was not taken, until it is stopped', async () => {
  const send = vi.fn(() => Promise.reject(new Error('away')));
  const signaller = signallerOver(send);
  signaller.hint('KubeletConfig');
  await vi.advanceTimersByTimeAsync(3_500);
  expect(send.mock.calls.length).toBeGreaterThan(1);
  signaller.stop();
  const sent = send.mock.calls.length;
  await vi.advanceTimersByTimeAsync(10_000);
  expect(send).toHaveBeenCalledTimes(sent);
});
