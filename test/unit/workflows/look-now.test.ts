import { describe, expect, it } from 'vitest';
import { DEFAULT_TUNING } from '../../../workflows/contract/inputs.js';
import { refusalToLook, willLook } from '../../../workflows/look-now.js';

const input = { cluster: 'cluster-1', pool: 'worker', tuning: DEFAULT_TUNING };
const good = { cluster: 'cluster-1', pool: 'worker' };
const seen = { exists: true, needsRollout: false, target: 'rendered-worker-1' };

describe('refusalToLook', () => {
  it('says yes to whoever means this pool of this cluster, before and after the first look', () => {
    expect(refusalToLook(good, input, undefined)).toBeUndefined();
    expect(refusalToLook(good, input, seen)).toBeUndefined();
  });

  it.each([
    ['nothing', undefined],
    ['null', null],
    ['a text', 'worker'],
    ['no cluster', { pool: 'worker' }],
    ['a number for a name', { cluster: 'cluster-1', pool: 7 }],
  ])('refuses %s', (_what, request) => {
    expect(refusalToLook(request, input, seen)).toMatch(/^pool worker: a request names its cluster and its pool/);
  });

  it('refuses another cluster by name, and another pool, without repeating all that it is told', () => {
    expect(refusalToLook({ ...good, cluster: 'cluster-2' }, input, seen)).toMatch(
      /^pool worker: this Temporal namespace serves the cluster cluster-1, not cluster-2: .*--temporal-namespace$/,
    );
    expect(refusalToLook({ ...good, pool: 'x'.repeat(100_000) }, input, seen)?.length).toBeLessThan(400);
  });

  it('refuses a pool that is gone or on its way there', () => {
    expect(refusalToLook(good, input, { ...seen, exists: false })).toBe('pool worker: it does not exist any more');
    expect(refusalToLook(good, input, { ...seen, deleting: true })).toMatch(/^pool worker: it is being deleted/);
  });
});

describe('willLook', () => {
  it('tells what the pool wanted so far, where it knows', () => {
    const first = 'the configs of worker are rendered and its nodes looked at now';
    expect(willLook(input, undefined)).toEqual({ sentence: first });
    expect(willLook(input, seen)).toEqual({ sentence: `${first}; it wanted rendered-worker-1 so far` });
    expect(willLook(input, { ...seen, target: null }).sentence).toBe(`${first}; it had no rendered config yet`);
  });
});
