import { describe, expect, it } from 'vitest';
import { matchesSelector, type LabelSelector } from '../../../machine-config/api/label-selector.js';

const worker = { role: 'worker', zone: 'a', empty: '' };

describe('matchesSelector', () => {
  it.each([undefined, null, {}, { matchLabels: {} }, { matchLabels: {}, matchExpressions: [] }])(
    'selects nothing with the empty selector %j',
    (selector) => {
      expect(matchesSelector(selector, worker)).toBe(false);
      expect(matchesSelector(selector, {})).toBe(false);
    },
  );

  it.each<[string, LabelSelector, boolean]>([
    ['a label with its value', { matchLabels: { role: 'worker' } }, true],
    ['a label with another value', { matchLabels: { role: 'master' } }, false],
    ['an empty value', { matchLabels: { empty: '' } }, true],
    ['an absent label against an empty value', { matchLabels: { absent: '' } }, false],
    [
      'a name that every JavaScript object inherits',
      { matchExpressions: [{ key: 'toString', operator: 'Exists' }] },
      false,
    ],
    ['In with the value', { matchExpressions: [{ key: 'zone', operator: 'In', values: ['b', 'a'] }] }, true],
    ['In without the value', { matchExpressions: [{ key: 'zone', operator: 'In', values: ['b'] }] }, false],
    ['In on an absent label', { matchExpressions: [{ key: 'absent', operator: 'In', values: ['a'] }] }, false],
    ['NotIn with the value', { matchExpressions: [{ key: 'zone', operator: 'NotIn', values: ['a'] }] }, false],
    ['NotIn without the value', { matchExpressions: [{ key: 'zone', operator: 'NotIn', values: ['b'] }] }, true],
    ['NotIn on an absent label', { matchExpressions: [{ key: 'absent', operator: 'NotIn', values: ['a'] }] }, true],
    ['Exists on an empty value', { matchExpressions: [{ key: 'empty', operator: 'Exists' }] }, true],
    ['Exists on an absent label', { matchExpressions: [{ key: 'absent', operator: 'Exists' }] }, false],
    ['DoesNotExist on an absent label', { matchExpressions: [{ key: 'absent', operator: 'DoesNotExist' }] }, true],
    ['DoesNotExist on an empty value', { matchExpressions: [{ key: 'empty', operator: 'DoesNotExist' }] }, false],
    [
      'labels and expressions of which one fails',
      { matchLabels: { role: 'worker' }, matchExpressions: [{ key: 'zone', operator: 'In', values: ['b'] }] },
      false,
    ],
  ])('judges %s', (_what, selector, expected) => {
    expect(matchesSelector(selector, worker)).toBe(expected);
  });

  it('takes absent labels as no labels', () => {
    expect(matchesSelector({ matchExpressions: [{ key: 'a', operator: 'DoesNotExist' }] }, undefined)).toBe(true);
    expect(matchesSelector({ matchLabels: { a: 'b' } }, null)).toBe(false);
  });
});
