import { describe, expect, it } from 'vitest';
import type { NodeFacts } from '../../../../machine-config/pool/facts.js';
import { makeNode, NEW } from '../make-node.js';
import { decide, MINUTE, plan, pooled, starts, updatedAgo } from './make-rollout.js';

const inZone = (name: string, zone: string | undefined, more: Partial<NodeFacts> = {}) =>
  makeNode(name, { labels: zone === undefined ? {} : { 'topology.kubernetes.io/zone': zone }, ...more });

describe('maxUnavailablePerZone', () => {
  const pool = (maxUnavailable: number | string, more: object = {}) =>
    pooled({ maxUnavailablePerZone: { maxUnavailable, ...more } }, { maxUnavailable: 4 });
  const members = [
    inZone('a', 'one'),
    inZone('b', 'one'),
    inZone('c', 'two'),
    inZone('d', undefined),
    inZone('e', undefined),
  ];

  it('lets so many of each zone go at once, within the limit of the pool; nodes without a zone are in none', () => {
    expect(starts(pool(1), members)).toEqual(['a', 'c', 'd', 'e']);
    expect(starts(pool(2), members)).toEqual(['a', 'b', 'c', 'd']);
  });

  it('counts whoever is unavailable in the zone, seen or in flight', () => {
    for (const other of [{ ready: false }, { unschedulable: true }, { desired: NEW }]) {
      const nodes = [inZone('a', 'one', other), inZone('b', 'one'), inZone('c', 'two')];
      expect(starts(pool(1), nodes, { inFlight: other.desired === undefined ? [] : ['a'] })).toEqual(['c']);
      expect(decide(pool(1), nodes, { name: 'b' })).toMatchObject({
        code: 'ZoneFull',
        sentence: expect.stringMatching(
          /b gets no slot: in zone one 1 may be unavailable at once, and is a, see spec/,
        ) as string,
      });
      expect(decide(pool(1), nodes, { name: 'c' })).toMatchObject({ outcome: 'granted' });
    }
    expect(starts(pool(1), members, { inFlight: ['a'] })).toEqual(['c', 'd', 'e']);
  });

  it('may be a percentage of the nodes of the zone, and at least one', () => {
    const six = ['1', '2', '3', '4', '5', '6'].map((name) => inZone(name, 'one'));
    const wide = { maxUnavailable: 6 };
    const half = pooled({ maxUnavailablePerZone: { maxUnavailable: '50%' } }, wide);
    expect(starts(half, six)).toHaveLength(3);
    expect(starts(half, six.slice(0, 1))).toHaveLength(1);
  });

  it('may be by any label', () => {
    const racks = ['a', 'b'].map((name) => makeNode(name, { labels: { rack: 'r1' } }));
    expect(starts(pool(1, { label: 'rack' }), racks)).toEqual(['a']);
  });

  it('says why a node waits that has a slot, but none in its zone', () => {
    const nodes = [inZone('a', 'one', { ready: false }), inZone('b', 'one')];
    expect(plan(pool(1), nodes).waiting).toMatchObject({
      code: 'ZoneFull',
      sentence: expect.stringMatching(/^1 node of pool worker waits: in zone one 1 may be .* is a,/) as string,
    });
  });

  it.each([0, '0%', 'x', -1])('starts nothing where it is written as %j', (written) => {
    expect(plan(pool(written), members)).toMatchObject({
      start: [],
      waiting: {
        code: 'MaxUnavailableInvalid',
        sentence: expect.stringContaining('spec.rollout.maxUnavailablePerZone') as string,
      },
    });
    expect(decide(pool(written), members, { name: 'd' })).toMatchObject({ code: 'MaxUnavailableInvalid' });
  });
});

describe('the pace, as room', () => {
  const slow = pooled({ pace: { growth: 'Linear' } }, { maxUnavailable: 3 });
  const left = ['x', 'y', 'z'].map((name) => makeNode(name));

  it('lets fewer start than there are slots, counts what is in work, and grows', () => {
    expect(starts(slow, left)).toEqual(['x']);
    expect(starts(slow, left, { inFlight: ['x'] })).toEqual([]);
    expect(starts(slow, [updatedAgo('a', MINUTE), ...left])).toEqual(['x', 'y']);
  });

  it('is not used up by nodes that others took out of service', () => {
    expect(starts(slow, [makeNode('down', { ready: false }), ...left])).toEqual(['x']);
  });

  it('says why a node waits that has a slot', () => {
    const members = [makeNode('w', { desired: NEW }), ...left];
    expect(plan(slow, members, { inFlight: ['w'] }).waiting).toMatchObject({
      code: 'PaceFull',
      sentence: expect.stringMatching(
        /^3 nodes of pool worker wait: the pace .* allows 1 at once by now, in work is w;/,
      ) as string,
    });
    expect(decide(slow, members, { name: 'x' })).toMatchObject({ code: 'PaceFull' });
  });
});
