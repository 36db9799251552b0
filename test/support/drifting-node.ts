import { onTestFinished, vi } from 'vitest';
import { applyPlan } from '../../activities/host/apply.js';
import { planUpdate } from '../../activities/host/plan.js';
import { KINDS, type KubernetesObject } from '../../activities/kubernetes/client.js';
import type { NodeDependencies } from '../../activities/node/dependencies.js';
import { startDriftMonitor, type DriftMonitor, type DriftPace } from '../../activities/node/drift.js';
import { createNodeEvents } from '../../activities/node/events.js';
import type { NodeMetrics } from '../../activities/node/metrics.js';
import { apiFlavour } from '../../machine-config/api/flavour.js';
import type { MachineConfig } from '../../machine-config/api/machine-config.js';
import { FakeCluster } from './fake-cluster.js';
import { fakeHost, rendered } from './fake-host.js';
import { PATIENCE } from './patience.js';

export const flavour = apiFlavour('openshift');
export const KEYS = flavour.annotations;

/** Most tests need not wait for storms to pass. */
const BRISK: DriftPace = { quiet: 10, longestQuiet: 50, rest: 10 };

export type EventObject = KubernetesObject & { type: string; reason: string; message: string; count: number };

/** A node that is Done on a config, and whatever a test lets happen to its disk. */
export async function driftingNode(ignition: object, spec: Partial<NonNullable<MachineConfig['spec']>> = {}) {
  const cluster = new FakeCluster();
  const fake = await fakeHost();
  const config = rendered('rendered-worker-1', ignition, spec);
  const { host, store } = fake;
  const bring = async (target: MachineConfig) => {
    const plan = await planUpdate({ host, store, current: await store.currentConfig(), target, sshUser: 'core' });
    return applyPlan({ host, store, plan, from: 'before', now: '2026-11-30T12:00:00.000Z' });
  };
  const done = (name: string) => ({ [KEYS.state]: 'Done', [KEYS.currentConfig]: name, [KEYS.desiredConfig]: name });
  await bring(config);
  await store.removeJournal();
  // The kernel arguments of the config become those of the running kernel.
  const bootId = await fake.boot();
  cluster.add(KINDS.node, { metadata: { name: 'n1', uid: 'uid-1', annotations: done(config.metadata.name) } });
  const client = cluster.as('system:node:n1');
  const drifts = new Map<string, number>();
  const metrics: NodeMetrics = {
    drift(items) {
      for (const key of drifts.keys()) drifts.set(key, 0);
      for (const { path, kind } of items) drifts.set(`${path} ${kind}`, 1);
    },
    written: () => undefined,
    looked: () => undefined,
    updateFailed: () => undefined,
    rebootFailed: () => undefined,
    drain: () => undefined,
    certificateProblems: () => undefined,
  };
  const now = () => new Date('2026-11-30T12:00:00Z');
  const deps: NodeDependencies = {
    node: 'n1',
    clusterUid: 'cluster-1',
    client,
    host,
    store,
    flavour,
    version: '0.1.0',
    now,
    hasItsName: () => true,
    irreconcilable: () => [],
    events: createNodeEvents({ client, node: 'n1', now }),
    metrics,
  };
  const logger = { info: vi.fn(), warn: vi.fn() };
  const ending = new AbortController();
  const node = {
    cluster,
    fake,
    deps,
    config,
    bootId,
    drifts,
    logger,
    bring,
    done,
    /** By default nothing but what is seen to change makes it look. */
    async monitor({
      scanSeconds = 0,
      pace = BRISK,
    }: { scanSeconds?: number; pace?: DriftPace } = {}): Promise<DriftMonitor> {
      const monitor = startDriftMonitor(deps, { scanSeconds, signal: ending.signal, logger, pace });
      onTestFinished(() => monitor.stop());
      await monitor.check();
      return monitor;
    },
    end: () => ending.abort(),
    annotations: () => cluster.peek(KINDS.node, 'n1')?.metadata.annotations ?? {},
    annotate: (annotations: Record<string, string | null>) =>
      cluster.patch(KINDS.node, { name: 'n1' }, { metadata: { annotations } }),
    async events() {
      await deps.events?.flushed();
      const events = await cluster.list<EventObject>(KINDS.event, { namespace: 'default' });
      return events.map(({ type, reason, message, count }) => ({ type, reason, message, count }));
    },
    /** Waits until the Node is Degraded with a reason in which all of these stand. */
    degraded: (...words: string[]) =>
      vi.waitFor(
        () => {
          const { [KEYS.state]: state, [KEYS.reason]: reason = '' } = node.annotations();
          const missing = words.filter((word) => !reason.includes(word));
          if (state !== 'Degraded' || missing.length > 0)
            throw new Error(`${state}: ${reason}, without ${missing.join(', ')}`);
          return reason;
        },
        { ...PATIENCE, interval: 10 },
      ),
    /** Waits until the Node is well. */
    recovered: () =>
      vi.waitFor(
        () => {
          const { [KEYS.state]: state, [KEYS.reason]: reason } = node.annotations();
          if (state !== 'Done' || reason !== '') throw new Error(`${state}: ${reason}`);
        },
        { ...PATIENCE, interval: 10 },
      ),
  };
  return node;
}
