import { describe, expect, it } from 'vitest';
import { clip, countOf, nameSome, timeOf } from '../../../machine-config/pool/sentences.js';

describe('clip', () => {
  it('puts a text on one line and shows where it was cut', () => {
    expect(clip(' a\n b\t c ', 10)).toBe('a b c');
    expect(clip('abcdef', 6)).toBe('abcdef');
    expect(clip('abcdefg', 6)).toBe('abcde…');
  });
});

describe('nameSome', () => {
  it.each([
    [[], ''],
    [['a'], 'a'],
    [['a', 'b'], 'a and b'],
    [['a', 'b', 'c'], 'a, b and c'],
    [['a', 'b', 'c', 'd'], 'a, b, c and 1 more'],
  ])('names %j', (names, expected) => {
    expect(nameSome(names, 3)).toBe(expected);
  });
});

describe('countOf and timeOf', () => {
  it('write numbers with their noun and times in UTC', () => {
    expect([countOf(0, 'node'), countOf(1, 'node'), countOf(2, 'node')]).toEqual(['0 nodes', '1 node', '2 nodes']);
    expect(timeOf(Date.parse('2026-03-01T13:05:00.123+01:00'))).toBe('2026-03-01T12:05:00Z');
  });
});
