import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { podName, type DrainPod } from '../../../machine-config/drain/drain-pods.js';
import { drainPolicy } from '../../../machine-config/drain/drain-policy.js';
import { drainVerdict } from '../../../machine-config/drain/drain-verdict.js';
import type { RolloutPolicy } from '../../../machine-config/api/rollout-policy.js';
import { makePod } from './make-pod.js';

const SINCE = Date.parse('2026-03-01T12:00:00Z');
const MINUTE = 60_000;
const LONG = { job: 'long' };
const TEMPORAL = { 'app.kubernetes.io/part-of': 'temporal' };

const after = (minutes: number, pods: DrainPod[], rollout: RolloutPolicy = {}) =>
  drainVerdict({ policy: drainPolicy(rollout), pods, since: SINCE, now: SINCE + minutes * MINUTE });
const names = (pods: readonly DrainPod[]) => pods.map(podName);

describe('before the limit', () => {
  it('evicts, whatever holds afterwards', () => {
    for (const onTimeout of ['Wait', 'GiveBack', 'Force'] as const) {
      const verdict = after(59, [makePod('a')], { drain: { onTimeout } });
      expect(verdict, onTimeout).toMatchObject({ act: 'evict', givenUp: [] });
      expect(verdict.giveBack, onTimeout).toBeUndefined();
      expect(names(verdict.move)).toEqual(['shop/a']);
    }
  });

  it('moves Temporal only when nothing else is left, not even a pod that is merely waited for', () => {
    const temporal = makePod('temporal', { labels: TEMPORAL });
    const rollout = { waitForPods: { selector: { matchLabels: LONG } } };
    expect(names(after(1, [temporal, makePod('a')], rollout).move)).toEqual(['shop/a']);
    expect(names(after(1, [temporal, makePod('job', { labels: LONG })], rollout).move)).toEqual([]);
    expect(names(after(1, [temporal], rollout).move)).toEqual(['shop/temporal']);
  });
});

describe('past the limit', () => {
  it('waits on by default', () => {
    expect(after(600, [makePod('a')])).toMatchObject({ act: 'evict' });
    expect(after(600, [makePod('a')]).giveBack).toBeUndefined();
  });

  it('gives the node back and says which pod it was, and when it is tried again', () => {
    const drain = { onTimeout: 'GiveBack', timeout: '30m', retryAfter: '5m' } as const;
    const { giveBack } = after(30, [makePod('a'), makePod('b')], { drain });
    expect(giveBack?.retryAfterSeconds).toBe(300);
    expect(giveBack?.reason).toBe('pod shop/a and 1 more not gone after 30m (spec.rollout.drain.timeout)');
    expect(after(30, [], { drain }).giveBack).toBeUndefined();
  });

  it('deletes past the budgets, and does not wait for what a deletion does not move', () => {
    const drain = { onTimeout: 'Force', timeout: '30m' } as const;
    const stuck = makePod('stuck', { deletionTimestamp: new Date(SINCE).toISOString() });
    const ending = makePod('ending', { deletionTimestamp: new Date(SINCE + 31 * MINUTE).toISOString() });
    const verdict = after(31, [stuck, ending, makePod('a')], { drain });
    expect(verdict.act).toBe('delete');
    expect(names(verdict.left)).toEqual(['shop/ending', 'shop/a']);
    expect(names(verdict.givenUp)).toEqual(['shop/stuck']);
    // Before the limit it is waited for as any other.
    expect(names(after(29, [stuck], { drain }).left)).toEqual(['shop/stuck']);
  });
});

describe('pods to be waited for', () => {
  const job = makePod('job', { labels: LONG });
  const waitForPods = { selector: { matchLabels: LONG }, limit: '2h' };

  it('are not moved, not even by force, before their own limit', () => {
    const verdict = after(119, [job], { waitForPods, drain: { onTimeout: 'Force', timeout: '1m' } });
    expect([names(verdict.move), names(verdict.left), names(verdict.awaited)]).toEqual([
      [],
      ['shop/job'],
      ['shop/job'],
    ]);
    expect(
      after(119, [job], { waitForPods, drain: { onTimeout: 'GiveBack', timeout: '1m' } }).giveBack,
    ).toBeUndefined();
  });

  it('give the node back at their limit, or are evicted, as the pool says', () => {
    expect(after(120, [job], { waitForPods }).giveBack?.reason).toBe(
      'pod shop/job not ended after 2h (spec.rollout.waitForPods.limit)',
    );
    const evicting = after(120, [job], { waitForPods: { ...waitForPods, onLimit: 'Evict' } });
    expect(evicting).toMatchObject({ act: 'evict', awaited: [] });
    expect(names(evicting.move)).toEqual(['shop/job']);
  });
});

it('never moves a pod that it does not count as left, never leaves one out, and forces only when told to', () => {
  const pod = fc.record({
    name: fc.constantFrom('a', 'b', 'c', 'd', 'e'),
    labels: fc.constantFrom({}, LONG, TEMPORAL),
    deletedAt: fc.option(fc.integer({ min: -120, max: 240 }), { nil: undefined }),
  });
  const policies = fc.record({
    onTimeout: fc.constantFrom('Wait' as const, 'GiveBack' as const, 'Force' as const),
    waits: fc.boolean(),
    onLimit: fc.constantFrom('Evict' as const, 'GiveBack' as const),
  });
  fc.assert(
    fc.property(
      fc.uniqueArray(pod, { selector: ({ name }) => name }),
      policies,
      fc.integer({ min: 0, max: 240 }),
      (parts, { onTimeout, waits, onLimit }, minutes) => {
        const pods = parts.map(({ name, labels, deletedAt }) =>
          makePod(name, {
            labels,
            ...(deletedAt === undefined
              ? {}
              : { deletionTimestamp: new Date(SINCE + deletedAt * MINUTE).toISOString() }),
          }),
        );
        const waitForPods = { selector: { matchLabels: LONG }, limit: '2h', onLimit };
        const verdict = after(minutes, pods, { drain: { onTimeout }, ...(waits ? { waitForPods } : {}) });
        expect(verdict.move.every((one) => verdict.left.includes(one))).toBe(true);
        expect(verdict.move.some((one) => verdict.awaited.includes(one))).toBe(false);
        expect([...verdict.left, ...verdict.givenUp].map(podName).sort()).toEqual(pods.map(podName).sort());
        if (verdict.act === 'delete' || verdict.givenUp.length > 0)
          expect([onTimeout, minutes >= 60]).toEqual(['Force', true]);
        if (verdict.giveBack !== undefined) expect(minutes).toBeGreaterThanOrEqual(60);
      },
    ),
  );
});
