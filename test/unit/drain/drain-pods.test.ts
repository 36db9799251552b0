import { describe, expect, it } from 'vitest';
import {
  claimNames,
  isOverdue,
  mustMove,
  ownerName,
  podName,
  sortPods,
} from '../../../machine-config/drain/drain-pods.js';
import { drainPolicy } from '../../../machine-config/drain/drain-policy.js';
import { makePod } from './make-pod.js';

const names = (pods: readonly Parameters<typeof podName>[0][]) => pods.map(podName);

describe('which pods a drain moves', () => {
  it.each([
    ['of a ReplicaSet', makePod('a', { owner: 'ReplicaSet' }), true],
    ['of nobody', makePod('a'), true],
    ['with an emptyDir', makePod('a', { volumes: [{ name: 'cache' }] }), true],
    ['of a DaemonSet', makePod('a', { owner: 'DaemonSet' }), false],
    ['owned, and not controlled, by a DaemonSet', makePod('a', { owner: 'DaemonSet', controller: false }), true],
    ['shown for a file of the kubelet', makePod('a', { annotations: { 'kubernetes.io/config.mirror': 'x' } }), false],
    ['that has ended well', makePod('a', { owner: 'Job', phase: 'Succeeded' }), false],
    ['that has failed', makePod('a', { phase: 'Failed' }), false],
    ['that has not started', makePod('a', { phase: 'Pending' }), true],
    ['with the name of the worker in another namespace', makePod('drydock-node'), true],
    ['in which the worker runs', makePod('drydock-node', { namespace: 'drydock' }), false],
  ])('one %s', (_, pod, moves) => {
    expect(mustMove(pod, { name: 'drydock-node', namespace: 'drydock' })).toBe(moves);
  });

  it('puts Temporal’s own last, by either label', () => {
    const pods = [
      makePod('server', { labels: { 'app.kubernetes.io/name': 'temporal' } }),
      makePod('web', { labels: { 'app.kubernetes.io/part-of': 'temporal' } }),
      makePod('shop', { labels: { 'app.kubernetes.io/name': 'shop' } }),
    ];
    const { evict, last } = sortPods(pods, { policy: {} });
    expect([names(evict), names(last)]).toEqual([['shop/shop'], ['shop/server', 'shop/web']]);
  });

  it('waits for what the pool selects, in its namespaces, until their time is over', () => {
    const selector = { matchLabels: { job: 'long' } };
    const policy = drainPolicy({ waitForPods: { selector, namespaces: ['batch'] } });
    const pods = [
      makePod('here', { namespace: 'batch', labels: { job: 'long' } }),
      makePod('elsewhere', { labels: { job: 'long' } }),
      makePod('other', { namespace: 'batch' }),
    ];
    const sorted = sortPods(pods, { policy });
    expect([names(sorted.awaited), names(sorted.evict)]).toEqual([['batch/here'], ['shop/elsewhere', 'batch/other']]);
    const over = sortPods(pods, { policy, evictAwaited: true });
    expect([names(over.awaited), over.evict.length]).toEqual([[], 3]);
  });

  it('waits for none with an empty selector, which selects nothing', () => {
    const policy = drainPolicy({ waitForPods: { selector: {} } });
    expect(sortPods([makePod('a')], { policy }).awaited).toEqual([]);
  });
});

describe('a pod', () => {
  it('is overdue a minute after its grace period, not after its deletion was asked for', () => {
    const end = '2026-03-01T12:00:00Z';
    const pod = makePod('a', { deletionTimestamp: end });
    expect(isOverdue(pod, Date.parse(end) + 59_000)).toBe(false);
    expect(isOverdue(pod, Date.parse(end) + 61_000)).toBe(true);
    expect(isOverdue(makePod('b'), Date.parse(end) + 61_000)).toBe(false);
  });

  it('names what controls it and the claims behind its volumes', () => {
    const volumes = [
      { name: 'data', persistentVolumeClaim: { claimName: 'data-1' } },
      { name: 'scratch', ephemeral: {} },
      { name: 'cache' },
    ];
    const pod = makePod('db-0', { owner: 'StatefulSet', volumes });
    expect(ownerName(pod)).toBe('shop/StatefulSet/owner');
    expect(ownerName(makePod('bare'))).toBeUndefined();
    expect(claimNames(pod)).toEqual(['data-1', 'db-0-scratch']);
  });
});
