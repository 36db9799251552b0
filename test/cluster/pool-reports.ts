import { beforeAll, describe, expect, test, vi } from 'vitest';
import type { ControlDependencies, NodeResource, PoolResource } from '../../activities/cluster/control-dependencies.js';
import { MachineConfigNodes } from '../../activities/cluster/machine-config-nodes.js';
import type { MachineConfigNodeResource } from '../../activities/cluster/machine-config-node-write.js';
import { PoolEvents } from '../../activities/cluster/pool-events.js';
import { renderPool } from '../../activities/cluster/render-pool.js';
import { syncPool } from '../../activities/cluster/sync-pool.js';
import { KINDS, type KubernetesObject } from '../../activities/kubernetes/client.js';
import { DRYDOCK_ANNOTATIONS } from '../../machine-config/api/flavour.js';
import type { SyncPoolInput } from '../../workflows/contract/activities.js';
import type { RealCluster, RealControl } from '../support/real-cluster.js';

const POOL = 'reports';
const [FIRST, SECOND] = ['reports-first', 'reports-second'] as const;

/** What a control worker shows of a pool besides its counts, as kubectl sees it. */
export function describePoolReports(cluster: () => RealCluster, control: () => RealControl): void {
  describe('what a pool tells', () => {
    let dependencies: ControlDependencies;
    let events: PoolEvents;
    let objects: MachineConfigNodes;
    let target: string;
    const problems: unknown[] = [];

    const step = () => ({ cluster: cluster().uid, pool: POOL });
    const sync = async (input: Omit<SyncPoolInput, 'cluster' | 'pool'> = {}): Promise<PoolResource> => {
      await control().caughtUp();
      await syncPool(dependencies, { ...step(), ...input });
      await objects.flushed();
      await events.flushed();
      return cluster().pool(POOL);
    };
    const wait = (condition: string, seconds: number) =>
      cluster().kubectl('wait', `machineconfigpool/${POOL}`, `--for=condition=${condition}`, `--timeout=${seconds}s`);
    const object = (name: string) =>
      cluster().admin.get<MachineConfigNodeResource>(cluster().flavour.machineConfigNode, { name });
    const trueOf = async (name: string) =>
      ((await object(name)).status?.conditions ?? []).filter(({ status }) => status === 'True').map(({ type }) => type);
    const grant = (name: string) => {
      const annotations = { [cluster().flavour.annotations.desiredConfig]: target };
      return control().dependencies.client.patch(KINDS.node, { name }, { metadata: { annotations } });
    };
    const annotate = (name: string, annotations: Record<string, string | null>, more: object = {}) =>
      cluster().admin.patch<NodeResource>(KINDS.node, { name }, { metadata: { annotations }, ...more });

    beforeAll(async () => {
      const { flavour } = cluster();
      const { nodes, pools, now, client } = control().dependencies;
      const onError = (error: unknown) => void problems.push(error);
      events = new PoolEvents({ client, flavour, instance: 'control-1', now, onError });
      objects = new MachineConfigNodes({ client, flavour, nodes, pools, now, onError });
      dependencies = { ...control().dependencies, events, machineConfigNodes: objects };
      await cluster().createPool(POOL);
      await cluster().createConfig(POOL, '50-reports', {});
      await cluster().createMembers(POOL, [{ name: FIRST }, { name: SECOND }]);
      for (const name of [FIRST, SECOND]) await cluster().say(name, {});
      const rendered = await renderPool(dependencies, step());
      target = rendered.outcome === 'rendered' ? rendered.rendered : '';
    });

    test('kubectl wait waits for what a rollout stands still for, and no longer', async () => {
      await sync({ waiting: null });
      await expect(wait('Waiting', 1)).rejects.toThrow(/timed out/);
      const waiting = wait('Waiting', 30);
      await sync({ waiting: { code: 'WindowClosed', sentence: 'The next window begins at 22:00' } });
      expect(await waiting).toContain('condition met');
      const going = wait('Waiting=False', 30);
      await sync({ waiting: null });
      expect(await going).toContain('condition met');
    });

    test('a MachineConfigNode follows the update of its node, and stays one with what it was', async () => {
      await sync();
      const { uid } = (await object(FIRST)).metadata;
      expect(await trueOf(FIRST)).toEqual([]);
      await grant(FIRST);
      await sync();
      expect((await object(FIRST)).spec).toEqual({
        node: { name: FIRST },
        pool: { name: POOL },
        configVersion: { desired: target },
      });
      await annotate(FIRST, { [DRYDOCK_ANNOTATIONS.cordonedFor]: target }, { spec: { unschedulable: true } });
      await sync();
      expect(await trueOf(FIRST)).toEqual(['UpdatePrepared', 'Cordoned']);
      await cluster().say(FIRST, { state: 'Working', applying: target });
      await sync();
      expect(await trueOf(FIRST)).toEqual(['UpdatePrepared', 'Cordoned', 'Drained']);
      await annotate(FIRST, { [DRYDOCK_ANNOTATIONS.cordonedFor]: null }, { spec: { unschedulable: null } });
      await cluster().say(FIRST, { current: target });
      await sync();
      const last = await object(FIRST);
      expect(await trueOf(FIRST)).toEqual(['Updated']);
      expect(last.metadata.uid).toBe(uid);
      expect(last.status).toMatchObject({
        observedGeneration: last.metadata.generation,
        configVersion: { current: target, desired: target },
      });
      expect(problems).toEqual([]);
    });

    test('kubectl wait and kubectl get show MachineConfigNodes in the columns that administrators know', async () => {
      const { kubectl } = { kubectl: (...args: string[]) => cluster().kubectl(...args) };
      await kubectl('wait', `machineconfignode/${FIRST}`, '--for=condition=Updated', '--timeout=10s');
      const narrow = await kubectl('get', 'machineconfignodes', FIRST);
      expect(narrow.split('\n').map((line) => line.trim().split(/\s+/).slice(0, 5))).toEqual([
        ['NAME', 'POOLNAME', 'DESIREDCONFIG', 'CURRENTCONFIG', 'UPDATED'],
        [FIRST, POOL, target, target, 'True'],
        [''],
      ]);
      const wide = await kubectl('get', 'machineconfignodes', FIRST, '-o', 'wide');
      process.stdout.write(`$ kubectl get machineconfignodes -o wide\n${wide}`);
      expect(wide).toMatch(/UPDATEPREPARED +UPDATEEXECUTED +UPDATEPOSTACTIONCOMPLETE/);
    });

    test('the API server refuses a MachineConfigNode for a node of another name', async () => {
      const spec = { node: { name: SECOND }, pool: { name: POOL }, configVersion: { desired: 'not-yet-set' } };
      const wrong: KubernetesObject & { spec: object } = { metadata: { name: 'reports-wrong' }, spec };
      await expect(cluster().admin.create(cluster().flavour.machineConfigNode, wrong)).rejects.toMatchObject({
        type: 'Invalid',
        message: expect.stringContaining('spec.node.name must be the name of the object') as string,
      });
    });

    test('kubectl wait ends when the last node is updated, and the history and the Events say how it went', async () => {
      const waiting = wait('Updated', 60);
      await grant(SECOND);
      await cluster().say(SECOND, { current: target });
      const pool = await sync();
      expect(await waiting).toContain('condition met');
      expect(pool.status?.rollouts).toMatchObject([{ target, outcome: 'Completed', updated: 2, failed: 0 }]);
      const described = await cluster().kubectl('describe', 'machineconfigpool', POOL);
      process.stdout.write(`$ kubectl describe mcp ${POOL} | tail\n${described.split('\n').slice(-8).join('\n')}`);
      for (const reason of ['RenderedConfigGenerated', 'RolloutStarted', 'Completed']) {
        expect(described).toMatch(new RegExp(`Normal +${reason} `));
      }
      expect(problems).toEqual([]);
    });

    test('nothing of it is written again while nothing changes', async () => {
      const { admin, flavour } = cluster();
      const versions = async () =>
        [
          await cluster().pool(POOL),
          ...(await admin.list(flavour.machineConfigNode)),
          ...(await admin.list(KINDS.event, { namespace: 'default', fieldSelector: `involvedObject.name=${POOL}` })),
        ].map(({ metadata }) => `${metadata.name} ${metadata.resourceVersion ?? ''}`);
      await sync();
      const before = await versions();
      await sync();
      expect(await versions()).toEqual(before);
    });

    test('a MachineConfigNode goes with its Node', async () => {
      await cluster().admin.delete(KINDS.node, { name: SECOND });
      await vi.waitFor(async () => expect(object(SECOND)).rejects.toMatchObject({ type: 'NotFound' }), {
        timeout: 60_000,
        interval: 500,
      });
      await sync();
      await expect(object(SECOND)).rejects.toMatchObject({ type: 'NotFound' });
    });
  });
}
