import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { KINDS, type KubernetesObject } from '../../activities/kubernetes/client.js';
import { startPrometheus, type LabPrometheus } from '../../dev/prometheus.js';
import { Supervisor } from '../../dev/processes/supervisor.js';
import { readLabSettings } from '../../dev/settings.js';
import { ensurePrometheus } from '../../dev/tools/prometheus.js';
import type { Gate } from '../../machine-config/api/rollout-policy.js';
import type { Turn } from '../../machine-config/pool/turn.js';
import { TurnPlanner } from '../../activities/cluster/plan-turn.js';
import { Gates } from '../../activities/cluster/gates.js';
import type { RealCluster, RealControl } from '../support/real-cluster.js';

const POOL = 'gated';
const NODE = 'gated-a';
const NAMESPACE = 'gated-shop';
const LABELS = { app: 'gated' };
/** Of Deployments, and of an answer that is remembered for a while. */
const PATIENCE = { timeout: 60_000, interval: 500 };

export function describeGates(cluster: () => RealCluster, control: () => RealControl): void {
  describe('the gates of a rollout', () => {
    const gate = async (betweenNodes: Omit<Gate, 'name'>): Promise<void> => {
      const rollout = { gates: { betweenNodes: [{ name: 'it', ...betweenNodes }] } };
      await cluster().admin.patch(cluster().flavour.machineConfigPool, { name: POOL }, { spec: { rollout } });
      await control().caughtUp();
    };
    /** Answers are not remembered from one to the next. */
    const turn = (): Promise<Turn> => {
      const { dependencies } = control();
      const planner = new TurnPlanner(dependencies, new Gates(dependencies));
      return planner.planTurn({ cluster: cluster().uid, pool: POOL, inFlight: {}, resting: {}, now: Date.now() });
    };
    const closed = (words: RegExp) => ({
      start: [],
      waiting: { code: 'GateClosed', sentence: expect.stringMatching(words) as string },
    });
    const open = { start: [{ node: NODE }], waiting: null };

    beforeAll(async () => {
      const { admin } = cluster();
      await cluster().createPool(POOL);
      await cluster().createConfig(POOL, '50-gated', {});
      await cluster().createMembers(POOL, [{ name: NODE }]);
      await cluster().say(NODE, {});
      await control().activities.renderPool({ cluster: cluster().uid, pool: POOL });
      await admin.create(KINDS.namespace, { metadata: { name: NAMESPACE } });
    });

    test('ask for the condition of any kind of object, which the API server is asked for', async () => {
      const node = { apiVersion: 'v1', kind: 'Node', name: NODE, type: 'Ready' };
      await gate({ condition: { ...node, status: 'False' } });
      expect(await turn()).toMatchObject(closed(/Ready of Node gated-a must be False.*gated-a: True/));
      await gate({ condition: node });
      expect(await turn()).toMatchObject(open);
      await gate({ condition: { ...node, apiVersion: 'example.com/v1', kind: 'Widget' } });
      expect(await turn()).toMatchObject(closed(/the API server knows no Widget of example.com\/v1/));
      const selector = { matchLabels: { 'kubernetes.io/hostname': 'nowhere' } };
      await gate({ condition: { apiVersion: 'v1', kind: 'Node', type: 'Ready', selector } });
      expect(await turn()).toMatchObject(closed(/there is no Node with kubernetes.io\/hostname=nowhere/));
    });

    test('ask for Deployments, and for what owned the pods that were evicted', async () => {
      const { admin } = cluster();
      await gate({ available: { namespace: NAMESPACE, selector: { matchLabels: LABELS } } });
      expect(await turn()).toMatchObject(closed(/there is no Deployment with app=gated/));
      const place = { name: 'cart', namespace: NAMESPACE };
      const container = { name: 'cart', image: 'registry.example/cart' };
      const template = { metadata: { labels: LABELS }, spec: { containers: [container], nodeName: NODE } };
      const spec = { replicas: 2, selector: { matchLabels: LABELS }, strategy: { type: 'Recreate' }, template };
      await admin.create(KINDS.deployment, { metadata: { ...place, labels: LABELS }, spec } as KubernetesObject);
      await vi.waitFor(async () => expect(await turn()).toMatchObject(open), PATIENCE);
      // The old pods go, and the new ones never become ready.
      const never = { ...template, metadata: { labels: { ...LABELS, 'drydock.dev/lab-never-ready': '' } } };
      await admin.patch(KINDS.deployment, place, { spec: { template: never } });
      await vi.waitFor(async () => expect(await turn()).toMatchObject(closed(/gated-shop\/cart has 0 of 2/)), PATIENCE);
    });

    test('put the taint of waiting nodes beside those of others, and take it off', async () => {
      const { admin } = cluster();
      const foreign = { key: 'dedicated', value: 'shop', effect: 'PreferNoSchedule' };
      await admin.patch(KINDS.node, { name: NODE }, { spec: { taints: [foreign] } });
      await cluster().createMembers(POOL, [{ name: 'gated-b' }, { name: 'gated-c' }]);
      await cluster().say('gated-b', { current: (await cluster().pool(POOL)).spec.configuration?.name ?? '' });
      await cluster().say('gated-c', {});
      await gate({ nodeReady: { for: '0s' } });
      const { metadata } = await cluster().node('gated-c');
      const inFlight = { 'gated-c': metadata.uid ?? '' };
      const step = { cluster: cluster().uid, pool: POOL, resting: {}, now: Date.now() };
      const taints = async () => (await cluster().node(NODE)).spec?.taints;
      await control().activities.planTurn({ ...step, inFlight });
      expect(await taints()).toEqual([foreign, { key: 'UpdateInProgress', effect: 'PreferNoSchedule' }]);
      await admin.patch(cluster().flavour.machineConfigPool, { name: POOL }, { spec: { paused: true } });
      await control().caughtUp();
      await control().activities.planTurn({ ...step, inFlight: {} });
      expect(await taints()).toEqual([foreign]);
      await admin.patch(cluster().flavour.machineConfigPool, { name: POOL }, { spec: { paused: false } });
      for (const name of ['gated-b', 'gated-c']) await admin.delete(KINDS.node, { name });
      await control().caughtUp();
    });

    describe('of a real Prometheus', () => {
      let supervisor: Supervisor | undefined;
      let prometheus: LabPrometheus | undefined;
      let missing: string | undefined;
      beforeAll(async () => {
        const found = await ensurePrometheus(readLabSettings(), (line) => process.stderr.write(`[tools] ${line}\n`));
        missing = found.missing;
        if (found.program === undefined) return;
        supervisor = Supervisor.start(await mkdtemp(join(tmpdir(), 'drydock-prometheus-')), true);
        prometheus = await startPrometheus(supervisor, found.program);
      });
      afterAll(() => supervisor?.end());

      test('pass by what a query returns, and wait while the server is away', async (context) => {
        if (prometheus === undefined) return context.skip(missing);
        const { url, process: server } = prometheus;
        await gate({ prometheus: { url, query: 'up{job="prometheus"} == 0' } });
        expect(await turn()).toMatchObject(open);
        await gate({ prometheus: { url, query: 'up{job="prometheus"} == 1' } });
        expect(await turn()).toMatchObject(
          closed(/returns 1 series such as .*job="prometheus".* and shall return nothing/),
        );
        await gate({ prometheus: { url, query: 'up ==' } });
        expect(await turn()).toMatchObject(closed(/the query failed: .*parse error/));
        await gate({ prometheus: { url, query: 'up{job="prometheus"} == 1', passes: 'NotEmpty' } });
        expect(await turn()).toMatchObject(open);
        await server.kill();
        expect(await turn()).toMatchObject(closed(/could not be asked: .*ECONNREFUSED/));
        await server.restart();
        await prometheus.waitUntilReady();
        expect(await turn()).toMatchObject(open);
      });
    });
  });
}
