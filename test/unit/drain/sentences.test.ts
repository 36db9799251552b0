import { describe, expect, it } from 'vitest';
import { blockedSentence, byWeight, isBlocking, type Blocker } from '../../../machine-config/drain/drain-sentence.js';
import { lastUpdateText } from '../../../machine-config/drain/last-update.js';

const SINCE = Date.parse('2026-03-01T02:14:00Z');
const budget: Blocker = { pod: 'shop/cart-1', why: 'PDB shop/cart allows 0 disruptions', cause: 'budget' };
const going: Blocker = { pod: 'shop/web-1', why: 'is being deleted, until 2026-03-01T02:15:00Z', cause: 'going' };

describe('what a drain waits for', () => {
  it('is one sentence: what, which pod, since when, and what would help', () => {
    expect(blockedSentence('n1', SINCE, [budget, going])).toBe(
      'Waiting: PDB shop/cart allows 0 disruptions (pod shop/cart-1 and 1 more); drain of n1 since ' +
        '2026-03-01T02:14:00Z; free the pod or scale up what its budget guards',
    );
    expect(blockedSentence('n1', SINCE, [])).toBe('Waiting: drain of n1 since 2026-03-01T02:14:00Z');
  });

  it('fits an annotation, however long the names are', () => {
    expect(blockedSentence('n1', SINCE, [{ ...budget, why: 'x'.repeat(2000) }])).toHaveLength(500);
  });

  it('names what somebody has to do something about before what goes by itself', () => {
    const awaited: Blocker = { pod: 'shop/job', why: 'is waited for until it ends', cause: 'awaited' };
    expect([going, awaited, budget].sort(byWeight)).toEqual([budget, awaited, going]);
    expect([going, awaited, budget].map(isBlocking)).toEqual([false, true, true]);
  });
});

describe('the times of the last update', () => {
  const now = new Date('2026-03-01T03:00:00Z');
  const times = { target: 'rendered-1', now, rebooted: true };

  it('are those of its steps, as far as the node knows them', () => {
    const text = lastUpdateText({
      ...times,
      drainSince: SINCE,
      applyAt: '2026-03-01T02:50:00Z',
      appliedAt: '2026-03-01T02:50:20Z',
    });
    const seconds = { drain: 2160, apply: 20, reboot: 580, total: 2760 };
    expect(JSON.parse(text)).toEqual({ target: 'rendered-1', at: now.toISOString(), seconds });
  });

  it('leave out what is not known, and what a clock that was set makes nonsense of', () => {
    expect(JSON.parse(lastUpdateText({ ...times, rebooted: false }))).toMatchObject({ seconds: {} });
    const text = lastUpdateText({ ...times, drainSince: SINCE, applyAt: '2026-03-01T01:00:00Z', appliedAt: 'never' });
    expect(JSON.parse(text)).toMatchObject({ seconds: { total: 2760 } });
  });
});
