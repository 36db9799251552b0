import { describe, expect, it } from 'vitest';
import { backoffUntil, slotNeed, standing, takesRoom } from '../../../machine-config/pool/candidates.js';
import { NO_DEMANDS, type OsDemands } from '../../../machine-config/pool/capabilities.js';
import type { NodeFacts } from '../../../machine-config/pool/facts.js';
import { candidatesInOrder } from '../../../machine-config/pool/policy/choice.js';
import { failedOn, makeNode, NEW, NOW, OLD, updatedTo } from './make-node.js';

const MINUTE = 60_000;
const OLDER = 'rendered-worker-older';
const drifted = (name: string, config: string) =>
  makeNode(name, { current: config, desired: config, state: 'Degraded' });
const rolledBack = (name: string, from = NEW): NodeFacts => ({
  ...failedOn(name, NEW, 1, NOW - 120 * MINUTE),
  failure: { target: from, attempts: 1, at: new Date(NOW - 120 * MINUTE).toISOString(), code: 'RolledBackAfterBoot' },
});
const context = { target: NEW, inFlight: new Set<string>(), resting: {}, now: NOW };
const order = (nodes: NodeFacts[]) =>
  candidatesInOrder(
    nodes.map((node) => ({ node, standing: standing(node, context) })),
    {},
  ).map(({ node }) => node.name);

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
    ['a drifted node', drifted('n', NEW), { kind: 'blocked', because: 'drifted' }],
    ['a drifted node whose pool wants another config', drifted('n', OLD), { kind: 'candidate', slot: 'unheld' }],
    [
      'a drifted node that refused that other config a minute ago',
      {
        ...failedOn('n', NEW, 1, NOW - MINUTE + 1),
        failure: { target: NEW, attempts: 1, at: new Date(NOW - MINUTE + 1).toISOString(), code: 'Drifted' },
      },
      { kind: 'blocked', because: 'backoff', until: NOW + 1 },
    ],
    [
      'a drifted node on which a forced update failed, and that is forced no more',
      { ...drifted('n', NEW), failure: { target: NEW, attempts: 1, at: '2026-01-01T00:00:00Z', code: 'ApplyFailed' } },
      { kind: 'blocked', because: 'drifted' },
    ],
    ['a forced drifted node', { ...drifted('n', NEW), force: 'boot-1' }, { kind: 'candidate', slot: 'unheld' }],
    ['a forced node that is well', { ...updatedTo('n', NEW), force: 'boot-1' }, { kind: 'candidate', slot: 'none' }],
    [
      'a node that was forced in an earlier boot',
      { ...drifted('n', NEW), force: 'boot-0', forceGranted: 'boot-0' },
      { kind: 'blocked', because: 'drifted' },
    ],
    [
      'a forced node that was granted its slot',
      { ...drifted('n', NEW), force: 'boot-1', forceGranted: 'boot-1' },
      { kind: 'candidate', slot: 'held' },
    ],
    [
      'a forced node that rebooted in the middle of its update',
      { ...drifted('n', NEW), force: 'boot-0', forceGranted: 'boot-0', applying: NEW, bootId: 'boot-1' },
      { kind: 'candidate', slot: 'down' },
    ],
    ['a node that came back from the target', rolledBack('n'), { kind: 'blocked', because: 'rolledBack' }],
    [
      'a node that came back from the target and is forced',
      { ...rolledBack('n'), force: 'boot-1' },
      { kind: 'candidate', slot: 'held' },
    ],
    ['a node that came back from an older target', rolledBack('n', OLDER), { kind: 'candidate', slot: 'held' }],
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

  const host = { os: 'Debian 12', arch: 'amd64', backend: 'none', cannot: { kernelArguments: 'nothing boots it' } };
  it.each<[string, NodeFacts, Partial<OsDemands>, object]>([
    [
      'cannot do a field that is used',
      makeNode('n', { host }),
      { fields: ['kernelArguments'] },
      { kind: 'blocked', because: 'cannot', detail: 'spec.kernelArguments (nothing boots it)' },
    ],
    ['cannot do a field that is not used', makeNode('n', { host }), { fields: ['extensions'] }, { kind: 'candidate' }],
    ['has not told what it can', makeNode('n'), { fields: ['kernelArguments'] }, { kind: 'candidate' }],
    ['has begun', makeNode('n', { host, desired: NEW }), { fields: ['kernelArguments'] }, { kind: 'candidate' }],
    ['runs it already', { ...updatedTo('n', NEW), host }, { fields: ['kernelArguments'] }, { kind: 'settled' }],
    [
      'has no kernel with large pages',
      makeNode('n', { host }),
      { fields: ['kernelType'], kernelType: '64k-pages' },
      {
        kind: 'blocked',
        because: 'cannot',
        detail: expect.stringMatching(/^spec\.kernelType .*arm64.*amd64/) as string,
      },
    ],
    [
      'has one',
      makeNode('n', { host: { ...host, arch: 'arm64' } }),
      { fields: ['kernelType'], kernelType: '64k-pages' },
      { kind: 'candidate' },
    ],
  ])('judges a node that %s', (_, node, demands, expected) => {
    expect(standing(node, { ...context, demands: { ...NO_DEMANDS, ...demands } })).toMatchObject(expected);
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

describe('standing of a node that people have a word about', () => {
  const at = (ago: number) => NOW - ago * MINUTE;

  it('is blocked while it is held, and named with the reason', () => {
    expect(standing(makeNode('n', { hold: 'disk is\nreplaced' }), context)).toEqual({
      kind: 'blocked',
      because: 'held',
      detail: 'disk is replaced',
    });
  });

  it.each<[string, Partial<NodeFacts>]>([
    ['our cordon is on it', { desired: NEW, cordonedFor: NEW, unschedulable: true }],
    ['its disk is being changed', { desired: NEW, applying: NEW }],
  ])('is brought to its end although it is held: %s', (_, begun) => {
    expect(standing(makeNode('n', { hold: 'disk', ...begun }), context)).toMatchObject({ kind: 'candidate' });
  });

  it('does not begin one that was granted a slot and is held since', () => {
    expect(standing(makeNode('n', { hold: 'disk', desired: NEW }), context)).toMatchObject({ because: 'held' });
  });

  it('passes a cordon of others that was released for this target, and for no other', () => {
    const cordoned = (release: string) => standing(makeNode('n', { unschedulable: true, release }), context);
    expect(cordoned(NEW)).toEqual({ kind: 'candidate', slot: 'unheld' });
    expect(cordoned(OLD)).toMatchObject({ because: 'cordonedByOthers' });
  });

  it.each<[string, NodeFacts]>([
    ['its back-off', failedOn('n', NEW, 4, at(10))],
    [
      'its way back after the boot',
      { ...rolledBack('n'), failure: { ...rolledBack('n').failure!, at: new Date(at(10)).toISOString() } },
    ],
  ])('forgets %s once a retry was asked for, and only what was before that', (_, node) => {
    expect(standing(node, context)).toMatchObject({ kind: 'blocked' });
    expect(standing({ ...node, retryAt: at(5) }, context)).toMatchObject({ kind: 'candidate' });
    expect(standing({ ...node, retryAt: at(15) }, context)).toMatchObject({ kind: 'blocked' });
  });
});

describe('the room of nodes that others cordoned and that were released', () => {
  const released = (name: string) => makeNode(name, { unschedulable: true, release: NEW });

  it('counts against fresh nodes, not against each other', () => {
    expect(slotNeed(released('a'), NEW)).toBe('unheld');
    expect(takesRoom(released('b'), 'none', NEW)).toBe(true);
    expect(takesRoom(released('b'), 'unheld', NEW)).toBe(false);
    expect(takesRoom({ ...released('b'), desired: NEW }, 'unheld', NEW)).toBe(true);
    expect(takesRoom(makeNode('b', { unschedulable: true }), 'unheld', NEW)).toBe(true);
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
