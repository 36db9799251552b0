import { describe, expect, it } from 'vitest';
import { backoffUntil, candidatesInOrder, standing } from '../../../machine-config/pool/candidates.js';
import type { NodeFacts } from '../../../machine-config/pool/facts.js';
import { failedOn, makeNode, NEW, NOW, OLD, updatedTo } from './make-node.js';

const MINUTE = 60_000;
const context = { target: NEW, inFlight: new Set<string>(), resting: {}, now: NOW };
const order = (nodes: NodeFacts[]) => candidatesInOrder(nodes, context).map(({ node }) => node.name);

describe('backoffUntil', () => {
  it.each([
    [1, 1],
    [2, 5],
    [3, 15],
    [4, 60],
    [50, 60],
    [0, 1],
  ])('lets a node rest after failure %i for %i minutes', (attempts, minutes) => {
    const failure = { target: NEW, attempts, at: new Date(NOW).toISOString() };
    expect(backoffUntil(failure, NEW)).toBe(NOW + minutes * MINUTE);
  });

  it('does not hold a node back from another target, or over a time that cannot be read', () => {
    expect(backoffUntil({ target: OLD, attempts: 9, at: new Date(NOW).toISOString() }, NEW)).toBeUndefined();
    expect(backoffUntil({ target: NEW, attempts: 1, at: 'yesterday' }, NEW)).toBeUndefined();
    expect(backoffUntil(undefined, NEW)).toBeUndefined();
  });
});

describe('standing', () => {
  it.each<[string, NodeFacts, object]>([
    ['an outdated node', makeNode('n'), { kind: 'candidate', slot: 'none' }],
    ['a granted node without a running update', makeNode('n', { desired: NEW }), { kind: 'candidate', slot: 'held' }],
    [
      'a node that we cordoned and left behind',
      makeNode('n', { desired: NEW, unschedulable: true, cordonedFor: NEW }),
      { kind: 'candidate', slot: 'down' },
    ],
    [
      'an updated node with our cordon left',
      { ...updatedTo('n', NEW), unschedulable: true, cordonedFor: NEW },
      { kind: 'candidate', slot: 'down' },
    ],
    ['an updated node', updatedTo('n', NEW), { kind: 'settled' }],
    ['an updated node that others cordoned', { ...updatedTo('n', NEW), unschedulable: true }, { kind: 'settled' }],
    ['an unmanaged node', makeNode('n', { worker: undefined }), { kind: 'blocked', because: 'unmanaged' }],
    ['a node that is not ready', makeNode('n', { ready: false }), { kind: 'blocked', because: 'notReady' }],
    ['a cordoned node', makeNode('n', { unschedulable: true }), { kind: 'blocked', because: 'cordonedByOthers' }],
    ['a drifted node', makeNode('n', { state: 'Degraded' }), { kind: 'blocked', because: 'drifted' }],
    ['a node under deletion', makeNode('n', { deleting: true }), { kind: 'blocked', because: 'deleting' }],
    [
      'a node that failed twice four minutes ago',
      failedOn('n', NEW, 2, NOW - 4 * MINUTE),
      { kind: 'blocked', because: 'backoff', until: NOW + MINUTE },
    ],
    [
      'a node that failed twice five minutes ago',
      failedOn('n', NEW, 2, NOW - 5 * MINUTE),
      { kind: 'candidate', slot: 'held' },
    ],
    ['a node stuck on an older target', failedOn('n', 'rendered-bad', 9, NOW), { kind: 'candidate', slot: 'held' }],
  ])('judges %s', (_, node, expected) => {
    expect(standing(node, context)).toEqual(expected);
  });

  it('leaves a node alone that is in flight, or that rests until its time has come', () => {
    const node = makeNode('n');
    expect(standing(node, { ...context, inFlight: new Set(['n']) })).toEqual({ kind: 'running' });
    expect(standing(node, { ...context, resting: { n: NOW + 5 } })).toEqual({
      kind: 'blocked',
      because: 'resting',
      until: NOW + 5,
    });
    expect(standing(node, { ...context, resting: { n: NOW } })).toMatchObject({ kind: 'candidate' });
  });

  it('does not take a node name for a property of objects', () => {
    expect(standing(makeNode('constructor'), context)).toMatchObject({ kind: 'candidate' });
  });
});

describe('candidatesInOrder', () => {
  it('puts the oldest first, whatever form the time has, then the name', () => {
    const nodes = [
      makeNode('d', { createdAt: '' }),
      makeNode('c', { createdAt: '2026-01-01T00:00:00.000Z' }),
      makeNode('b', { createdAt: '2026-01-01T00:00:00Z' }),
      makeNode('a', { createdAt: '2026-01-02T00:00:00Z' }),
      makeNode('Z', { createdAt: '2026-01-01T01:00:00+01:00' }),
    ];
    expect(order(nodes)).toEqual(['Z', 'b', 'c', 'a', 'd']);
  });

  it('puts nodes that were left half-way before everything else: applying, then granted or cordoned', () => {
    const young = '2026-02-01T00:00:00Z';
    expect(
      order([
        makeNode('old'),
        makeNode('granted', { createdAt: young, desired: NEW }),
        makeNode('applying', { createdAt: young, desired: NEW, applying: NEW }),
      ]),
    ).toEqual(['applying', 'granted', 'old']);
  });
});
