import { beforeEach, describe, expect, it } from 'vitest';
import type { MachineConfigurationResource } from '../../../activities/cluster/control-dependencies.js';
import { StopSwitch, stopReason } from '../../../activities/cluster/stop-switch.js';
import { apiFlavour, DRYDOCK_ANNOTATIONS } from '../../../machine-config/api/flavour.js';
import { FakeCluster } from '../../support/fake-cluster.js';

const flavour = apiFlavour('openshift');
const NOW = Date.parse('2026-03-01T12:00:00Z');

let cluster: FakeCluster;
let now: number;
let calls: number;
/** What a watch shows, and when it was heard of; absent: there is no watch. */
let watch: { stop: string | undefined; heardAt: number } | undefined;

beforeEach(() => {
  cluster = new FakeCluster();
  now = NOW;
  calls = 0;
  watch = undefined;
  cluster.intercept(() => void (calls += 1));
});

const configuration = (stop: string | undefined): MachineConfigurationResource => ({
  metadata: { name: 'cluster', annotations: stop === undefined ? {} : { [DRYDOCK_ANNOTATIONS.stop]: stop } },
  spec: {},
});
const says = (stop: string | undefined) => cluster.add(flavour.machineConfiguration, configuration(stop));
function open(): StopSwitch {
  const configurations = watch && {
    list: () => [configuration(watch?.stop)],
    get: () => configuration(watch?.stop),
    freshness: () => ({ version: '1', heardAt: watch?.heardAt ?? 0 }),
  };
  return new StopSwitch({ client: cluster, flavour, now: () => now, ...(configurations && { configurations }) });
}
const reason = async (found: StopSwitch) => stopReason(await found.configuration());

describe('the switch that stops everything', () => {
  it('is taken from a watch that was heard of lately, without a call', async () => {
    says('read');
    watch = { stop: 'watched', heardAt: NOW - 75_000 };
    expect([await reason(open()), calls]).toEqual(['watched', 0]);
  });

  it('is read where the watch has been silent for too long, and where there is none', async () => {
    says('read');
    watch = { stop: undefined, heardAt: NOW - 75_001 };
    expect(await reason(open())).toBe('read');
    watch = undefined;
    expect([await reason(open()), calls]).toEqual(['read', 2]);
  });

  it('is read past the watch before a reboot', async () => {
    says('read');
    watch = { stop: undefined, heardAt: NOW };
    expect(stopReason(await open().live())).toBe('read');
  });

  it('is read past the watch once for all who reboot within a second', async () => {
    const found = open();
    await Promise.all([found.live(), found.live()]);
    says('stopped');
    now += 999;
    expect([stopReason(await found.live()), calls]).toEqual([undefined, 1]);
    now += 1;
    expect([stopReason(await found.live()), calls]).toEqual(['stopped', 2]);
  });

  it('is read once for all who ask within two seconds', async () => {
    const found = open();
    expect(await Promise.all([reason(found), reason(found)])).toEqual([undefined, undefined]);
    says('stopped');
    now += 1_999;
    expect([await reason(found), calls]).toEqual([undefined, 1]);
    now += 1;
    expect([await reason(found), calls]).toEqual(['stopped', 2]);
  });

  it('is read again at once when it could not be', async () => {
    says('stopped');
    const found = open();
    cluster.failNext({ verb: 'get', kind: 'MachineConfiguration' });
    await expect(reason(found)).rejects.toThrow('injected fault');
    expect(await reason(found)).toBe('stopped');
  });

  it('is off where the annotation is empty, or nobody has made the object', async () => {
    expect(await reason(open())).toBeUndefined();
    says('');
    expect(await reason(open())).toBeUndefined();
  });
});
