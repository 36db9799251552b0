import { describe, expect, it } from 'vitest';
import { apiFlavour } from '../../../machine-config/api/flavour.js';
import { nodeFacts, type NodeFacts, type PoolFacts } from '../../../machine-config/pool/facts.js';
import { decideGrant, type GrantFacts } from '../../../machine-config/pool/grant.js';
import { poolOf } from '../../../machine-config/pool/membership.js';
import { planTurn, type PlanTurnFacts } from '../../../machine-config/pool/plan-turn.js';
import { taintChanges } from '../../../machine-config/pool/waiting-taints.js';
import { failedOn, makeNode, makeNodes, makePool, NEW, NOW, OLD, updatedTo } from './make-node.js';

/*
 * The edge cases for which the reference system has unit tests, as far as they concern pools and nodes, in our words and
 * with our outcome. Where that differs on purpose, the reason stands beside it. Which nodes start is here, the rest in
 * edge-cases-pools.test.ts.
 */

const flavour = apiFlavour('openshift');
const OLDER = 'rendered-worker-older';
const NEVER = 'rendered-worker-never-reached';

function turn(members: NodeFacts[], pool: Partial<PoolFacts> = {}, more: Partial<PlanTurnFacts> = {}) {
  return planTurn({ pool: makePool(pool), members, inFlight: [], gone: [], resting: {}, now: NOW, ...more });
}
const started = (...given: Parameters<typeof turn>) => turn(...given).start.map(({ node }) => node);

function grant(node: NodeFacts, members: NodeFacts[], more: Partial<GrantFacts> = {}) {
  return decideGrant({
    intent: 'start',
    pool: makePool(),
    poolName: 'worker',
    node,
    nodeName: node.name,
    nodeUid: node.uid,
    members,
    now: NOW,
    poolOf: () => ({ kind: 'pool', pool: 'worker' }),
    ...more,
  });
}

describe('edge case: which nodes start', () => {
  it('a node that is stuck on the way to an older target goes on with the present one, before a fresh node', () => {
    const stuck = { ...failedOn('b', OLD, 3, NOW), current: OLDER };
    expect(started([updatedTo('a', NEW), stuck, makeNode('c')], { maxUnavailable: 1 })).toEqual(['b']);
    expect(grant(stuck, [stuck, makeNode('c')])).toEqual({ outcome: 'granted', target: NEW, current: OLDER });
  });

  it('a node that failed on a target which was taken back is set back to what it runs, without an update', () => {
    const node = { ...failedOn('b', NEVER, 1, NOW), current: NEW };
    const members = [updatedTo('a', NEW), node];
    expect(started(members, { maxUnavailable: 1 })).toEqual(['b']);
    expect(grant(node, members)).toEqual({ outcome: 'unneeded', target: NEW, cordonedByUs: false });
  });

  it('a node that is Degraded on the very target keeps the only slot from the others, and is named', () => {
    const members = [
      { ...updatedTo('a', NEW), state: 'Degraded' as const, reason: '/etc/motd differs' },
      makeNode('b'),
    ];
    const { start, waiting } = turn(members, { maxUnavailable: 1 });
    expect(start).toEqual([]);
    expect(waiting).toMatchObject({ code: 'NodesDegraded', sentence: expect.stringContaining('/etc/motd') as string });
    expect(started(members, { maxUnavailable: 2 })).toEqual(['b']);
  });

  it('a node that was granted the target and has not begun keeps its slot from the others', () => {
    const granted = makeNode('a', { desired: NEW });
    expect(started([granted, makeNode('b')], { maxUnavailable: 1 }, { inFlight: ['a'] })).toEqual([]);
    // There its daemon acts alone. Here an update that has been lost is started again, and by nobody but the pool.
    expect(started([granted, makeNode('b')], { maxUnavailable: 1 })).toEqual(['a']);
  });

  it('a node that is not ready takes a slot and is passed over', () => {
    const members = [makeNode('a', { ready: false }), ...makeNodes('b', 'c')];
    expect(started(members, { maxUnavailable: 2 })).toEqual(['b']);
    expect(grant(members[0]!, members)).toMatchObject({ outcome: 'refused', code: 'NotReady' });
  });

  it('a node that somebody cordoned is passed over, takes a slot, and is not uncordoned by an update of ours', () => {
    const members = [makeNode('a', { unschedulable: true }), ...makeNodes('b', 'c')];
    expect(started(members, { maxUnavailable: 2 })).toEqual(['b']);
    expect(turn(members, { maxUnavailable: 1 }).waiting).toMatchObject({ code: 'NodesCordoned' });
    expect(grant(members[0]!, members)).toMatchObject({ outcome: 'refused', code: 'CordonedByOthers' });
  });

  it('a node whose cordon somebody lifted in mid-drain keeps its slot, and nobody else gets it', () => {
    const lifted = makeNode('a', { desired: NEW, cordonedFor: NEW, state: 'Working', unschedulable: false });
    const members = [lifted, makeNode('b')];
    expect(started(members, { maxUnavailable: 1 }, { inFlight: ['a'] })).toEqual([]);
    expect(grant(members[1]!, members)).toMatchObject({ outcome: 'refused', code: 'NoSlot' });
    // Its update asks again, is told to go on, and cordons anew.
    expect(grant(lifted, members, { intent: 'continue' })).toMatchObject({ outcome: 'granted', target: NEW });
  });

  it('a node that leaves the pool in its drain is asked for no longer than it takes to tell it', () => {
    // There it goes on to the config of the pool that it has left.
    const draining = makeNode('a', { desired: NEW, cordonedFor: NEW, unschedulable: true, state: 'Working' });
    const more = { inFlight: ['a'], strayed: [draining] };
    expect(turn([makeNode('b')], {}, more).reconsider).toEqual(['a']);
    expect(turn([makeNode('b')], { paused: true }, more).reconsider).toEqual(['a']);
    const elsewhere = poolOf(draining, []);
    const decision = grant(draining, [makeNode('b')], { intent: 'continue', poolOf: () => elsewhere });
    expect(decision).toMatchObject({ outcome: 'refused', code: 'NotMember' });
    // One that has begun to change its disk finishes that.
    const applying = { ...draining, applying: NEW };
    expect(turn([makeNode('b')], {}, { ...more, strayed: [applying] }).reconsider).toEqual([]);
  });

  it('the oldest start first, wherever they stand', () => {
    // There zone by zone, and by age in each. Here that has to be asked for: people read "oldest first" as it stands.
    const zone = (name: string) => ({ 'topology.kubernetes.io/zone': name });
    const members = [
      makeNode('a', { labels: zone('one'), createdAt: '2026-01-03T00:00:00Z' }),
      makeNode('b', { labels: zone('two'), createdAt: '2026-01-01T00:00:00Z' }),
      makeNode('c', { createdAt: '2026-01-02T00:00:00Z' }),
    ];
    expect(started(members, { maxUnavailable: 2 })).toEqual(['b', 'c']);
  });

  it('zone by zone where that is asked for, the oldest first in each, and those in no zone last', () => {
    const inZone = (zone?: string) => (zone === undefined ? {} : { labels: { 'topology.kubernetes.io/zone': zone } });
    const members = [
      makeNode('a', { ...inZone(), createdAt: '2026-01-01T00:00:00Z' }),
      makeNode('b', { ...inZone('two'), createdAt: '2026-01-02T00:00:00Z' }),
      makeNode('c', { ...inZone('one'), createdAt: '2026-01-04T00:00:00Z' }),
      makeNode('d', { ...inZone('one'), createdAt: '2026-01-03T00:00:00Z' }),
    ];
    const rollout = { order: { by: 'Zone' } } as const;
    expect(started(members, { maxUnavailable: 4, rollout })).toEqual(['d', 'c', 'b', 'a']);
  });

  it('a node that carries an image annotation of the other system is judged by its config alone', () => {
    // There one of two image annotations without the other makes a node unavailable. Here the image is part of the
    // rendered config, so that one name says all, and nobody writes these annotations.
    for (const name of ['currentImage', 'desiredImage']) {
      const node = nodeOn(NEW, { [`${flavour.group}/${name}`]: 'quay.io/os@sha256:1' });
      expect(turn([node])).toMatchObject({ start: [], done: true, counts: { updated: 1, unavailable: 0 } });
    }
  });
});

