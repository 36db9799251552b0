import { expect, it } from 'vitest';
import { KINDS, type KubernetesObject } from '../../../activities/kubernetes/client.js';
import { SimulatedKubelet } from '../../../workers/simulated-kubelet.js';
import { FakeCluster } from '../../support/fake-cluster.js';

const TYPES = ['MemoryPressure', 'DiskPressure', 'PIDPressure', 'Ready'];

it('a simulated machine that was away for longer than the grace period is as well as before when it is back', async () => {
  const cluster = new FakeCluster();
  const name = 'worker-1';
  await cluster.create(KINDS.node, { metadata: { name } });
  const kubelet = new SimulatedKubelet(cluster, name, (error) => {
    throw error;
  });
  const network = { type: 'NetworkUnavailable', status: 'False' };
  await kubelet.goneDown();
  // What the controller manager makes of a Node of which it hears nothing.
  const conditions = [...TYPES.map((type) => ({ type, status: 'Unknown' })), network];
  await cluster.patch(KINDS.node, { name }, { status: { conditions } }, 'status');
  await kubelet.comeUp('boot-2');
  const node = await cluster.get<KubernetesObject & { status: object }>(KINDS.node, { name });
  expect(node.status).toMatchObject({
    nodeInfo: { bootID: 'boot-2' },
    conditions: [
      network,
      { type: 'MemoryPressure', status: 'False' },
      { type: 'DiskPressure', status: 'False' },
      { type: 'PIDPressure', status: 'False' },
      { type: 'Ready', status: 'True' },
    ],
  });
});
