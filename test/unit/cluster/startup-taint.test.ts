import { beforeEach, describe, expect, it } from 'vitest';
import type { NodeResource, PoolResource } from '../../../activities/cluster/control-dependencies.js';
import { removeStartupTaints } from '../../../activities/cluster/startup-taint.js';
import { KINDS } from '../../../activities/kubernetes/client.js';
import { apiFlavour, DRYDOCK_ANNOTATIONS } from '../../../machine-config/api/flavour.js';
import { DEFAULT_STARTUP_TAINT } from '../../../machine-config/pool/startup-taint.js';
import { FakeCluster } from '../../support/fake-cluster.js';

const flavour = apiFlavour('openshift');
const KEYS = flavour.annotations;
const TARGET = 'rendered-worker-b';
const STARTUP = { key: DEFAULT_STARTUP_TAINT, effect: 'NoSchedule' };
const OTHER = { key: 'dedicated', value: 'db', effect: 'NoSchedule' };

describe('the taint of a node that is not configured yet', () => {
  let cluster: FakeCluster;
  let pool: PoolResource;
  beforeEach(() => {
    cluster = new FakeCluster();
    pool = cluster.add<PoolResource>(flavour.machineConfigPool, {
      metadata: { name: 'worker' },
      spec: { nodeSelector: { matchLabels: { pool: 'worker' } }, configuration: { name: TARGET } },
    });
  });
  const done = {
    [DRYDOCK_ANNOTATIONS.worker]: '0.1.0',
    [KEYS.currentConfig]: TARGET,
    [KEYS.desiredConfig]: TARGET,
    [KEYS.state]: 'Done',
  };
  function add(annotations: Record<string, string>, taints: object[], labels = { pool: 'worker' }): NodeResource {
    return cluster.add(KINDS.node, { metadata: { name: 'n1', labels, annotations }, spec: { taints } } as NodeResource);
  }
  const remove = (node: NodeResource, taint = DEFAULT_STARTUP_TAINT) => {
    const pools = { list: () => [pool], get: (name: string) => (name === 'worker' ? pool : undefined) };
    return removeStartupTaints([node], { client: cluster, flavour, pools, taint });
  };
  const taints = () => cluster.peek<NodeResource>(KINDS.node, 'n1')?.spec?.taints;

  it('goes once the node runs the config of its pool, and others stay', async () => {
    expect(await remove(add(done, [STARTUP, OTHER]))).toEqual(['n1']);
    expect(taints()).toEqual([OTHER]);
  });

  it('leaves no empty list behind', async () => {
    await remove(add(done, [STARTUP]));
    expect(taints()).toBeUndefined();
  });

  it.each([
    ['has no worker', { ...done, [DRYDOCK_ANNOTATIONS.worker]: '' }],
    ['runs another config', { ...done, [KEYS.currentConfig]: 'rendered-worker-a' }],
    ['is on its way to another', { ...done, [KEYS.desiredConfig]: 'rendered-worker-c' }],
    ['is Degraded', { ...done, [KEYS.state]: 'Degraded' }],
    ['says nothing', {}],
  ])('stays while the node %s', async (_, annotations) => {
    expect(await remove(add(annotations, [STARTUP]))).toEqual([]);
    expect(taints()).toEqual([STARTUP]);
  });

  it('stays on a node of no pool, and where the pool wants nothing yet', async () => {
    expect(await remove(add(done, [STARTUP], { pool: 'none' }))).toEqual([]);
    pool = { ...pool, spec: { nodeSelector: { matchLabels: { pool: 'none' } } } };
    expect(await remove(cluster.peek<NodeResource>(KINDS.node, 'n1')!)).toEqual([]);
  });

  it('goes of a pool that is paused: the node has been configured', async () => {
    pool = { ...pool, spec: { ...pool.spec, paused: true } };
    expect(await remove(add(done, [STARTUP]))).toEqual(['n1']);
  });

  it('is the one of the setting, of the effect that keeps pods away', async () => {
    const node = add(done, [
      { key: 'drydock/new', effect: 'NoSchedule' },
      { ...STARTUP, effect: 'NoExecute' },
    ]);
    expect(await remove(node)).toEqual([]);
    expect(await remove(node, 'drydock/new')).toEqual(['n1']);
    expect(taints()).toEqual([{ ...STARTUP, effect: 'NoExecute' }]);
  });

  it('is left to a later look where somebody wrote the Node meanwhile', async () => {
    const node = add(done, [STARTUP]);
    await cluster.patch(KINDS.node, { name: 'n1' }, { spec: { taints: [STARTUP, OTHER] } });
    expect(await remove(node)).toEqual([]);
    expect(taints()).toEqual([STARTUP, OTHER]);
  });
});