describe('edge case: the taint of nodes that wait for their update', () => {
  const done = updatedTo('a', NEW);
  const tainted = (node: NodeFacts): NodeFacts => ({ ...node, waitsTainted: true });
  function taints(members: NodeFacts[], pool: Partial<PoolFacts> = {}, running: string[] = []) {
    const facts = { pool: makePool(pool), members, running };
    return taintChanges({ ...facts, turn: turn(members, pool, { inFlight: running }) });
  }

  it('goes to a node whose turn comes later, once', () => {
    expect(taints([done, ...makeNodes('b', 'c')])).toEqual({ add: ['c'], remove: [] });
    expect(taints([done, makeNode('b'), tainted(makeNode('c'))])).toEqual({ add: [], remove: [] });
  });

  it('goes off when the node runs the target', () => {
    expect(taints([tainted(done), ...makeNodes('b', 'c')]).remove).toEqual(['a']);
  });

  it('stays on a node that is only granted the target', () => {
    // There it goes at that moment, and the node that is about to be drained is preferred again.
    const granted = tainted(makeNode('b', { desired: NEW }));
    expect(taints([done, granted, makeNode('c')], {}, ['b']).remove).toEqual([]);
  });

  it('is put on none as long as no node runs the target', () => {
    // There on all at once, which prefers nothing to anything.
    expect(taints(makeNodes('a', 'b', 'c')).add).toEqual([]);
  });

  it('goes off all when the pool is paused', () => {
    // There it stays, and a pool that is paused for a month keeps pods away from its nodes.
    expect(taints([done, tainted(makeNode('b'))], { paused: true })).toEqual({ add: [], remove: ['b'] });
  });
});

/** A Node of Kubernetes with a worker, Ready, that runs the config. */
function nodeOn(config: string, annotations: Record<string, string>): NodeFacts {
  const { currentConfig, desiredConfig, state } = flavour.annotations;
  const says = { 'drydock.dev/worker': '1.0.0', [currentConfig]: config, [desiredConfig]: config, [state]: 'Done' };
  return nodeFacts(
    {
      metadata: { name: 'n', uid: 'u', annotations: { ...says, ...annotations } },
      status: { conditions: [{ type: 'Ready', status: 'True' }] },
    },
    flavour,
  );
}
