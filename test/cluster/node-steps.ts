import { MockActivityEnvironment } from '@temporalio/testing';
import { DefaultLogger } from '@temporalio/worker';
import { beforeAll, describe, expect, test, vi } from 'vitest';
import { createNodeActivities } from '../../activities/node/activities.js';
import type { NodeDependencies } from '../../activities/node/dependencies.js';
import { irreconcilable } from '../../activities/node/irreconcilable.js';
import { registerNode } from '../../activities/node/register.js';
import { KINDS, type KubernetesObject, type ObjectName } from '../../activities/kubernetes/client.js';
import { DRYDOCK_ANNOTATIONS, type ResourceKind } from '../../machine-config/api/flavour.js';
import type { RolloutPolicy } from '../../machine-config/api/rollout-policy.js';
import { verifyRenderedName } from '../../machine-config/render/name.js';
import type { DrainInput, NodeActivities } from '../../workflows/contract/activities.js';
import { POD_DISRUPTION_BUDGET } from '../support/fake-cluster.js';
import { fakeHost } from '../support/fake-host.js';
import type { RealCluster, RealControl } from '../support/real-cluster.js';
import { PATIENCE } from '../support/patience.js';

const POOL = 'draining';
const NAMESPACE = 'shop';
const HOSTNAME = 'kubernetes.io/hostname';
const workload = (group: string, plural: string, kind: string): ResourceKind => ({
  group,
  version: 'v1',
  plural,
  kind,
  namespaced: true,
});
const DEPLOYMENT = workload('apps', 'deployments', 'Deployment');
const DAEMON_SET = workload('apps', 'daemonsets', 'DaemonSet');
const JOB = workload('batch', 'jobs', 'Job');

type AnyObject = KubernetesObject & { spec?: object };
type Pod = KubernetesObject & {
  spec?: { nodeName?: string };
  status?: { phase?: string; conditions?: { type: string; status: string }[] };
};
type Budget = KubernetesObject & {
  status?: { observedGeneration?: number; currentHealthy?: number; disruptionsAllowed?: number };
};

