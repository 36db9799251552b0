import { describe, expect, it } from 'vitest';
import { durationOr, parseDuration } from '../../../machine-config/api/duration.js';
import { rolloutPolicySchema } from '../../../machine-config/api/rollout-policy.js';

describe('parseDuration', () => {
  it.each([
    ['45m', 45 * 60_000],
    ['1h30m', 90 * 60_000],
    ['2d', 2 * 86_400_000],
    ['1d2h3m4s', 86_400_000 + 2 * 3_600_000 + 3 * 60_000 + 4000],
    ['0s', 0],
  ])('reads %s', (text, milliseconds) => {
    expect(parseDuration(text)).toBe(milliseconds);
  });

  it.each(['', '45', 'm', '1m1h', '-5m', '1.5h', '5 m', '1w', '10ms'])('does not read %j', (text) => {
    expect(parseDuration(text)).toBeUndefined();
    expect(durationOr(text, 7)).toBe(7);
  });
});

describe('spec.rollout', () => {
  const problems = (policy: unknown): string[] => {
    const parsed = rolloutPolicySchema.safeParse(policy);
    return parsed.success ? [] : parsed.error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`);
  };

  it('takes a policy that uses every part', () => {
    const policy = {
      order: { by: 'Label', key: 'example.com/rank' },
      stages: [
        { name: 'canary', count: 1, soak: '1h', gates: [{ name: 'quiet', nodeReady: { for: '10m' } }] },
        { name: 'tenth', percent: '10%', approval: 'Required' },
        { name: 'edge', nodeSelector: { matchLabels: { site: 'edge' } } },
        { name: 'others' },
      ],
      soak: '30s',
      pace: { growth: 'Linear', start: 2, step: 3 },
      maxUnavailablePerZone: { maxUnavailable: '50%' },
      preferUpdatedNodes: false,
      windows: {
        timeZone: 'Europe/Berlin',
        allow: [{ days: ['Fri'], start: '22:00', length: '6h' }],
        exclude: [{ from: '2026-12-24', to: '2026-12-26' }],
        onClose: 'GiveBack',
      },
      gates: {
        betweenNodes: [
          { name: 'alerts', prometheus: { url: 'http://prometheus.example:9090', query: 'ALERTS' } },
          { name: 'shop', available: { namespace: 'shop', selector: { matchLabels: { app: 'cart' } } } },
          { name: 'dns', condition: { apiVersion: 'v1', kind: 'Node', name: 'n1', type: 'Ready' } },
        ],
        afterNode: [{ name: 'pods', podsRescheduled: {} }],
      },
      failureBudget: { nodes: 3 },
      rebootTimeout: '1h',
      onFailure: 'Rollback',
      after: ['canaries'],
      drain: { timeout: '2h', onTimeout: 'Force', retryAfter: '5m' },
      waitForPods: { selector: { matchLabels: { job: 'long' } }, namespaces: ['batch'], limit: '8h', onLimit: 'Evict' },
    };
    expect(problems(policy)).toEqual([]);
  });

  it.each([
    [{ order: { by: 'Label' } }, 'order: key is needed with Label and Annotation'],
    [{ order: { by: 'Zone', key: 'zone' } }, 'order: key is needed with Label and Annotation'],
    [{ soak: '10 minutes' }, 'soak: must be a duration such as 45m'],
    [{ soak: '' }, 'soak: must be a duration such as 45m'],
    [{ stages: [{ name: 'a', count: 1, percent: '5%' }] }, 'stages.0: at most one of count, percent and nodeSelector'],
    [{ stages: [{ name: 'a' }, { name: 'b' }] }, ': only one stage may hold all nodes left'],
    [{ stages: [{ name: 'a', count: 1 }, { name: 'a' }] }, 'stages: two entries have the same name'],
    [{ stages: [{ name: 'a', percent: '0%' }] }, 'stages.0.percent: must be a percentage from 1% to 100%'],
    [{ gates: { afterNode: [{ name: 'g' }] } }, 'gates.afterNode.0: exactly one of nodeReady'],
    [
      { gates: { afterNode: [{ name: 'g', condition: { apiVersion: 'v1', kind: 'Node', type: 'Ready' } }] } },
      'gates.afterNode.0: condition needs either name or selector',
    ],
    [{ windows: { timeZone: 'UTC', allow: [{ start: '24:00', length: '1h' }] } }, 'must be a time such as 22:00'],
    [
      { windows: { timeZone: 'UTC', allow: [], exclude: [{ from: '24.12.2026' }] } },
      'must be a date such as 2026-12-24',
    ],
    [{ drain: { onTimeout: 'Kill' } }, 'drain.onTimeout: '],
    [{ windws: {} }, 'Unrecognized key'],
  ])('refuses %j', (policy, expected) => {
    expect(problems(policy).join('\n')).toContain(expected);
  });
});
