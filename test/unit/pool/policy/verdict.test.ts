import { describe, expect, it } from 'vitest';
import type { RolloutPolicy } from '../../../../machine-config/api/rollout-policy.js';
import type { ClusterFacts, NodeFacts, PoolFacts } from '../../../../machine-config/pool/facts.js';
import { failedOn, makeNode, makeNodes, NEW, NOW, OLD } from '../make-node.js';
import { decide, MINUTE, plan, pooled, starts, updatedAgo } from './make-rollout.js';

const two = makeNodes('a', 'b');
const other = (name: string, more: Partial<ClusterFacts['others'][number]> = {}) => ({
  name,
  updated: true,
  rolling: false,
  ...more,
});
const cluster = (...others: ClusterFacts['others']): ClusterFacts => ({ others });
const says = (code: string, sentence: RegExp) => ({ code, sentence: expect.stringMatching(sentence) as string });
const NEVER: RolloutPolicy = { windows: { timeZone: 'UTC', allow: [] } };

/** planTurn and assign say the same, and nothing starts. */
function expectClosed(
  pool: PoolFacts,
  members: NodeFacts[],
  code: string,
  { sentence = /\S/, ...more }: { sentence?: RegExp; cluster?: ClusterFacts; controlPlane?: { obstacle: string } } = {},
) {
  expect(plan(pool, members, more)).toMatchObject({ start: [], done: false, waiting: says(code, sentence) });
  expect(decide(pool, members, { name: 'b', ...more })).toMatchObject({ outcome: 'refused', ...says(code, sentence) });
}

function expectOpen(pool: PoolFacts, members: NodeFacts[], more: { cluster?: ClusterFacts } = {}) {
  expect(starts(pool, members, more)).toContain('b');
  expect(decide(pool, members, { name: 'b', ...more })).toMatchObject({ outcome: 'granted' });
}

describe('the switch that stops everything', () => {
  const stopped: ClusterFacts = { stop: 'storage is on fire', others: [] };

  it('starts nothing, says why and how to go on', () => {
    const sentence = /Everything is stopped \(storage is on fire\): go on with `drydock go`/;
    expectClosed(pooled({}), two, 'Stopped', { cluster: stopped, sentence });
    expectClosed(pooled({}, { paused: true }), two, 'Stopped', { cluster: stopped, sentence });
  });

  it('gives back what was cordoned and not changed, and lets finish what was changed', () => {
    const cordoned = makeNode('a', { desired: NEW, cordonedFor: NEW, unschedulable: true });
    const applying = { ...cordoned, name: 'b', applying: NEW };
    const members = [cordoned, applying];
    for (const pool of [pooled({}), pooled({}, { paused: true })]) {
      expect(decide(pool, members, { name: 'a', cluster: stopped })).toEqual({
        outcome: 'unneeded',
        target: OLD,
        cordonedByUs: true,
      });
      expect(decide(pool, members, { name: 'a', cluster: stopped, intent: 'continue' })).toMatchObject({
        code: 'Stopped',
      });
      for (const intent of ['start', 'continue'] as const) {
        expect(decide(pool, members, { name: 'b', cluster: stopped, intent })).toMatchObject({ outcome: 'granted' });
      }
    }
    expect(
      starts(pooled({}), [...members, makeNode('c'), makeNode('d', { desired: NEW })], { cluster: stopped }),
    ).toEqual(['b', 'a']);
  });
});

