import { describe, expect, it } from 'vitest';
import type { NodeFacts, PoolFacts } from '../../../machine-config/pool/facts.js';
import { needsRollout, planTurn, type PlanTurnFacts } from '../../../machine-config/pool/plan-turn.js';
import { failedOn, makeNode, makeNodes, makePool, NEW, NOW, OLD, updatedTo } from './make-node.js';

const MINUTE = 60_000;

function plan(members: NodeFacts[], pool: Partial<PoolFacts> = {}, more: Partial<PlanTurnFacts> = {}) {
  return planTurn({ pool: makePool(pool), members, inFlight: [], gone: [], resting: {}, now: NOW, ...more });
}
const started = (turn: ReturnType<typeof plan>) => turn.start.map((start) => start.node);
const unmanaged = (name: string, overrides: Partial<NodeFacts> = {}) =>
  makeNode(name, { worker: undefined, current: undefined, desired: undefined, state: undefined, ...overrides });

describe('planTurn, what starts', () => {
  it('starts the oldest nodes first, no more than maxUnavailable, with all that a start needs', () => {
    const members = [
      makeNode('a', { createdAt: '2026-01-03T00:00:00Z' }),
      makeNode('b', { createdAt: '2026-01-01T00:00:00Z' }),
      makeNode('c', { createdAt: '2026-01-02T00:00:00Z', current: undefined, desired: undefined }),
    ];
    expect(plan(members, { maxUnavailable: 2 }).start).toEqual([
      { node: 'b', nodeUid: 'uid-b', target: NEW, current: OLD },
      { node: 'c', nodeUid: 'uid-c', target: NEW, current: 'drydock-empty' },
    ]);
  });

  it('lets nodes that are not ready or cordoned take slots, and passes over them', () => {
    const members = [makeNode('a', { ready: false }), ...makeNodes('b', 'c')];
    expect(started(plan(members, { maxUnavailable: 2 }))).toEqual(['b']);
    expect(started(plan(members, { maxUnavailable: 1 }))).toEqual([]);
    expect(started(plan([makeNode('a', { unschedulable: true }), ...makeNodes('b', 'c')]))).toEqual([]);
  });

  it('counts what is in flight although the facts do not show it yet', () => {
    const members = makeNodes('a', 'b', 'c');
    expect(started(plan(members, { maxUnavailable: 1 }, { inFlight: ['a'] }))).toEqual([]);
    expect(started(plan(members, { maxUnavailable: 2 }, { inFlight: ['a'] }))).toEqual(['b']);
    expect(started(plan(members, { maxUnavailable: 1 }, { inFlight: ['lost-its-label'] }))).toEqual([]);
  });

  it('counts a node that is in flight and shown as granted only once', () => {
    const members = [makeNode('a', { desired: NEW }), ...makeNodes('b', 'c')];
    expect(started(plan(members, { maxUnavailable: 2 }, { inFlight: ['a'] }))).toEqual(['b']);
  });

  it('gives the slot of a deleted node free at once and says that its update is pointless', () => {
    const turn = plan(makeNodes('b', 'c'), {}, { inFlight: ['a'], gone: ['a'] });
    expect(turn.cancel).toEqual(['a']);
    expect(started(turn)).toEqual(['b']);
  });

  it('does not start the new machine of a name whose old update is still in flight', () => {
    const turn = plan(makeNodes('a', 'b'), { maxUnavailable: 2 }, { inFlight: ['a'], gone: ['a'] });
    expect(started(turn)).toEqual(['b']);
  });

  it('starts first, and without a free slot, a node that we cordoned and left behind', () => {
    const left = makeNode('z', {
      createdAt: '2026-02-01T00:00:00Z',
      desired: NEW,
      unschedulable: true,
      cordonedFor: NEW,
    });
    expect(started(plan([...makeNodes('a', 'b'), left]))).toEqual(['z']);
    expect(started(plan([...makeNodes('a', 'b'), left], { maxUnavailable: 2 }))).toEqual(['z', 'a']);
    expect(started(plan([makeNode('a', { ready: false }), left]))).toEqual(['z']);
  });

  it('starts an updated node on which only our cordon is left', () => {
    expect(started(plan([{ ...updatedTo('a', NEW), unschedulable: true, cordonedFor: NEW }]))).toEqual(['a']);
  });

  it('takes nodes that were granted under a higher limit one after the other when the limit is lowered', () => {
    const granted = [makeNode('a', { desired: NEW }), makeNode('b', { desired: NEW }), makeNode('c')];
    expect(started(plan(granted, { maxUnavailable: 1 }))).toEqual(['a']);
    expect(started(plan(granted, { maxUnavailable: 1 }, { inFlight: ['a'] }))).toEqual([]);
  });

  it('does not take a working node that holds a slot out of service while another one is down', () => {
    const members = [makeNode('a', { desired: NEW }), makeNode('b', { ready: false })];
    expect(started(plan(members, { maxUnavailable: 1 }))).toEqual([]);
    expect(started(plan(members, { maxUnavailable: 2 }))).toEqual(['a']);
  });

  it('lets failed nodes keep their slots, so that a bad config takes down no more than the limit', () => {
    const members = [failedOn('a', NEW, 1, NOW), failedOn('b', NEW, 1, NOW), ...makeNodes('c', 'd', 'e', 'f')];
    const turn = plan(members, { maxUnavailable: 2 });
    expect(started(turn)).toEqual([]);
    expect(turn.waiting).toMatchObject({ code: 'NodesDegraded', until: NOW + MINUTE });
    expect(turn.waiting?.sentence).toMatch(/4 nodes .*2 of 2.*a is Degraded \(unit a\.service does not start\).*b is/);
    expect(turn.done).toBe(false);
  });

  it('tries a failed node again after its back-off, in the slot that it kept', () => {
    const members = [makeNode('a'), failedOn('b', NEW, 1, NOW - MINUTE)];
    expect(started(plan(members))).toEqual(['b']);
  });

  it('sends a node that is stuck on an older target to the new one, in the slot that it holds', () => {
    const stuck = makeNode('b', { desired: 'rendered-bad', state: 'Degraded' });
    expect(started(plan([makeNode('a'), stuck, makeNode('c')]))).toEqual(['b']);
  });

  it('keeps its hands off when a node is degraded on the target, and takes its slot', () => {
    const turn = plan([{ ...updatedTo('a', NEW), state: 'Degraded', reason: '/etc/a was changed' }, makeNode('b')]);
    expect(started(turn)).toEqual([]);
    expect(turn.waiting).toMatchObject({ code: 'NodesDegraded' });
  });

  it('shows unmanaged members, starts none and gives them no slot', () => {
    const turn = plan([unmanaged('u1', { ready: false }), unmanaged('u2'), makeNode('b'), makeNode('c')]);
    expect(started(turn)).toEqual(['b']);
    expect(turn.counts).toEqual({ machines: 4, updated: 0, ready: 0, unavailable: 0, degraded: 0, unmanaged: 2 });
  });

  it('never names more than a hundred in one turn', () => {
    const members = makeNodes(...Array.from({ length: 250 }, (_, index) => `n${index}`));
    expect(plan(members, { maxUnavailable: '100%' }).start).toHaveLength(100);
  });

  it('updates one control-plane node at a time, whatever is written', () => {
    expect(started(plan(makeNodes('m1', 'm2', 'm3'), { name: 'master', maxUnavailable: '100%' }))).toEqual(['m1']);
  });
});

