import { describe, expect, test } from 'vitest';
import { KINDS, type KubernetesObject } from '../../../activities/kubernetes/client.js';
import { describeClusterBehaviour } from '../../support/cluster-behaviour.js';
import { FakeCluster, POD_DISRUPTION_BUDGET } from '../../support/fake-cluster.js';

describeClusterBehaviour('the fake cluster', () => {
  const admin = new FakeCluster();
  return Promise.resolve({
    admin,
    asNode: (name: string) => Promise.resolve(admin.as(`system:node:${name}`)),
    close: () => Promise.resolve(),
  });
});

const pod = (name: string, ready: boolean): KubernetesObject =>
  ({
    metadata: { name, namespace: 'shop', labels: { app: 'cart' } },
    spec: { nodeName: 'worker-1' },
    status: { phase: 'Running', conditions: [{ type: 'Ready', status: ready ? 'True' : 'False' }] },
  }) as KubernetesObject;

const budget = (spec: object): KubernetesObject =>
  ({
    metadata: { name: 'cart', namespace: 'shop' },
    spec: { selector: { matchLabels: { app: 'cart' } }, ...spec },
  }) as KubernetesObject;

describe('evictions of the fake', () => {
  test.each([
    ['3 healthy pods, minAvailable 2', { minAvailable: 2 }, [true, true, true], 'evicted'],
    ['2 healthy pods, minAvailable 2', { minAvailable: 2 }, [true, true], 'refused'],
    ['half of 3 rounds up to 2', { minAvailable: '50%' }, [true, true, true], 'evicted'],
    ['maxUnavailable 1 of 2 healthy', { maxUnavailable: 1 }, [true, true], 'evicted'],
    ['maxUnavailable 0', { maxUnavailable: 0 }, [true, true], 'refused'],
    ['an unhealthy pod while enough are healthy', { minAvailable: 1 }, [false, true], 'evicted'],
    ['an unhealthy pod while too few are healthy', { minAvailable: 2 }, [false, true], 'refused'],
  ])('%s', async (_, spec, ready, outcome) => {
    const cluster = new FakeCluster();
    cluster.add(POD_DISRUPTION_BUDGET, budget(spec));
    for (const [index, one] of ready.entries()) cluster.add(KINDS.pod, pod(`cart-${index}`, one));
    const result = await cluster.evict({ namespace: 'shop', name: 'cart-0' });
    expect(result.outcome).toBe(outcome);
    expect(cluster.peek(KINDS.pod, { namespace: 'shop', name: 'cart-0' }) === undefined).toBe(outcome === 'evicted');
  });
});

describe('faults of the fake', () => {
  test('a planned failure hits the next matching call only and changes nothing', async () => {
    const cluster = new FakeCluster();
    cluster.add(KINDS.node, { metadata: { name: 'worker-1' } });
    const patch = (value: string) =>
      cluster.patch(KINDS.node, { name: 'worker-1' }, { metadata: { annotations: { at: value } } });
    cluster.failNext({ verb: 'patch', kind: 'Node' });
    await cluster.get(KINDS.node, { name: 'worker-1' });
    await expect(patch('first')).rejects.toMatchObject({ type: 'ApiUnavailable' });
    expect(cluster.peek(KINDS.node, 'worker-1')?.metadata.annotations).toBeUndefined();
    await patch('second');
    expect(cluster.peek(KINDS.node, 'worker-1')?.metadata.annotations).toEqual({ at: 'second' });
  });

  test('a lost answer fails the call although it took effect', async () => {
    const cluster = new FakeCluster();
    cluster.failNext({ verb: 'create' }, { afterEffect: true });
    const create = cluster.create(KINDS.node, { metadata: { name: 'worker-1' } });
    await expect(create).rejects.toMatchObject({ type: 'ApiUnavailable' });
    expect(cluster.peek(KINDS.node, 'worker-1')).toBeDefined();
  });

  test('an interceptor can write before the call that it sees', async () => {
    const cluster = new FakeCluster();
    const { metadata } = cluster.add(KINDS.node, { metadata: { name: 'worker-1' } });
    const stop = cluster.intercept(async ({ verb }) => {
      if (verb !== 'patch') return;
      stop();
      await cluster.patch(KINDS.node, metadata, { metadata: { labels: { racer: 'won' } } });
    });
    const patch = { metadata: { resourceVersion: metadata.resourceVersion, labels: { racer: 'lost' } } };
    await expect(cluster.patch(KINDS.node, metadata, patch)).rejects.toMatchObject({ type: 'Conflict' });
    expect(cluster.peek(KINDS.node, 'worker-1')?.metadata.labels).toEqual({ racer: 'won' });
  });

  test('nobody but the control worker may change desiredConfig: a node is refused', async () => {
    const cluster = new FakeCluster();
    cluster.add(KINDS.node, { metadata: { name: 'worker-1' } });
    const node = cluster.as('system:node:worker-1');
    const grant = { metadata: { annotations: { 'machineconfiguration.openshift.io/desiredConfig': 'x' } } };
    await expect(node.patch(KINDS.node, { name: 'worker-1' }, grant)).rejects.toMatchObject({ type: 'Forbidden' });
    await cluster.as('system:serviceaccount:drydock:control').patch(KINDS.node, { name: 'worker-1' }, grant);
  });

  test('what a caller does to an answer does not reach the store', async () => {
    const cluster = new FakeCluster();
    cluster.add(KINDS.node, { metadata: { name: 'worker-1', labels: { a: '1' } } });
    const node = await cluster.get(KINDS.node, { name: 'worker-1' });
    node.metadata.labels = { a: '2' };
    expect(cluster.peek(KINDS.node, 'worker-1')?.metadata.labels).toEqual({ a: '1' });
  });

  test('creation times follow the injected clock', async () => {
    const cluster = new FakeCluster({ now: () => new Date('2026-11-30T02:14:00.500Z') });
    const made = await cluster.create<KubernetesObject>(KINDS.node, { metadata: { name: 'worker-1' } });
    expect(made.metadata.creationTimestamp).toBe('2026-11-30T02:14:00Z');
  });
});
