import { beforeAll, describe, expect, test, vi } from 'vitest';
import { KINDS, type KubernetesClient } from '../../activities/kubernetes/client.js';
import type { MachineConfigResource } from '../../activities/cluster/control-dependencies.js';
import type { RealCluster, RealControl } from '../support/real-cluster.js';
import { PATIENCE } from '../support/patience.js';

const POOLS = ['fenced-a', 'fenced-b'] as const;
const [NODE_A, NODE_B] = ['fenced-a-1', 'fenced-b-1'] as const;
const forbidden = expect.objectContaining({ type: 'Forbidden' }) as Error;

/**
 * What the API server lets a node do with its own certificate, and the permissions that syncPool writes. It also lets a
 * node write its own desiredConfig: only an admission policy can forbid that.
 */
export function describeNodeIdentity(cluster: () => RealCluster, control: () => RealControl): void {
  describe('a node with its own identity', () => {
    const target: Record<string, string> = {};
    let node: KubernetesClient;

    const renderAndSync = async (pool: string): Promise<string> => {
      const step = { cluster: cluster().uid, pool };
      const result = await control().activities.renderPool(step);
      if (result.outcome !== 'rendered') throw new Error(`${pool} is not rendered: ${JSON.stringify(result)}`);
      await control().caughtUp();
      await control().activities.syncPool(step);
      return result.rendered;
    };

    beforeAll(async () => {
      for (const pool of POOLS) {
        await cluster().createPool(pool);
        await cluster().createConfig(pool, `50-${pool}`, {}, { kernelArguments: [pool] });
        await cluster().createMembers(pool, [{ name: `${pool}-1` }]);
        await cluster().say(`${pool}-1`, {});
        target[pool] = await renderAndSync(pool);
      }
      node = await cluster().asNode(NODE_A);
    });

    // The API server acts on a changed role or binding a moment later.
    const soon = <T>(condition: () => Promise<T>) => vi.waitFor(condition, { ...PATIENCE, interval: 20 });
    const read = (name: string) => node.get<MachineConfigResource>(cluster().flavour.machineConfig, { name });

    test('reads the rendered config of its own pool', async () => {
      expect((await soon(() => read(target['fenced-a']!))).spec?.kernelArguments).toEqual(['fenced-a']);
    });

    test('reads no other pool’s config, no source, no list', async () => {
      await expect(read(target['fenced-b']!)).rejects.toEqual(forbidden);
      await expect(read('50-fenced-a')).rejects.toEqual(forbidden);
      await expect(node.list(cluster().flavour.machineConfig)).rejects.toEqual(forbidden);
    });

    test('reads the next config of its pool, and still the one that it runs', async () => {
      const { admin, flavour } = cluster();
      const first = target['fenced-a']!;
      await cluster().say(NODE_A, { current: first });
      await admin.patch(flavour.machineConfig, { name: '50-fenced-a' }, { spec: { kernelArguments: ['more'] } });
      const next = await renderAndSync('fenced-a');
      expect(next).not.toBe(first);
      expect((await soon(() => read(next))).spec?.kernelArguments).toEqual(['more']);
      expect((await read(first)).metadata.name).toBe(first);
    });

    test('annotates and cordons itself, and no other Node', async () => {
      const change = { metadata: { annotations: { 'drydock.dev/tried': 'yes' } }, spec: { unschedulable: true } };
      expect(await node.patch(KINDS.node, { name: NODE_A }, change)).toMatchObject(change);
      await node.patch(KINDS.node, { name: NODE_A }, { spec: { unschedulable: null } });
      await expect(node.patch(KINDS.node, { name: NODE_B }, change)).rejects.toEqual(forbidden);
      const other = await cluster().node(NODE_B);
      expect(other.metadata.annotations).not.toHaveProperty('drydock.dev/tried');
      expect(other.spec?.unschedulable).toBeUndefined();
    });

    test('does not choose its pool by labels of node roles, nor write rendered configs', async () => {
      const labels = { 'node-role.kubernetes.io/control-plane': '' };
      await expect(node.patch(KINDS.node, { name: NODE_A }, { metadata: { labels } })).rejects.toEqual(forbidden);
      const { machineConfig, machineConfigPool } = cluster().flavour;
      const spec = { kernelArguments: ['mine'] };
      await expect(node.patch(machineConfig, { name: target['fenced-a']! }, { spec })).rejects.toEqual(forbidden);
      await expect(node.patch(machineConfigPool, { name: 'fenced-a' }, { spec: { paused: true } })).rejects.toEqual(
        forbidden,
      );
    });

    test('sees and evicts only the pods that are bound to it', async () => {
      const { admin } = cluster();
      for (const nodeName of [NODE_A, NODE_B]) {
        await admin.create(KINDS.pod, {
          metadata: { name: `on-${nodeName}`, namespace: 'kube-system' },
          spec: { nodeName, containers: [{ name: 'main', image: 'none' }], serviceAccountName: 'default' },
        } as Parameters<typeof admin.create>[1]);
      }
      const pods = await node.list(KINDS.pod, { fieldSelector: `spec.nodeName=${NODE_A}` });
      expect(pods.map(({ metadata }) => metadata.name)).toEqual([`on-${NODE_A}`]);
      await expect(node.list(KINDS.pod, { fieldSelector: `spec.nodeName=${NODE_B}` })).rejects.toEqual(forbidden);
      await expect(node.evict({ name: `on-${NODE_B}`, namespace: 'kube-system' })).rejects.toEqual(forbidden);
      expect(await node.evict({ name: `on-${NODE_A}`, namespace: 'kube-system' })).toEqual({ outcome: 'evicted' });
      await admin.delete(KINDS.pod, { name: `on-${NODE_B}`, namespace: 'kube-system' });
    });

    test('loses its permission when it leaves the pool', async () => {
      const { admin } = cluster();
      const member = await cluster().asNode(NODE_B);
      const read = () => member.get(cluster().flavour.machineConfig, { name: target['fenced-b']! });
      await soon(read);
      await admin.patch(KINDS.node, { name: NODE_B }, { metadata: { labels: { 'test.drydock.dev/pool': null } } });
      await renderAndSync('fenced-b');
      await soon(() => expect(read()).rejects.toEqual(forbidden));
    });
  });
}
