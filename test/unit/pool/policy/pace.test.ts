import { fc, test } from '@fast-check/vitest';
import { describe, expect, it } from 'vitest';
import { paceLimit, paceOf } from '../../../../machine-config/pool/policy/pace.js';
import { failedOn, makeNodes, makePool, NEW, NOW, OLD } from '../make-node.js';
import { updatedAgo } from './make-rollout.js';

const sizes = (pace: Parameters<typeof paceLimit>[0], limit: number, upTo: number) =>
  Array.from({ length: upTo + 1 }, (_, updated) => paceLimit(pace, { updated, failed: 0, limit }));

describe('the pace of a rollout', () => {
  it('is the limit where none is written, and with Constant, unless that has a start', () => {
    expect(paceLimit(undefined, { updated: 0, failed: 3, limit: 5 })).toBe(5);
    expect(sizes({ growth: 'Constant' }, 5, 2)).toEqual([5, 5, 5]);
    expect(sizes({ growth: 'Constant', start: 2 }, 5, 2)).toEqual([2, 2, 2]);
    expect(sizes({ growth: 'Constant', start: 9 }, 5, 0)).toEqual([5]);
  });

  it('grows by a step after each batch', () => {
    // 1, then 2, then 3 at once, then 4.
    expect(sizes({ growth: 'Linear' }, 4, 7)).toEqual([1, 2, 2, 3, 3, 3, 4, 4]);
    expect(sizes({ growth: 'Linear', start: 2, step: 3 }, 6, 7)).toEqual([2, 2, 5, 5, 5, 5, 5, 6]);
  });

  it('doubles after each batch', () => {
    expect(sizes({ growth: 'Exponential' }, 6, 8)).toEqual([1, 2, 2, 4, 4, 4, 4, 6, 6]);
    expect(sizes({ growth: 'Exponential', start: 3 }, 100, 9)).toEqual([3, 3, 3, 6, 6, 6, 6, 6, 6, 12]);
  });

  it('halves with each failed node and never stops', () => {
    const at = (failed: number) => paceLimit({ growth: 'Constant' }, { updated: 0, failed, limit: 10 });
    expect([0, 1, 2, 3, 4, 2000].map(at)).toEqual([10, 5, 2, 1, 1, 1]);
  });

  const pace = fc.record(
    {
      growth: fc.constantFrom('Constant' as const, 'Linear' as const, 'Exponential' as const),
      start: fc.integer({ min: 1, max: 20 }),
      step: fc.integer({ min: 1, max: 20 }),
    },
    { requiredKeys: ['growth'] },
  );
  test.prop([pace, fc.nat(200), fc.nat(5), fc.integer({ min: 1, max: 50 })])(
    'is from 1 to the limit, rises with what is updated and falls with what has failed',
    (written, updated, failed, limit) => {
      const size = paceLimit(written, { updated, failed, limit });
      expect(size).toBeGreaterThanOrEqual(1);
      expect(size).toBeLessThanOrEqual(limit);
      expect(paceLimit(written, { updated: updated + 1, failed, limit })).toBeGreaterThanOrEqual(size);
      expect(paceLimit(written, { updated, failed: failed + 1, limit })).toBeLessThanOrEqual(size);
    },
  );
});

describe('the pace of a pool', () => {
  const pool = (more: object = {}) =>
    makePool({ rollout: { pace: { growth: 'Linear' } }, rolloutStartedAt: NOW - 60_000, ...more });
  const updated = ['a', 'b', 'c'].map((name) => updatedAgo(name, 30_000));

  it('counts what this rollout has updated, and nothing from before', () => {
    expect(paceOf(pool(), [...updated, ...makeNodes('d', 'e')], 9)).toBe(3);
    expect(paceOf(pool({ rolloutStartedAt: NOW - 10_000 }), updated, 9)).toBe(1);
    expect(paceOf(pool({ target: 'rendered-worker-newer' }), updated, 9)).toBe(1);
  });

  it('is at its start as long as nobody knows when the rollout began', () => {
    const unknown = makePool({ rollout: { pace: { growth: 'Linear' } } });
    expect(paceOf(unknown, updated, 9)).toBe(1);
  });

  it('shrinks by nodes that failed on this target since the pool was resumed', () => {
    const members = [...updated, failedOn('f', NEW, 1, NOW - 5000), failedOn('g', OLD, 1, NOW - 5000)];
    expect(paceOf(pool(), members, 9)).toBe(1);
    expect(paceOf(pool({ resumedAt: NOW }), members, 9)).toBe(3);
    expect(paceOf(pool(), [...updated, { ...failedOn('f', NEW, 1, NOW - 5000), retryAt: NOW }], 9)).toBe(3);
  });
});