describe('planTurn, what is done', () => {
  it('is done when every managed member runs the target and nothing is in flight', () => {
    const members = [updatedTo('a', NEW), { ...updatedTo('b', NEW), ready: false }, unmanaged('u')];
    expect(plan(members)).toMatchObject({ done: true, start: [], waiting: null });
    expect(plan(members, {}, { inFlight: ['a'] })).toMatchObject({ done: false });
    expect(plan(members, { paused: true })).toMatchObject({ done: true });
    expect(plan([])).toMatchObject({ done: true });
  });

  it('is done at once in a pool that wants nothing, and only after its updates have ended', () => {
    const nothing: PoolFacts = { name: 'worker', uid: 'u', paused: false, deleting: false };
    const of = (pool: PoolFacts, inFlight: string[]) =>
      planTurn({ pool, members: makeNodes('a'), inFlight, gone: [], resting: {}, now: NOW });
    expect(of(nothing, [])).toMatchObject({ done: true, start: [], waiting: null, target: null });
    expect(of(nothing, ['a'])).toMatchObject({ done: false, waiting: { code: 'NothingRendered' } });
    expect(of(makePool({ deleting: true }), [])).toMatchObject({ done: true, start: [] });
    expect(of(makePool({ deleting: true }), ['a'])).toMatchObject({ done: false, waiting: { code: 'PoolDeleting' } });
  });

  it('is not done while a running update is for a machine that is gone', () => {
    expect(plan([updatedTo('a', NEW)], {}, { inFlight: ['b'], gone: ['b'] })).toMatchObject({
      done: false,
      cancel: ['b'],
    });
  });
});

describe('planTurn, what is reconsidered', () => {
  const granted = makeNode('a', { desired: 'rendered-between' });

  it('asks again for nodes in flight on the way to another target, until they begin to apply', () => {
    const inFlight = { inFlight: ['a'] };
    expect(plan([granted], {}, inFlight).reconsider).toEqual(['a']);
    expect(plan([{ ...granted, applying: 'rendered-between' }], {}, inFlight).reconsider).toEqual([]);
    expect(plan([{ ...granted, desired: NEW }], {}, inFlight).reconsider).toEqual([]);
    expect(plan([makeNode('a')], {}, inFlight).reconsider).toEqual([]);
    expect(plan([granted]).reconsider).toEqual([]);
  });

  it('lets running updates finish in a paused pool, and asks again in one that is being deleted', () => {
    expect(plan([granted], { paused: true }, { inFlight: ['a'] }).reconsider).toEqual([]);
    const cordoned = makeNode('b', { desired: NEW, unschedulable: true, cordonedFor: NEW });
    const turn = plan([granted, cordoned, makeNode('c')], { deleting: true }, { inFlight: ['a', 'b', 'c'] });
    expect(turn.reconsider).toEqual(['a', 'b']);
  });
});

describe('needsRollout', () => {
  it('is true while a managed member is not on the target or our cordon is left', () => {
    expect(needsRollout(makePool(), makeNodes('a'))).toBe(true);
    expect(needsRollout(makePool(), [{ ...updatedTo('a', NEW), cordonedFor: NEW, unschedulable: true }])).toBe(true);
    expect(needsRollout(makePool(), [updatedTo('a', NEW), unmanaged('u')])).toBe(false);
    expect(needsRollout(makePool({ deleting: true }), makeNodes('a'))).toBe(false);
  });
});
