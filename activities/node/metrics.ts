import type { MetricMeter } from '@temporalio/common';
import type { ApiFlavour } from '../../machine-config/api/flavour.js';
import { NODE_STATES } from '../../machine-config/pool/facts.js';

/** What a node worker measures of its node. */
export interface NodeMetrics {
  /** All that differs from the config now; what is not named any more reads 0. */
  drift(items: readonly { readonly path: string; readonly kind: string }[]): void;
  /** Annotations that were written to the own Node, or read from it. */
  written(annotations: Readonly<Record<string, string | null | undefined>>): void;
  /** The disk was compared with the config as a whole. */
  looked(at: Date): void;
  /** An update failed, with a code of the contract. */
  updateFailed(code: string): void;
  /** A reboot that was asked for was refused or did not come. */
  rebootFailed(): void;
  /** What a drain waits for, and how long it has lasted; both 0 when there is none. */
  drain(drain: { readonly blocked: number; readonly seconds: number }): void;
  /** So many files cannot follow their Secret or ConfigMap now. */
  certificateProblems(count: number): void;
}

/** A value that is 1 for some labels; those for which it is over read 0, since a series cannot be taken back. */
class Flags<L extends Readonly<Record<string, string>>> {
  private readonly set: (value: number, labels: L) => void;
  private on = new Map<string, L>();

  constructor(set: (value: number, labels: L) => void) {
    this.set = set;
  }

  show(labels: readonly L[]): void {
    const next = new Map(labels.map((entry) => [JSON.stringify(entry), entry]));
    for (const [key, entry] of this.on) if (!next.has(key)) this.set(0, entry);
    for (const entry of next.values()) this.set(1, entry);
    this.on = next;
  }
}

/** Names and labels are documented in docs/operating.md. */
export function createNodeMetrics(meter: MetricMeter, flavour: ApiFlavour, node: string): NodeMetrics {
  const gauge = (name: string, unit: string, help: string) => meter.createGauge(name, 'int', unit, help);
  const driftGauge = gauge('drydock_node_drift', '', '1: the item at this path is not as the config of the node says');
  const stateGauge = gauge('drydock_node_state', '', '1 for the state that the Node is in, else 0');
  const configGauge = gauge('drydock_node_config', '', '1 for the rendered config that the node runs, else 0');
  const lookGauge = gauge(
    'drydock_node_drift_scan_timestamp_seconds',
    '',
    'When the disk was compared last, Unix time',
  );
  const blockedGauge = gauge('drydock_drain_blocked_pods', '', 'Pods that hold the drain of this node');
  const drainGauge = gauge('drydock_drain_seconds', '', 'For how long this node has been drained by now, else 0');
  const certificateGauge = gauge(
    'drydock_node_certificate_problems',
    '',
    'Files that cannot follow their Secret or ConfigMap now',
  );
  const failures = meter.createCounter('drydock_node_updates_failed_total', '', 'Failed updates, by code');
  const reboots = meter.createCounter('drydock_node_reboots_failed_total', '', 'Reboots refused or not made');
  const drift = new Flags<{ path: string; kind: string }>((value, labels) => driftGauge.set(value, labels));
  const config = new Flags<{ config: string }>((value, labels) => configGauge.set(value, labels));
  // An alert on the rise of a counter needs to have seen it before.
  reboots.add(0);
  const keys = flavour.annotations;
  return {
    drift: (items) => drift.show(items.map(({ path, kind }) => ({ path, kind }))),
    written(annotations) {
      const state = annotations[keys.state];
      if (state) for (const each of NODE_STATES) stateGauge.set(each === state ? 1 : 0, { state: each });
      const current = annotations[keys.currentConfig];
      if (current) config.show([{ config: current }]);
    },
    looked: (at) => lookGauge.set(Math.floor(at.getTime() / 1000)),
    updateFailed: (code) => failures.add(1, { code }),
    rebootFailed: () => reboots.add(1),
    certificateProblems: (count) => certificateGauge.set(count),
    drain({ blocked, seconds }) {
      blockedGauge.set(blocked, { node });
      drainGauge.set(seconds, { node });
    },
  };
}
