import { hostname } from 'node:os';
import { expect, test, vi } from 'vitest';
import { EnvironmentError, NODE_SETTINGS, parseEnvironment, SERVICE_SETTINGS } from '../../../workers/config.js';

vi.mock(import('node:os'), async (original) => ({ ...(await original()), hostname: () => 'Worker-7.Example.COM' }));

const base = { DRYDOCK_CLUSTER_UID: 'uid' };
const parse = (more: Record<string, string> = {}) => parseEnvironment(NODE_SETTINGS, { ...base, ...more });

test('only the uid of the cluster has to be said; the rest is the usual', () => {
  expect(hostname()).toBe('Worker-7.Example.COM');
  expect(parse()).toEqual({
    node: 'worker-7.example.com',
    nodeKubeconfig: undefined,
    root: '/',
    clusterUid: 'uid',
    sshAccount: undefined,
    osBackend: 'auto',
    metricsAddress: undefined,
    probationSeconds: 1200,
    selfUncordonSeconds: 300,
    idleCordonSeconds: 900,
    scanSeconds: 300,
  });
  expect(() => parseEnvironment(NODE_SETTINGS, {})).toThrow(EnvironmentError);
});

test('times are whole seconds, and 0 turns off what they are for', () => {
  expect(parse({ DRYDOCK_PROBATION_SECONDS: '0', DRYDOCK_SCAN_SECONDS: '60' })).toMatchObject({
    probationSeconds: 0,
    scanSeconds: 60,
  });
  for (const wrong of ['-1', '1.5', '5m', '1e3', ' ']) {
    expect(() => parse({ DRYDOCK_IDLE_CORDON_SECONDS: wrong })).toThrow(
      /DRYDOCK_IDLE_CORDON_SECONDS .*whole number of seconds/,
    );
  }
});

test('a backend that there is not is refused with the ones that there are', () => {
  expect(parse({ DRYDOCK_OS_BACKEND: 'rpm-ostree' }).osBackend).toBe('rpm-ostree');
  expect(() => parse({ DRYDOCK_OS_BACKEND: 'simulated' })).toThrow(/DRYDOCK_OS_BACKEND .*"auto".*"grubby"/);
});

test('what systemd says of the service is read, and its absence is no fault', () => {
  expect(parseEnvironment(SERVICE_SETTINGS, {})).toEqual({ notifySocket: undefined, watchdogMicroseconds: undefined });
  expect(parseEnvironment(SERVICE_SETTINGS, { NOTIFY_SOCKET: '@/n', WATCHDOG_USEC: '60000000' })).toEqual({
    notifySocket: '@/n',
    watchdogMicroseconds: 60_000_000,
  });
});
