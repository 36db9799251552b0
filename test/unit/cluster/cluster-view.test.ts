import { beforeEach, describe, expect, it } from 'vitest';
import { ClusterView } from '../../../activities/cluster/cluster-view.js';
import type { NodeResource, PoolResource } from '../../../activities/cluster/control-dependencies.js';
import { KINDS } from '../../../activities/kubernetes/client.js';
import { DRYDOCK_ANNOTATIONS } from '../../../machine-config/api/flavour.js';
import { FakeControl, POOL } from './fake-control.js';

let control: FakeControl;
beforeEach(() => {
  control = new FakeControl();
  control.addPool();
});

function addPool(name: string, target: string | undefined, more: Partial<PoolResource['spec']> = {}): void {
  control.cluster.add<PoolResource>(control.flavour.machineConfigPool, {
    metadata: { name },
    spec: {
      nodeSelector: { matchLabels: { role: name } },
      machineConfigSelector: { matchLabels: { [control.flavour.roleLabel]: name } },
      ...(target === undefined ? {} : { configuration: { name: target } }),
      ...more,
    },
  });
}
async function addNode(name: string, role: string, current: string, desired = current): Promise<void> {
  const { currentConfig, desiredConfig, state } = control.flavour.annotations;
  control.addNode(name, { [currentConfig]: current, [desiredConfig]: desired, [state]: 'Done' });
  await change(name, { metadata: { labels: { role } } });
}
const change = (name: string, patch: object) => control.cluster.patch<NodeResource>(KINDS.node, { name }, patch);
const facts = () => new ClusterView(control.dependencies).factsFor(POOL);
const other = async (name: string) => (await facts()).others.find((each) => each.name === name);

describe('what holds for all pools', () => {
  it('is read from the MachineConfiguration', async () => {
    expect(await facts()).not.toHaveProperty('stop');
    await control.setPolicies({ rollout: { maxPools: 2 } });
    const annotations = { [DRYDOCK_ANNOTATIONS.stop]: 'wait for Ann' };
    await control.cluster.patch(
      control.flavour.machineConfiguration,
      { name: 'cluster' },
      { metadata: { annotations } },
    );
    expect(await facts()).toMatchObject({ stop: 'wait for Ann', maxPools: 2 });
  });
});

describe('another pool', () => {
  it('is every one but the own, with the pools that it goes after', async () => {
    addPool('infra', 'two', { rollout: { after: [POOL] } });
    expect((await facts()).others.map(({ name, after }) => [name, after])).toEqual([['infra', [POOL]]]);
  });

  it('is updated when all its managed members run its target', async () => {
    addPool('infra', 'two');
    await addNode('a', 'infra', 'two');
    expect(await other('infra')).toMatchObject({ updated: true, rolling: false });
    await addNode('b', 'infra', 'one');
    expect(await other('infra')).toMatchObject({ updated: false, rolling: false });
    await change('b', { metadata: { annotations: { [DRYDOCK_ANNOTATIONS.worker]: null } } });
    expect(await other('infra')).toMatchObject({ updated: true });
  });

  it('rolls when a member holds a slot', async () => {
    addPool('infra', 'two');
    await addNode('a', 'infra', 'one', 'two');
    expect(await other('infra')).toMatchObject({ updated: false, rolling: true });
  });

  it('is not updated before it has a config', async () => {
    addPool('infra', undefined);
    expect(await other('infra')).toMatchObject({ updated: false });
  });

  it('does not count nodes that belong to another pool by its labels', async () => {
    addPool('worker', 'two', { nodeSelector: { matchLabels: { linux: '' } } });
    addPool('infra', 'two');
    await addNode('a', 'infra', 'one');
    await change('a', { metadata: { labels: { linux: '' } } });
    const { others } = await new ClusterView(control.dependencies).factsFor('infra');
    expect(others.find(({ name }) => name === 'worker')).toMatchObject({ updated: true });
  });
});

describe('nodes that take pods', () => {
  const countAfter = async (patch: object) => {
    await addNode('a', 'worker', 'one');
    await change('a', patch);
    return (await facts()).schedulable;
  };
  const taint = (key: string, effect: string) => ({ spec: { taints: [{ key, effect }] } });

  it.each([
    ['one as any other', {}, 1],
    ['one that is cordoned by others', { spec: { unschedulable: true } }, 0],
    [
      'one that we cordoned, since it comes back',
      { spec: { unschedulable: true }, metadata: { annotations: { [DRYDOCK_ANNOTATIONS.cordonedFor]: 'two' } } },
      1,
    ],
    ['one that is for other pods', taint('node-role.kubernetes.io/control-plane', 'NoSchedule'), 0],
    ['one that pods had better avoid', taint('UpdateInProgress', 'PreferNoSchedule'), 1],
    ['one that is not ready, since it comes back', taint('node.kubernetes.io/not-ready', 'NoExecute'), 1],
  ])('%s', async (_, patch, count) => {
    expect(await countAfter(patch)).toBe(count);
  });
});
