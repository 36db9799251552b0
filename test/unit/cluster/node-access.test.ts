import { expect, it } from 'vitest';
import { syncNodeAccess } from '../../../activities/cluster/node-access.js';
import { KINDS, type KubernetesObject } from '../../../activities/kubernetes/client.js';
import { makeNodes, makePool } from '../pool/make-node.js';
import { FakeControl } from './fake-control.js';

const NAME = 'drydock:pool:worker';
type Binding = KubernetesObject & { subjects?: { name: string }[] };

it('asks again for what is in order after a minute alone, and at once where something else is wanted', async () => {
  const control = new FakeControl();
  const { cluster, dependencies } = control;
  let now = 0;
  const calls: string[] = [];
  cluster.intercept(({ verb, resource }) => void calls.push(`${verb} ${resource.kind}`));
  const sync = async (...names: string[]) => {
    calls.length = 0;
    await syncNodeAccess({ ...dependencies, now: () => now }, makePool(), makeNodes(...names));
    return calls.length;
  };
  const subjects = () => cluster.peek<Binding>(KINDS.clusterRoleBinding, NAME)?.subjects?.map(({ name }) => name);

  expect(await sync('a')).toBeGreaterThan(0);
  expect(subjects()).toEqual(['system:node:a']);
  expect(await sync('a')).toBe(0);
  expect(await sync('a', 'b')).toBeGreaterThan(0);
  expect(subjects()).toEqual(['system:node:a', 'system:node:b']);

  await cluster.delete(KINDS.clusterRoleBinding, { name: NAME });
  now += 59_000;
  expect(await sync('a', 'b')).toBe(0);
  now += 1_000;
  await sync('a', 'b');
  expect(subjects()).toEqual(['system:node:a', 'system:node:b']);
});

it('does not take for in order what could not be written', async () => {
  const control = new FakeControl();
  const { cluster, dependencies } = control;
  cluster.failNext({ verb: 'create', kind: 'ClusterRoleBinding' });
  const sync = () => syncNodeAccess(dependencies, makePool(), makeNodes('a'));
  await expect(sync()).rejects.toThrow();
  await sync();
  expect(cluster.peek(KINDS.clusterRoleBinding, NAME)).toBeDefined();
});