describe('a held node', () => {
  it('does not start, is named with the reason, and does not keep others', () => {
    const members = [makeNode('a'), makeNode('b', { hold: 'disk is replaced' })];
    expect(starts(pooled({}), members)).toEqual(['a']);
    expect(plan(pooled({}), members.slice(1))).toMatchObject({
      start: [],
      done: false,
      waiting: says('Held', /b is held \(disk is replaced\); let it go with `drydock node release`/),
    });
    expect(decide(pooled({}), members, { name: 'b' })).toMatchObject(says('Held', /`drydock node release b`/));
  });

  it('that was finished and left cordoned takes a slot, and is told of as held', () => {
    const kept = updatedAgo('a', MINUTE, { unschedulable: true, heldCordon: true, hold: 'disk' });
    expect(plan(pooled({}, { maxUnavailable: 1 }), [kept, makeNode('b')]).waiting).toMatchObject(
      says('Held', /1 of 1 taken: a is held \(disk\)/),
    );
  });

  it('goes on with an update that is on its way', () => {
    const begun = makeNode('b', { desired: NEW, cordonedFor: NEW, unschedulable: true, hold: 'disk' });
    expect(decide(pooled({}), [begun], { name: 'b', intent: 'continue' })).toMatchObject({ outcome: 'granted' });
  });
});

describe('a node that others cordoned', () => {
  const cordoned = (release?: string) => [
    makeNode('b', { unschedulable: true, ...(release === undefined ? {} : { release }) }),
  ];

  it('is started once it was released for this target, by itself among released ones', () => {
    expect(starts(pooled({}, { maxUnavailable: 1 }), cordoned(OLD))).toEqual([]);
    expectOpen(pooled({}, { maxUnavailable: 1 }), cordoned(NEW));
    const both = [...cordoned(NEW), { ...cordoned(NEW)[0]!, name: 'c', uid: 'uid-c' }];
    expect(starts(pooled({}, { maxUnavailable: 1 }), both)).toEqual(['b']);
    expect(
      decide(pooled({}, { maxUnavailable: 1 }), [{ ...both[0]!, desired: NEW }, both[1]!], { name: 'c' }),
    ).toMatchObject({
      code: 'NoSlot',
    });
  });
});

describe('windows', () => {
  it('keep updates from starting, and name the next one', () => {
    const pool = pooled({ windows: { timeZone: 'UTC', allow: [{ start: '13:00', length: '1h' }] } });
    expectClosed(pool, two, 'WindowClosed', { sentence: /next window begins at 2026-03-01 13:00 UTC/ });
    expect(plan(pool, two).waiting?.until).toBe(Date.parse('2026-03-01T13:00:00Z'));
    expectOpen(pooled({ windows: { timeZone: 'UTC', allow: [{ start: '12:00', length: '1h' }] } }), two);
    expectOpen({ ...pool, runNow: NEW }, two);
  });

  it('hold back a node that failed and is to be tried again, not one that is out of service', () => {
    const retried = failedOn('a', NEW, 1, NOW - 5 * MINUTE);
    const begun = makeNode('c', { desired: NEW, cordonedFor: NEW, unschedulable: true });
    expect(starts(pooled(NEVER), [retried, begun])).toEqual(['c']);
    expect(decide(pooled(NEVER), [retried, begun], { name: 'a' })).toMatchObject({ code: 'WindowClosed' });
    expect(decide(pooled(NEVER), [retried, begun], { name: 'c' })).toMatchObject({ outcome: 'granted' });
  });

  it('let go on what has begun, or have it given back, as the pool says; never what is being changed', () => {
    const draining = makeNode('b', { desired: NEW, cordonedFor: NEW, unschedulable: true });
    const go = (onClose: 'Finish' | 'GiveBack' | undefined, node: NodeFacts) =>
      decide(pooled({ windows: { ...NEVER.windows!, ...(onClose && { onClose }) } }), [node], {
        name: 'b',
        intent: 'continue',
      });
    expect(go(undefined, draining)).toMatchObject({ outcome: 'granted' });
    expect(go('Finish', draining)).toMatchObject({ outcome: 'granted' });
    expect(go('GiveBack', draining)).toMatchObject(says('WindowClosed', /No window/));
    expect(go('GiveBack', { ...draining, applying: NEW })).toMatchObject({ outcome: 'granted' });
  });
});

