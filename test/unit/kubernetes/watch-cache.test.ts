import { afterEach, expect, test, vi } from 'vitest';
import { KINDS } from '../../../activities/kubernetes/client.js';
import { WatchCache } from '../../../activities/kubernetes/watch-cache.js';
import { FakeCluster } from '../../support/fake-cluster.js';
import { PATIENCE } from '../../support/patience.js';

afterEach(() => vi.useRealTimers());

const name = ({ metadata }: { metadata: { name: string } }): string => metadata.name;

test('the cache follows the cluster and tells what was before', async () => {
  const cluster = new FakeCluster();
  cluster.add(KINDS.node, { metadata: { name: 'a', labels: { step: '1' } } });
  const end = new AbortController();
  const cache = new WatchCache(cluster, KINDS.node, { signal: end.signal });
  const changes: string[] = [];
  cache.onChange(({ type, object, before }) =>
    changes.push(`${type} ${name(object)} ${before?.metadata.labels?.step ?? '-'}`),
  );
  expect(cache.hasSynced()).toBe(false);
  await cache.synced();
  expect(cache.hasSynced()).toBe(true);
  await cluster.patch(KINDS.node, { name: 'a' }, { metadata: { labels: { step: '2' } } });
  expect(cache.get('a')?.metadata.labels).toEqual({ step: '2' });
  await cluster.delete(KINDS.node, { name: 'a' });
  expect(cache.list()).toEqual([]);
  expect(changes).toEqual(['ADDED a -', 'MODIFIED a 1', 'DELETED a 2']);
  end.abort();
  await cluster.create(KINDS.node, { metadata: { name: 'b' } });
  expect(cache.list()).toEqual([]);
});

test('the cache knows how far it has come, and can be waited for', async () => {
  const cluster = new FakeCluster();
  cluster.add(KINDS.node, { metadata: { name: 'a' } });
  const cache = new WatchCache(cluster, KINDS.node, { signal: new AbortController().signal });
  expect(cache.freshness()).toBeUndefined();
  await cache.synced();
  await vi.waitFor(() => expect(cache.freshness()).toBeDefined(), PATIENCE);
  const before = cache.freshness()?.version;
  expect(await cache.reaches((version) => version === before, 0)).toBe(true);
  const waiting = cache.reaches((version) => version !== before, 10_000);
  const { metadata } = await cluster.patch(KINDS.node, { name: 'a' }, { metadata: { labels: { step: '2' } } });
  expect(await waiting).toBe(true);
  expect(cache.freshness()?.version).toBe(metadata.resourceVersion);
  expect(await cache.reaches(() => false, 1)).toBe(false);
});

test('objects of a namespaced kind are found by namespace and name', async () => {
  const cluster = new FakeCluster();
  for (const namespace of ['shop', 'bank']) cluster.add(KINDS.pod, { metadata: { name: 'web', namespace } });
  const cache = new WatchCache(cluster, KINDS.pod, { signal: new AbortController().signal });
  await cache.synced();
  expect(cache.list()).toHaveLength(2);
  expect(cache.get({ name: 'web', namespace: 'bank' })?.metadata.namespace).toBe('bank');
  expect(cache.get('web')).toBeUndefined();
});

test('a delayed cache sees everything that much later, in order', async () => {
  vi.useFakeTimers();
  const cluster = new FakeCluster();
  cluster.add(KINDS.node, { metadata: { name: 'a' } });
  const cache = new WatchCache(cluster, KINDS.node, { signal: new AbortController().signal, delayMs: 10_000 });
  await vi.advanceTimersByTimeAsync(9_999);
  expect([cache.hasSynced(), cache.list()]).toEqual([false, []]);
  await vi.advanceTimersByTimeAsync(1);
  await cache.synced();
  await cluster.create(KINDS.node, { metadata: { name: 'b' } });
  await cluster.delete(KINDS.node, { name: 'a' });
  await vi.advanceTimersByTimeAsync(9_999);
  expect(cache.list().map(name)).toEqual(['a']);
  await vi.advanceTimersByTimeAsync(1);
  expect(cache.list().map(name)).toEqual(['b']);
});

test('whoever waits for a cache that is stopped is told', async () => {
  const end = new AbortController();
  const cluster = new FakeCluster();
  const cache = new WatchCache(cluster, KINDS.node, { signal: end.signal });
  end.abort();
  await expect(cache.synced()).rejects.toThrow('the cache of nodes was stopped');
});
