import { describe, expect, it } from 'vitest';
import { drainPolicy } from '../../../machine-config/drain/drain-policy.js';
import { inWords } from '../../../machine-config/drain/duration-words.js';

const HOUR = 3_600_000;

describe('the drain policy of a pool', () => {
  it('waits for an hour and then on, where nothing is said', () => {
    const byDefault = { timeoutMs: HOUR, onTimeout: 'Wait', retryAfterMs: HOUR / 4, remembersOwners: false };
    expect(drainPolicy(undefined)).toEqual(byDefault);
    expect(drainPolicy({})).toEqual(byDefault);
  });

  it('is what the pool says', () => {
    const selector = { matchLabels: { job: 'long' } };
    const policy = drainPolicy({
      drain: { timeout: '90m', onTimeout: 'Force', retryAfter: '30s' },
      waitForPods: { selector, limit: '2h', onLimit: 'Evict' },
    });
    expect(policy).toMatchObject({ timeoutMs: 1.5 * HOUR, onTimeout: 'Force', retryAfterMs: 30_000 });
    expect(policy.waitFor).toEqual({ selector, limitMs: 2 * HOUR, onLimit: 'Evict' });
  });

  it('gives a node back where pods to be waited for have a limit and no more is said', () => {
    const selector = { matchLabels: { job: 'long' } };
    expect(drainPolicy({ waitForPods: { selector, limit: '2h' } }).waitFor?.onLimit).toBe('GiveBack');
    expect(drainPolicy({ waitForPods: { selector } }).waitFor?.limitMs).toBeUndefined();
  });

  it.each([
    ['between nodes', { gates: { betweenNodes: [{ name: 'back', podsRescheduled: {} }] } }, true],
    ['after each node', { gates: { afterNode: [{ name: 'back', podsRescheduled: {} }] } }, true],
    ['before a stage', { stages: [{ name: 'rest', gates: [{ name: 'back', podsRescheduled: {} }] }] }, true],
    ['never', { gates: { afterNode: [{ name: 'ready', nodeReady: { for: '1m' } }] } }, false],
  ])('remembers whose pods were evicted if a gate asks for them %s', (_, rollout, remembers) => {
    expect(drainPolicy(rollout).remembersOwners).toBe(remembers);
  });
});

it.each([
  [0, '0s'],
  [999, '0s'],
  [61_000, '1m1s'],
  [90 * 60_000, '1h30m'],
  [49 * HOUR, '2d1h'],
])('writes %i milliseconds as %s', (milliseconds, words) => {
  expect(inWords(milliseconds)).toBe(words);
});
