import { fc, test } from '@fast-check/vitest';
import { describe, expect, it } from 'vitest';
import { inOrder, type NodeOrder } from '../../../../machine-config/pool/policy/order.js';
import type { NodeFacts } from '../../../../machine-config/pool/facts.js';
import { makeNode } from '../make-node.js';

const named = (nodes: readonly NodeFacts[], order?: NodeOrder, last?: string) =>
  inOrder(nodes, (node) => node, { order, last }).map(({ name }) => name);
const zone = (value: string) => ({ 'topology.kubernetes.io/zone': value });
const born = (day: number) => ({ createdAt: `2026-01-${String(day).padStart(2, '0')}T00:00:00Z` });

describe('the order of a rollout', () => {
  const nodes = [
    makeNode('a', { ...born(3), labels: { ...zone('two'), rank: '10' } }),
    makeNode('b', { ...born(1), labels: { ...zone('two'), rank: '9' } }),
    makeNode('c', { ...born(2), labels: { ...zone('one'), rank: '' } }),
    makeNode('d', { ...born(4) }),
    makeNode('e', { createdAt: '', labels: zone('one'), annotations: { 'example.com/wave': 'late' } }),
  ];

  it.each<[string, NodeOrder | undefined, string[]]>([
    ['oldest first unless asked', undefined, ['b', 'c', 'a', 'd', 'e']],
    ['oldest first', { by: 'OldestFirst' }, ['b', 'c', 'a', 'd', 'e']],
    ['newest first, those of unknown age still last', { by: 'NewestFirst' }, ['d', 'a', 'c', 'b', 'e']],
    ['zone by zone, oldest first in each, without a zone last', { by: 'Zone' }, ['c', 'e', 'b', 'a', 'd']],
    ['by the number in a label, without one last', { by: 'Label', key: 'rank' }, ['b', 'a', 'c', 'd', 'e']],
    ['by an annotation', { by: 'Annotation', key: 'example.com/wave' }, ['e', 'b', 'c', 'a', 'd']],
    ['by a label that nobody has', { by: 'Label', key: 'constructor' }, ['b', 'c', 'a', 'd', 'e']],
  ])('%s', (_, order, expected) => {
    expect(named(nodes, order)).toEqual(expected);
  });

  it('compares as text where one value is no number, and zones always', () => {
    const ranked = ['10', '9', 'x'].map((rank) => makeNode(`r${rank}`, { labels: { rank, ...zone(rank) } }));
    expect(named(ranked, { by: 'Label', key: 'rank' })).toEqual(['r10', 'r9', 'rx']);
    expect(named(ranked.slice(0, 2), { by: 'Label', key: 'rank' })).toEqual(['r9', 'r10']);
    expect(named(ranked.slice(0, 2), { by: 'Zone' })).toEqual(['r10', 'r9']);
  });

  it('puts one node behind all others, whatever the order', () => {
    expect(named(nodes, undefined, 'b')).toEqual(['c', 'a', 'd', 'e', 'b']);
    expect(named(nodes, { by: 'Label', key: 'rank' }, 'b')).toEqual(['a', 'c', 'd', 'e', 'b']);
    expect(named(nodes, undefined, 'nobody')).toEqual(['b', 'c', 'a', 'd', 'e']);
  });

  const order = fc.constantFrom<NodeOrder | undefined>(
    undefined,
    { by: 'NewestFirst' },
    { by: 'Zone' },
    { by: 'Label', key: 'rank' },
  );
  const some = fc
    .array(
      fc.record({
        day: fc.integer({ min: 1, max: 5 }),
        rank: fc.option(fc.constantFrom('1', '2', '10', '-3', '1.5', 'x'), { nil: undefined }),
        zone: fc.option(fc.constantFrom('one', 'two'), { nil: undefined }),
      }),
      { maxLength: 12 },
    )
    .map((list) =>
      list.map(({ day, rank, zone: where }, index) =>
        makeNode(`n${index}`, {
          ...born(day),
          labels: { ...(rank === undefined ? {} : { rank }), ...(where === undefined ? {} : zone(where)) },
        }),
      ),
    );
  test.prop([some, order, fc.infiniteStream(fc.nat())])(
    'is the same for any order of the members, and loses none',
    (members, by, keys) => {
      const keyed = members.map((node) => ({ node, key: keys.next().value as number }));
      const shuffled = keyed.sort((a, b) => a.key - b.key).map(({ node }) => node);
      expect(named(shuffled, by)).toEqual(named(members, by));
      expect(named(members, by).sort()).toEqual(members.map(({ name }) => name).sort());
    },
  );
});
