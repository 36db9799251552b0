import { describe, expect, it } from 'vitest';
import { namesIn, unusedConfigs, type UnusedConfigsInput } from '../../../machine-config/render/unused-configs.js';

const HOUR = 3_600_000;
const NOW = Date.parse('2026-03-01T12:00:00Z');
const name = (digit: string, pool = 'worker') => `rendered-${pool}-${digit.repeat(32)}`;
/** One made so many hours ago. */
const made = (digit: string, hours: number, pool?: string) => ({
  name: name(digit, pool),
  createdAt: NOW - hours * HOUR,
});

const unused = (input: Partial<UnusedConfigsInput>) =>
  unusedConfigs({ pool: 'worker', configs: [], named: new Set(), keep: 0, minAgeMs: 24 * HOUR, now: NOW, ...input });

describe('rendered configs that may be deleted', () => {
  const configs = [made('a', 100), made('b', 90), made('c', 80), made('d', 70), made('e', 60)];

  it('are those that nothing names, oldest first', () => {
    expect(unused({ configs, named: new Set([name('b'), name('e')]) })).toEqual([name('a'), name('c'), name('d')]);
  });

  it.each([
    [0, ['a', 'b', 'c', 'd', 'e']],
    [1, ['a', 'b', 'c', 'd']],
    [4, ['a']],
    [5, []],
    [9, []],
  ])('are all but the newest %d', (keep, left) => {
    expect(unused({ configs, keep })).toEqual(left.map((digit) => name(digit)));
    expect(unused({ configs: configs.toReversed(), keep })).toEqual(left.map((digit) => name(digit)));
  });

  it('are not counted among the kept ones while something names them', () => {
    expect(unused({ configs, keep: 2, named: new Set([name('e'), name('d')]) })).toEqual([name('a')]);
  });

  it('are never young', () => {
    expect(unused({ configs: [made('a', 25), made('b', 23)] })).toEqual([name('a')]);
  });

  it('are never of another pool, nor anything else', () => {
    const others = [
      made('a', 100, 'infra'),
      { name: '50-mine', createdAt: 0 },
      { name: 'rendered-worker-short', createdAt: 0 },
    ];
    expect(unused({ configs: others })).toEqual([]);
  });
});

describe('names of rendered configs', () => {
  it.each<[string, unknown, string[]]>([
    ['a field', { spec: { configuration: { name: name('a') } } }, [name('a')]],
    ['JSON in an annotation', { x: JSON.stringify({ target: name('a'), at: 'now' }) }, [name('a')]],
    ['a sentence', [`from ${name('a')} to ${name('b')}.`], [name('a'), name('b')]],
    ['a pool with a dot and a dash', [name('a', 'edge-1.eu')], [name('a', 'edge-1.eu')]],
    ['a pool named as if it were rendered', [name('a', 'rendered-x')], [name('a', 'rendered-x')]],
    ['nothing', undefined, []],
    ['what only looks like one', ['rendered-worker', `rendered-worker-${'a'.repeat(31)}`], []],
  ])('are found in %s', (_, value, names) => {
    expect([...namesIn(value)]).toEqual(names);
  });
});
