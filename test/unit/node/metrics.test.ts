import type { MetricGauge, MetricMeter } from '@temporalio/common';
import { describe, expect, it } from 'vitest';
import { createNodeMetrics } from '../../../activities/node/metrics.js';
import { apiFlavour } from '../../../machine-config/api/flavour.js';

const flavour = apiFlavour('openshift');
const KEYS = flavour.annotations;

/** A meter that keeps the last value of every series, as an exporter shows it. */
function setUp() {
  const series = new Map<string, number>();
  const key = (name: string, labels: object) => `${name}${JSON.stringify(labels)}`;
  const meter = {
    createGauge: (name: string) =>
      ({ set: (value: number, labels: object = {}) => series.set(key(name, labels), value) }) as unknown as MetricGauge,
    createCounter: (name: string) => ({
      add: (value: number, labels: object = {}) =>
        series.set(key(name, labels), (series.get(key(name, labels)) ?? 0) + value),
    }),
  } as unknown as MetricMeter;
  return { metrics: createNodeMetrics(meter, flavour, 'n1'), value: (name: string, labels = {}) => series.get(key(name, labels)), series };
} // prettier-ignore

describe('metrics of a node', () => {
  it('name what has drifted, and read 0 when it is over', () => {
    const { metrics, value } = setUp();
    const item = (path: string) => ({ path, kind: 'mode' });
    metrics.drift([item('/etc/a'), item('/etc/b')]);
    metrics.drift([item('/etc/b')]);
    expect(value('drydock_node_drift', item('/etc/a'))).toBe(0);
    expect(value('drydock_node_drift', item('/etc/b'))).toBe(1);
    metrics.drift([]);
    expect(value('drydock_node_drift', item('/etc/b'))).toBe(0);
  });

  it('follow what is written on the Node: one state and one config', () => {
    const { metrics, value } = setUp();
    metrics.written({ [KEYS.state]: 'Working' });
    metrics.written({ [KEYS.state]: 'Done', [KEYS.currentConfig]: 'rendered-1', [KEYS.reason]: '' });
    metrics.written({ [KEYS.currentConfig]: 'rendered-2', 'drydock.dev/force': null });
    expect(value('drydock_node_state', { state: 'Working' })).toBe(0);
    expect(value('drydock_node_state', { state: 'Done' })).toBe(1);
    expect(value('drydock_node_state', { state: 'Degraded' })).toBe(0);
    expect(value('drydock_node_config', { config: 'rendered-1' })).toBe(0);
    expect(value('drydock_node_config', { config: 'rendered-2' })).toBe(1);
  });

  it('count failures, beginning with none', () => {
    const { metrics, value } = setUp();
    expect(value('drydock_node_reboots_failed_total')).toBe(0);
    metrics.rebootFailed();
    metrics.updateFailed('ApplyFailed');
    metrics.updateFailed('ApplyFailed');
    expect(value('drydock_node_reboots_failed_total')).toBe(1);
    expect(value('drydock_node_updates_failed_total', { code: 'ApplyFailed' })).toBe(2);
  });

  it('tell when the disk was compared last', () => {
    const { metrics, value } = setUp();
    metrics.looked(new Date('2026-11-30T12:00:00.900Z'));
    expect(value('drydock_node_drift_scan_timestamp_seconds')).toBe(Date.parse('2026-11-30T12:00:00Z') / 1_000);
  });
});