export function describeNodeSteps(cluster: () => RealCluster, control: () => RealControl): void {
  describe('the steps of a node, with its own identity', () => {
    const waitFor = <T>(condition: () => Promise<T>) => vi.waitFor(condition, { ...PATIENCE, interval: 100 });
    const named = (name: string) => ({ name, namespace: NAMESPACE });
    const template = (labels: Record<string, string>, spec: object = {}) => ({
      metadata: { labels },
      spec: { containers: [{ name: 'main', image: 'none' }], terminationGracePeriodSeconds: 1, ...spec },
    });
    const create = (resource: ResourceKind, name: string, spec: object) =>
      cluster().admin.create<AnyObject>(resource, { metadata: named(name), spec });
    const podsOf = async (app: string) =>
      (await cluster().admin.list<Pod>(KINDS.pod, { namespace: NAMESPACE, labelSelector: `app=${app}` })).filter(
        ({ metadata }) => metadata.deletionTimestamp === undefined,
      );
    const isReady = ({ status }: Pod) =>
      status?.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True') === true;
    const podIn = (app: string, phase: string, nodeName: string) =>
      waitFor(async () => {
        const pods = await podsOf(app);
        expect(pods).toMatchObject([{ spec: { nodeName }, status: { phase } }]);
        return pods[0]!;
      });
    const budgetAllows = (name: string, disruptionsAllowed: number) =>
      waitFor(async () =>
        expect((await cluster().admin.get<Budget>(POD_DISRUPTION_BUDGET, named(name))).status).toMatchObject({
          observedGeneration: 1,
          disruptionsAllowed,
        }),
      );

    /** A member of the pool with a machine of its own, registered and granted the pool's config. */
    async function grantedNode(name: string, beforeGrant: () => Promise<void> = () => Promise.resolve()) {
      const { uid, flavour } = cluster();
      const fake = await fakeHost();
      await cluster().createMembers(POOL, [{ name, bootId: await fake.host.bootId() }]);
      const deps: NodeDependencies = {
        node: name,
        clusterUid: uid,
        client: await cluster().asNode(name),
        host: fake.host,
        store: fake.store,
        flavour,
        version: '0.1.0',
        now: () => new Date(),
        hasItsName: verifyRenderedName,
        irreconcilable: (old, next) => irreconcilable(old, next, flavour.sshUser),
      };
      await registerNode(deps);
      const step = { cluster: uid, pool: POOL, node: name, nodeUid: (await cluster().node(name)).metadata.uid ?? '' };
      await control().caughtUp();
      await control().activities.syncPool(step);
      await beforeGrant();
      const grant = await control().activities.assign({ ...step, intent: 'start' });
      if (grant.outcome !== 'granted') throw new Error(JSON.stringify(grant));
      // The API server acts on a changed role a moment later.
      await waitFor(() => deps.client.get(flavour.machineConfig, { name: grant.target }));
      const environment = new MockActivityEnvironment(
        { heartbeatTimeoutMs: 30_000 },
        { logger: new DefaultLogger('ERROR') },
      );
      const activities = createNodeActivities(deps);
      const input: DrainInput = { ...step, target: grant.target, sliceSeconds: 1 };
      const run = <K extends keyof NodeActivities>(step: K, more: Partial<DrainInput> = {}) => {
        const activity = (given: DrainInput): Promise<unknown> => activities[step](given);
        return environment.run<[DrainInput], unknown, typeof activity>(activity, { ...input, ...more }) as ReturnType<
          NodeActivities[K]
        >;
      };
      /** The machine goes down, comes back in a new boot, and its kubelet says so. */
      const boot = async () => {
        await fake.boot();
        const status = { nodeInfo: { bootID: await fake.host.bootId() } };
        await deps.client.patch(KINDS.node, { name }, { status }, 'status');
      };
      return { name, fake, run, boot, target: grant.target, deps };
    }

    /** Every other Node is cordoned, as by somebody else; the names of those that were not. */
    async function cordonOthers(name: string): Promise<string[]> {
      const { admin } = cluster();
      const nodes = await admin.list<AnyObject & { spec?: { unschedulable?: boolean } }>(KINDS.node);
      const others = nodes.filter(({ metadata }) => metadata.name !== name);
      const metadata = { annotations: { [DRYDOCK_ANNOTATIONS.cordonedFor]: null } };
      for (const other of others) {
        await admin.patch(KINDS.node, { name: other.metadata.name }, { metadata, spec: { unschedulable: true } });
      }
      return others.filter(({ spec }) => spec?.unschedulable !== true).map((other) => other.metadata.name);
    }

    beforeAll(async () => {
      const { admin } = cluster();
      await cluster().createPool(POOL, { maxUnavailable: 50 });
      await cluster().createConfig(POOL, '50-draining', {
        storage: { files: [{ path: '/etc/motd', contents: { source: 'data:,drained' }, overwrite: true }] },
      });
      await control().activities.renderPool({ cluster: cluster().uid, pool: POOL });
      await admin.create(KINDS.namespace, { metadata: { name: NAMESPACE } });
      await cluster().kubernetes.createNodes([{ name: 'spare' }]);
    });

    test('a budget stops the drain by name; with room for it the node drains, updates and comes back', async () => {
      const { admin } = cluster();
      const node = await grantedNode('drain-1');
      const own = { [HOSTNAME]: node.name };
      const onEither = { key: HOSTNAME, operator: 'In', values: [node.name, 'spare'] };
      const affinity = {
        nodeAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [{ matchExpressions: [onEither] }] },
        },
      };
      const selector = { matchLabels: { app: 'cart' } };
      await admin.patch(KINDS.node, { name: 'spare' }, { spec: { unschedulable: true } });
      await create(DEPLOYMENT, 'cart', { replicas: 1, selector, template: template({ app: 'cart' }, { affinity }) });
      await create(POD_DISRUPTION_BUDGET, 'cart', { minAvailable: 1, selector });
      await create(DAEMON_SET, 'agent', {
        selector: { matchLabels: { app: 'agent' } },
        template: template({ app: 'agent' }, { nodeSelector: own }),
      });
      const once = template({ app: 'once' }, { nodeSelector: own, restartPolicy: 'Never' });
      await create(JOB, 'once', { template: once });
      const { uid = '' } = (await cluster().node(node.name)).metadata;
      await node.deps.client.create<AnyObject>(KINDS.pod, {
        metadata: {
          ...named(`static-${node.name}`),
          labels: { app: 'static' },
          annotations: { 'kubernetes.io/config.mirror': 'hash' },
          ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name: node.name, uid, controller: true }],
        },
        spec: { nodeName: node.name, containers: [{ name: 'main', image: 'none' }] },
      });
      const cart = await podIn('cart', 'Running', node.name);
      await podIn('agent', 'Running', node.name);
      await podIn('once', 'Succeeded', node.name);
      await podIn('static', 'Running', node.name);
      await admin.patch(KINDS.node, { name: 'spare' }, { spec: { unschedulable: null } });
      await budgetAllows('cart', 0);

      expect(await node.run('prepare')).toMatchObject({ target: node.target, disruption: 'reboot' });
      expect(await node.run('cordon')).toEqual({ ours: true });
      expect(await cluster().node(node.name)).toMatchObject({
        metadata: { annotations: { [DRYDOCK_ANNOTATIONS.cordonedFor]: node.target } },
        spec: { unschedulable: true },
      });
      expect(await node.run('drain')).toEqual({
        drained: false,
        evicted: 0,
        remaining: 1,
        blockers: [{ pod: `${NAMESPACE}/${cart.metadata.name}`, why: `PDB ${NAMESPACE}/cart allows 0 disruptions` }],
        budgets: [`${NAMESPACE}/cart`],
        sentence: expect.stringContaining(`PDB ${NAMESPACE}/cart allows 0 disruptions`) as string,
      });
      const told = (await cluster().node(node.name)).metadata.annotations?.[DRYDOCK_ANNOTATIONS.drainBlocked];
      expect(JSON.parse(told ?? '')).toMatchObject({ budgets: [`${NAMESPACE}/cart`] });

      await admin.patch(DEPLOYMENT, named('cart'), { spec: { replicas: 2 } });
      await budgetAllows('cart', 1);
      expect(await node.run('drain', { sliceSeconds: 30 })).toEqual({
        drained: true,
        evicted: 1,
        remaining: 0,
        blockers: [],
      });
      await waitFor(async () => {
        const pods = (await podsOf('cart')).filter(isReady);
        expect(pods.map(({ spec }) => spec?.nodeName)).toEqual(['spare', 'spare']);
      });
      for (const app of ['agent', 'once', 'static']) {
        expect(await podsOf(app), app).toMatchObject([{ spec: { nodeName: node.name } }]);
      }

      expect(await node.run('apply')).toMatchObject({ reboot: true, filesWritten: 1 });
      expect(await node.run('reboot')).toMatchObject({ requested: true });
      await node.boot();
      expect(await node.run('confirm')).toMatchObject({ rebooted: true });
      expect(await node.run('uncordon')).toEqual({ uncordoned: true });
      const { metadata, spec } = await cluster().node(node.name);
      expect(spec?.unschedulable).toBeUndefined();
      expect(metadata.annotations).toMatchObject({
        [cluster().flavour.annotations.currentConfig]: node.target,
        [cluster().flavour.annotations.state]: 'Done',
      });
      expect(metadata.annotations).not.toHaveProperty(DRYDOCK_ANNOTATIONS.cordonedFor);
      expect(await node.fake.text('/etc/motd')).toBe('drained');
      expect(node.fake.reboots).toHaveLength(1);
    });

    test('two budgets on one pod, which eviction cannot serve, are told and are no failure', async () => {
      const node = await grantedNode('drain-2');
      const selector = { matchLabels: { app: 'twice' } };
      for (const name of ['twice-1', 'twice-2'])
        await create(POD_DISRUPTION_BUDGET, name, { minAvailable: 0, selector });
      const spec = { nodeSelector: { [HOSTNAME]: node.name } };
      await create(DEPLOYMENT, 'twice', { replicas: 1, selector, template: template({ app: 'twice' }, spec) });
      await podIn('twice', 'Running', node.name);
      await node.run('cordon');
      const { drained, blockers } = await node.run('drain');
      expect(drained).toBe(false);
      expect(blockers[0]?.why).toMatch(/^more than one PodDisruptionBudget selects pod shop\/twice-/);
      expect(await node.run('release')).toEqual({ uncordoned: true });
      expect((await cluster().node(node.name)).spec?.unschedulable).toBeUndefined();
      await cluster().admin.delete(DEPLOYMENT, named('twice'));
    });

    test('a node that somebody else cordoned is updated and stays cordoned', async () => {
      const node = await grantedNode('drain-3');
      await cluster().admin.patch(KINDS.node, { name: node.name }, { spec: { unschedulable: true } });
      expect(await node.run('cordon')).toEqual({ ours: false });
      expect(await node.run('drain')).toMatchObject({ drained: true });
      await node.run('apply');
      await node.run('reboot');
      await node.boot();
      await node.run('confirm');
      expect(await node.run('uncordon')).toEqual({ uncordoned: false });
      const { metadata, spec } = await cluster().node(node.name);
      expect(spec?.unschedulable).toBe(true);
      expect(metadata.annotations?.[cluster().flavour.annotations.state]).toBe('Done');
    });

    /** A pod on the node that a budget guards, so that it cannot be evicted. */
    async function guardedPod(nodeName: string, app: string) {
      const selector = { matchLabels: { app } };
      await create(POD_DISRUPTION_BUDGET, app, { minAvailable: 1, selector });
      const spec = { nodeSelector: { [HOSTNAME]: nodeName } };
      await create(DEPLOYMENT, app, { replicas: 1, selector, template: template({ app }, spec) });
      await podIn(app, 'Running', nodeName);
      await budgetAllows(app, 0);
    }
    const setPolicy = (rollout: RolloutPolicy | null) =>
      cluster().admin.patch(cluster().flavour.machineConfigPool, { name: POOL }, { spec: { rollout } });

    test('a running drain that the pool is switched to force deletes its own pods past their budgets, and no others', async () => {
      const node = await grantedNode('drain-5');
      await guardedPod(node.name, 'forced');
      await node.run('cordon');
      expect(await node.run('drain')).toMatchObject({ drained: false, remaining: 1 });
      await setPolicy({ drain: { timeout: '1s', onTimeout: 'Force' } });
      expect(await node.run('drain', { sliceSeconds: 30 })).toMatchObject({ drained: true });
      await setPolicy(null);
      const [elsewhere] = await podsOf('cart');
      await expect(node.deps.client.delete(KINDS.pod, elsewhere!.metadata as ObjectName)).rejects.toMatchObject({
        type: 'Forbidden',
      });
      await cluster().admin.delete(DEPLOYMENT, named('forced'));
    });

    test('a node reads the policy of its own pool, and of no other', async () => {
      const node = await grantedNode('drain-6');
      const { machineConfigPool } = cluster().flavour;
      await cluster().createPool('foreign');
      expect((await node.deps.client.get(machineConfigPool, { name: POOL })).metadata.name).toBe(POOL);
      const forbidden = { type: 'Forbidden' };
      await expect(node.deps.client.get(machineConfigPool, { name: 'foreign' })).rejects.toMatchObject(forbidden);
      await expect(node.deps.client.list(machineConfigPool)).rejects.toMatchObject(forbidden);
      await cluster().admin.delete(machineConfigPool, { name: 'foreign' });
    });

    test('a drain waits until the node has given back the volume of an evicted pod', async () => {
      const { admin } = cluster();
      const node = await grantedNode('drain-7');
      const size = { storage: '1Mi' };
      await admin.create<AnyObject>(KINDS.persistentVolume, {
        metadata: { name: 'pv-drain-7' },
        spec: {
          capacity: size,
          accessModes: ['ReadWriteOnce'],
          storageClassName: '',
          csi: { driver: 'disk.example', volumeHandle: 'vol-7' },
          claimRef: { ...named('data'), apiVersion: 'v1', kind: 'PersistentVolumeClaim' },
        },
      });
      await create(KINDS.persistentVolumeClaim, 'data', {
        accessModes: ['ReadWriteOnce'],
        storageClassName: '',
        volumeName: 'pv-drain-7',
        resources: { requests: size },
      });
      await create(KINDS.pod, 'db', {
        nodeName: node.name,
        containers: [{ name: 'main', image: 'none' }],
        terminationGracePeriodSeconds: 1,
        volumes: [{ name: 'data', persistentVolumeClaim: { claimName: 'data' } }],
      });
      const inUse = (volumesInUse: string[]) =>
        node.deps.client.patch(KINDS.node, { name: node.name }, { status: { volumesInUse } }, 'status');
      await inUse(['kubernetes.io/csi/disk.example^vol-7']);
      await node.run('cordon');
      const held = await node.run('drain', { sliceSeconds: 20 });
      expect(held).toMatchObject({ drained: false, evicted: 1, remaining: 0 });
      expect(held.sentence).toContain('volume kubernetes.io/csi/disk.example^vol-7 is still in use (pod shop/db)');
      await inUse([]);
      expect(await node.run('drain', { sliceSeconds: 20 })).toMatchObject({ drained: true });
    });

    test('the only node that takes pods is cordoned and keeps them', async () => {
      const { admin } = cluster();
      const others: string[] = [];
      try {
        const node = await grantedNode('drain-8', async () => {
          others.push(...(await cordonOthers('drain-8')));
          await control().caughtUp();
        });
        const { metadata } = await cluster().node(node.name);
        expect(metadata.annotations?.[DRYDOCK_ANNOTATIONS.noDrain]).toBe(node.target);
        await create(KINDS.pod, 'stays', { nodeName: node.name, containers: [{ name: 'main', image: 'none' }] });
        const plan = await node.run('prepare');
        expect(plan).toMatchObject({ disruption: 'reboot', noDrain: true });
        expect(plan.summary).toMatch(/cordon, no drain$/);
        await node.run('cordon');
        const step = { cluster: cluster().uid, pool: POOL, node: node.name, nodeUid: metadata.uid ?? '' };
        await control().caughtUp();
        expect(await control().activities.assign({ ...step, intent: 'continue' })).toMatchObject({
          outcome: 'granted',
        });
        await node.run('apply');
        await node.run('reboot');
        await node.boot();
        await node.run('confirm');
        expect(await node.run('uncordon')).toEqual({ uncordoned: true });
        expect((await admin.get(KINDS.pod, named('stays'))).metadata.deletionTimestamp).toBeUndefined();
      } finally {
        for (const other of others) await admin.patch(KINDS.node, { name: other }, { spec: { unschedulable: null } });
      }
    });

    test('a node that was granted nothing touches nothing', async () => {
      const node = await grantedNode('drain-4');
      const { uid } = cluster();
      const step = { cluster: uid, pool: POOL, node: node.name };
      const { metadata } = await cluster().node(node.name);
      await control().activities.assign({ ...step, nodeUid: metadata.uid ?? '', intent: 'withdraw' });
      for (const name of ['prepare', 'cordon', 'drain', 'apply', 'reboot'] as const) {
        await expect(node.run(name), name).rejects.toMatchObject({ type: 'NotGranted' });
      }
      expect((await cluster().node(node.name)).spec?.unschedulable).toBeUndefined();
      expect(node.fake.reboots).toEqual([]);
    });
  });
}
