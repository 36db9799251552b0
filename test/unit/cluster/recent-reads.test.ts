import { describe, expect, it } from 'vitest';
import { RecentReads } from '../../../activities/cluster/recent-reads.js';

describe('reads that are shared', () => {
  it('serve all who ask for the same in time, and nobody afterwards', async () => {
    let now = 0;
    let count = 0;
    const reads = new RecentReads<number>(1_000, () => now);
    const read = (what: string) => reads.read(what, () => Promise.resolve((count += 1)));
    expect(await Promise.all([read('a'), read('a'), read('b')])).toEqual([1, 1, 2]);
    now = 999;
    expect(await read('a')).toBe(1);
    now = 1_000;
    expect(await read('a')).toBe(3);
  });

  it('tell a failure to those who asked together, and read again for the next', async () => {
    const reads = new RecentReads<string>(1_000, () => 0);
    const fails = () => Promise.reject(new Error('away'));
    const asked = [reads.read('a', fails), reads.read('a', () => Promise.resolve('never read'))];
    expect((await Promise.allSettled(asked)).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    expect(await reads.read('a', () => Promise.resolve('there'))).toBe('there');
  });
});
