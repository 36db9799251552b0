import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import type { NodeResource } from '../../activities/cluster/control-dependencies.js';
import { KINDS, type KubernetesObject } from '../../activities/kubernetes/client.js';
import { isControlPlaneNode } from '../../machine-config/pool/control-plane.js';
import type { RealCluster, RealControl } from '../support/real-cluster.js';

/** Of Pods that come and go, and of a Node whose kubelet dies. */
const PATIENCE = { timeout: 60_000, interval: 500 };
const CONTROL_PLANE = 'node-role.kubernetes.io/control-plane';
/** Takes away every role of the control plane. */
const OTHERWISE = {
  [CONTROL_PLANE]: null,
  'node-role.kubernetes.io/master': null,
  'node-role.kubernetes.io/etcd': null,
};
const MEMBERS = ['plane-a', 'plane-b', 'plane-c'] as const;

export function describeControlPlane(cluster: () => RealCluster, control: () => RealControl): void {
  describe('a control plane of three', () => {
    const pool = 'plane';
    let target = '';
    const input = async (node: string) => ({
      cluster: cluster().uid,
      pool,
      node,
      nodeUid: (await cluster().node(node)).metadata.uid ?? '',
      target,
    });
    const assign = async (node: string) => control().activities.assign({ ...(await input(node)), intent: 'start' });
    const clearReboot = async (node: string) => control().activities.clearReboot(await input(node));
    const pod = (node: string, component: string) => ({ name: `${component}-${node}`, namespace: 'kube-system' });
    const start = (node: string, component: string, labels: object = {}) =>
      cluster().admin.create(KINDS.pod, {
        metadata: { ...pod(node, component), labels: { component, tier: 'control-plane', ...labels } },
        spec: { nodeName: node, containers: [{ name: component, image: `registry.example/${component}` }] },
      } as KubernetesObject);
    const restart = async (node: string, component: string): Promise<void> => {
      await cluster().admin.delete(KINDS.pod, pod(node, component));
      // Not before the old one is gone.
      await vi.waitFor(() => start(node, component), PATIENCE);
    };
    const relabel = (name: string, labels: object) =>
      cluster().admin.patch(KINDS.node, { name }, { metadata: { labels } });
    const untilReady = () =>
      vi.waitFor(async () => expect(await clearReboot(MEMBERS[0])).toEqual({ clear: true }), PATIENCE);

    const others: NodeResource[] = [];

    beforeAll(async () => {
      // The nodes of other tests are no part of this control plane.
      const nodes = await cluster().admin.list<NodeResource>(KINDS.node);
      others.push(...nodes.filter(({ metadata }) => isControlPlaneNode({ labels: metadata.labels ?? {} })));
      for (const { metadata } of others) await relabel(metadata.name, OTHERWISE);
      await cluster().createPool(pool, { maxUnavailable: 3 });
      await cluster().createConfig(pool, '50-plane', {});
      const labels = { [CONTROL_PLANE]: '' };
      await cluster().createMembers(
        pool,
        MEMBERS.map((name) => ({ name, labels })),
      );
      for (const name of MEMBERS) await cluster().say(name, {});
      const rendered = await control().activities.renderPool({ cluster: cluster().uid, pool });
      target = rendered.outcome === 'rendered' ? rendered.rendered : '';
      for (const name of MEMBERS) for (const component of ['kube-apiserver', 'etcd']) await start(name, component);
      await control().caughtUp();
      await untilReady();
    });
    afterAll(async () => {
      for (const name of MEMBERS) {
        for (const component of ['kube-apiserver', 'etcd'])
          await cluster()
            .admin.delete(KINDS.pod, pod(name, component))
            .catch(() => undefined);
        await cluster().admin.delete(KINDS.node, { name });
      }
      for (const { metadata } of others) await relabel(metadata.name, metadata.labels ?? {});
      await control().caughtUp();
    });

    test('is asked for its etcd, which is well', async () => {
      expect(await cluster().admin.etcdProblem()).toBeUndefined();
    });

    test('starts one at a time, whatever is written', async () => {
      const turn = await control().activities.planTurn({
        cluster: cluster().uid,
        pool,
        inFlight: {},
        resting: {},
        now: Date.now(),
      });
      expect(turn.start).toMatchObject([{ node: MEMBERS[0] }]);
    });

    test('waits for a member whose etcd is gone or not Ready, before a start and before a reboot', async () => {
      const { admin } = cluster();
      const sentence = expect.stringMatching(/plane-a .*plane-c has no etcd/) as string;
      await admin.delete(KINDS.pod, pod('plane-c', 'etcd'));
      await vi.waitFor(
        async () => expect(await clearReboot('plane-a')).toMatchObject({ clear: false, sentence }),
        PATIENCE,
      );
      expect(await assign('plane-a')).toMatchObject({ outcome: 'refused', code: 'ControlPlane', sentence });
      expect(await clearReboot('plane-c')).toEqual({ clear: true });
      await start('plane-c', 'etcd', { 'drydock.dev/lab-never-ready': '' });
      await vi.waitFor(
        async () =>
          expect(await clearReboot('plane-a')).toMatchObject({
            sentence: expect.stringContaining('the etcd of plane-c is not Ready') as string,
          }),
        PATIENCE,
      );
    });

    test('goes on when that one is back', async () => {
      await restart('plane-c', 'etcd');
      await untilReady();
      expect(await assign('plane-a')).toEqual({ outcome: 'granted', target, current: expect.any(String) as string });
    });

    test('waits for a member whose kubelet died', async () => {
      await cluster().kubernetes.stopKubelet('plane-b');
      const sentence = expect.stringContaining('plane-b is not ready') as string;
      await vi.waitFor(
        async () => expect(await clearReboot('plane-a')).toMatchObject({ clear: false, sentence }),
        PATIENCE,
      );
      await cluster().kubernetes.startKubelet('plane-b');
    });

    test('alone, has nobody to wait for', async () => {
      for (const name of ['plane-b', 'plane-c']) {
        await relabel(name, OTHERWISE);
      }
      await control().caughtUp();
      await cluster().admin.delete(KINDS.pod, pod('plane-a', 'etcd'));
      expect(await clearReboot('plane-a')).toEqual({ clear: true });
    });
  });
}