describe('pools in sequence', () => {
  const after = pooled({ after: ['canaries', 'infra'] });

  it('wait for those before them', () => {
    expectOpen(after, two, { cluster: cluster(other('canaries'), other('infra')) });
    const waits = cluster(other('canaries'), other('infra', { updated: false }));
    expectClosed(after, two, 'AfterPool', { cluster: waits, sentence: /after pool infra, which is not Updated yet/ });
  });

  it('wait for a pool of which nothing is known, and say so', () => {
    expectClosed(after, two, 'AfterPool', {
      cluster: cluster(other('infra')),
      sentence: /canaries, and there is none of that name/,
    });
    expectClosed(after, two, 'AfterPool');
  });

  it('that wait for each other are told by the circle that they make', () => {
    const sentence =
      /in a circle \(worker after canaries after infra after worker\): take one out of spec\.rollout\.after/;
    const round = cluster(
      other('canaries', { updated: false, after: ['infra', 'canaries'] }),
      other('infra', { updated: false, after: ['x', 'worker'] }),
    );
    expectClosed(after, two, 'AfterPool', { cluster: round, sentence });
    const itself = pooled({ after: ['worker'] });
    expectClosed(itself, two, 'AfterPool', { cluster: cluster(), sentence: /\(worker after worker\)/ });
  });

  it('are left out of a roll-back', () => {
    expectOpen({ ...after, rollingBack: true }, two, { cluster: cluster() });
  });
});

describe('the limit of pools at a time', () => {
  const limited = (maxPools: number, ...rolling: string[]): ClusterFacts => ({
    maxPools,
    others: ['x', 'y', 'z'].map((name) => other(name, { rolling: rolling.includes(name) })),
  });

  it('keeps a pool from beginning while as many others are in an update', () => {
    expectOpen(pooled({}), two, { cluster: limited(2, 'x') });
    expectClosed(pooled({}), two, 'PoolLimit', {
      cluster: limited(2, 'x', 'z'),
      sentence: /2 pools are in an update, now x and z/,
    });
    expectClosed(pooled({}), two, 'PoolLimit', { cluster: limited(1, 'y'), sentence: /fewer than 1 pool is/ });
  });

  it('lets a pool go on that is in an update itself', () => {
    const members = [makeNode('a', { desired: NEW }), makeNode('b')];
    expectOpen(pooled({}), members, { cluster: limited(1, 'x') });
    expect(starts(pooled({}), two, { cluster: limited(1, 'x'), inFlight: ['a'] })).toEqual(['b']);
  });
});

describe('the time after each node', () => {
  it('starts nothing further until it is over', () => {
    const pool = pooled({ soak: '10m' });
    const members = (ago: number) => [updatedAgo('y', 60 * MINUTE), updatedAgo('z', ago), makeNode('b')];
    expectClosed(pool, members(10 * MINUTE - 1), 'Soaking', { sentence: /worker soaks for 10m after z, until 2026/ });
    expect(plan(pool, members(10 * MINUTE - 1)).waiting?.until).toBe(NOW + 1);
    expectOpen(pool, members(10 * MINUTE));
    expectOpen(pool, [makeNode('b'), updatedAgo('z', 0, { lastUpdate: { target: OLD, at: NOW, seconds: {} } })]);
  });

  it('is that after the stage where that is longer', () => {
    const pool = pooled({ soak: '10m', stages: [{ name: 'canary', count: 1, soak: '1h' }] });
    expectClosed(pool, [updatedAgo('a', 5 * MINUTE), makeNode('b')], 'Soaking', { sentence: /after stage canary/ });
    const other = { ...pool, rollout: { ...pool.rollout, soak: '2h' } };
    expectClosed(other, [updatedAgo('a', 5 * MINUTE), makeNode('b')], 'Soaking', { sentence: /for 2h after a/ });
  });
});

