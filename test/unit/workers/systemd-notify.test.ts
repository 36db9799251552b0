import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { ProgramFailed, type RunProgram } from '../../../activities/host/run-program.js';
import { notifyServiceManager } from '../../../workers/systemd-notify.js';

let sent: string[];
let errors: unknown[];
let clock: number;

const run: RunProgram = (program, args, options) => {
  sent.push(`${program} ${args.join(' ')} → ${options?.environment?.NOTIFY_SOCKET ?? ''}`);
  return Promise.resolve({ code: 0, stdout: '', stderr: '' });
};
const onError = (error: unknown) => void errors.push(error);

beforeEach(() => {
  sent = [];
  errors = [];
  clock = 0;
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  vi.spyOn(performance, 'now').mockImplementation(() => clock);
});
afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

/** The event loop comes round this much later. */
function pass(milliseconds: number, times = 1): void {
  for (let time = 0; time < times; time++) {
    clock += milliseconds;
    vi.advanceTimersToNextTimer();
  }
}

test('systemd hears that the service is ready, what it waits for, and that it ends', async () => {
  const manager = notifyServiceManager({ socket: '/run/systemd/notify', run, onError });
  await manager.ready();
  await manager.status('waits for\nTemporal');
  await manager.stopping();
  expect(sent).toEqual([
    'systemd-notify READY=1 → /run/systemd/notify',
    'systemd-notify STATUS=waits for Temporal → /run/systemd/notify',
    'systemd-notify STOPPING=1 → /run/systemd/notify',
  ]);
});

test('without a service manager nothing is run', async () => {
  const manager = notifyServiceManager({ watchdogMicroseconds: 3_000_000, run, onError });
  await manager.ready();
  await manager.stopping();
  manager.close();
  expect(sent).toEqual([]);
  expect(vi.getTimerCount()).toBe(0);
});

test('three signs of life come in each period of the watchdog', () => {
  const manager = notifyServiceManager({ socket: '/s', watchdogMicroseconds: 60_000_000, run, onError });
  pass(20_000, 3);
  expect(sent).toEqual(Array.from({ length: 3 }, () => 'systemd-notify WATCHDOG=1 → /s'));
  manager.close();
  expect(vi.getTimerCount()).toBe(0);
});

test('an event loop that only just crawls gives no sign of life, until it is on time again', () => {
  notifyServiceManager({ socket: '/s', watchdogMicroseconds: 60_000_000, run, onError });
  pass(45_000, 3);
  expect(sent).toEqual([]);
  pass(20_000);
  expect(sent).toHaveLength(1);
});

test('a message that does not get out is told and harms nothing', async () => {
  const failing: RunProgram[] = [
    () => Promise.reject(new ProgramFailed('systemd-notify: this host has no such program', { isMissing: true })),
    () => Promise.resolve({ code: 1, stdout: '', stderr: '' }),
  ];
  for (const broken of failing) await notifyServiceManager({ socket: '/s', run: broken, onError }).ready();
  expect(errors.map(String)).toEqual([
    'ProgramFailed: systemd-notify: this host has no such program',
    'Error: systemd-notify: ended with exit code 1',
  ]);
});