describe('the control plane', () => {
  it('spares no further node while the rest of it is not well', () => {
    const obstacle = 'the etcd of m2 is not Ready';
    expectClosed(pooled({}), two, 'ControlPlane', {
      controlPlane: { obstacle },
      sentence: /^the etcd of m2 is not Ready$/,
    });
    const begun = makeNode('a', { desired: NEW, cordonedFor: NEW, unschedulable: true });
    expect(starts(pooled({}), [begun, makeNode('b')], { controlPlane: { obstacle } })).toEqual(['a']);
  });

  it('is updated one node at a time in a pool of any name, the one where we run last', () => {
    const labels = { 'node-role.kubernetes.io/control-plane': '' };
    const members = ['m1', 'm2', 'm3'].map((name) => makeNode(name, { labels }));
    const pool = pooled({}, { name: 'masters', maxUnavailable: '100%' });
    const turn = plan(pool, members, { controlPlane: { last: 'm1' } });
    expect(turn.start.map(({ node }) => node)).toEqual(['m2']);
    expect(turn.maxUnavailable).toBe(1);
    expect(decide(pool, [{ ...members[0]!, desired: NEW }, members[1]!], { name: 'm2' })).toMatchObject({
      code: 'NoSlot',
    });
  });
});

describe('of several reasons', () => {
  it('the one is told that is worth acting on first', () => {
    const failed = [failedOn('x', NEW, 3, NOW), failedOn('y', NEW, 3, NOW)];
    const policy: RolloutPolicy = {
      ...NEVER,
      stages: [{ name: 'all', approval: 'Required' }],
      after: ['infra'],
      soak: '1h',
    };
    const busy: ClusterFacts = { maxPools: 1, others: [other('infra', { updated: false, rolling: true })] };
    const all = {
      pool: pooled(policy, { paused: true }),
      members: [...failed, updatedAgo('z', MINUTE), makeNode('b')],
    };
    const told: (string | undefined)[] = [];
    const tell = (pool: PoolFacts, members: NodeFacts[], facts: ClusterFacts) =>
      told.push(plan(pool, members, { cluster: facts }).waiting?.code);
    tell(all.pool, all.members, { ...busy, stop: 'now' });
    tell(all.pool, all.members, busy);
    tell({ ...all.pool, paused: false }, all.members, busy);
    const well = all.members.slice(2);
    tell({ ...all.pool, paused: false }, well, busy);
    const approval = { config: NEW, stages: ['all'] };
    tell({ ...all.pool, paused: false, approval }, well, busy);
    tell({ ...all.pool, paused: false, approval, runNow: NEW }, well, busy);
    const ready = { maxPools: 1, others: [other('infra', { rolling: true })] };
    tell({ ...all.pool, paused: false, approval, runNow: NEW }, well, ready);
    tell({ ...all.pool, paused: false, approval, runNow: NEW }, well, cluster(other('infra')));
    expect(told).toEqual([
      'Stopped',
      'PoolPaused',
      'Halted',
      'ApprovalMissing',
      'WindowClosed',
      'AfterPool',
      'PoolLimit',
      'Soaking',
    ]);
  });

  it('a node that keeps all slots by having failed comes before a window', () => {
    const members = [failedOn('x', NEW, 1, NOW), makeNode('b')];
    expect(plan(pooled(NEVER, { maxUnavailable: 1 }), members).waiting?.code).toBe('NodesDegraded');
    expect(plan(pooled(NEVER, { maxUnavailable: 2 }), members).waiting?.code).toBe('WindowClosed');
  });

  it('none is told when the policy keeps nobody: the last nodes are only not ready', () => {
    expect(plan(pooled(NEVER), [makeNode('b', { ready: false })]).waiting?.code).toBe('NodesNotReady');
  });
});

describe('the patience with a reboot', () => {
  it('goes with a start where the pool says so', () => {
    expect(plan(pooled({ rebootTimeout: '1h30m' }), two).start[0]).toMatchObject({ rebootLimitSeconds: 5400 });
    expect(plan(pooled({}), two).start[0]).not.toHaveProperty('rebootLimitSeconds');
  });
});
