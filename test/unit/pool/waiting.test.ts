import { describe, expect, it } from 'vitest';
import type { NodeFacts, PoolFacts } from '../../../machine-config/pool/facts.js';
import { planTurn, type PlanTurnFacts } from '../../../machine-config/pool/plan-turn.js';
import { failedOn, makeNode, makeNodes, makePool, NEW, NOW, updatedTo } from './make-node.js';

const MINUTE = 60_000;

/** Through planTurn, so that what is said is what was decided. */
function plan(members: NodeFacts[], pool: Partial<PoolFacts> = {}, more: Partial<PlanTurnFacts> = {}) {
  return planTurn({ pool: makePool(pool), members, inFlight: [], gone: [], resting: {}, now: NOW, ...more });
}
const started = (turn: ReturnType<typeof plan>) => turn.start.map((start) => start.node);

describe('why a pool waits', () => {
  const waiting = (...args: Parameters<typeof plan>) => plan(...args).waiting;

  it('starts nothing in a paused pool and says how to go on', () => {
    const left = makeNode('z', { desired: NEW, unschedulable: true, cordonedFor: NEW });
    const turn = plan([makeNode('a'), left], { paused: true }, { inFlight: ['b'], resting: { z: NOW + 1 } });
    expect(started(turn)).toEqual([]);
    expect(turn.done).toBe(false);
    expect(turn.waiting?.code).toBe('PoolPaused');
    expect(turn.waiting?.sentence).toMatch(/worker is paused.*1 running update.*cordoned by us: z.*spec\.paused/);
  });

  it('brings to its end, in a stopped pool too, what was begun and left behind', () => {
    const cordoned = makeNode('z', { desired: NEW, unschedulable: true, cordonedFor: NEW });
    const applying = makeNode('y', { desired: NEW, applying: NEW });
    const granted = makeNode('x', { desired: NEW });
    for (const stopped of [{ paused: true }, { maxUnavailable: 0 }, { maxUnavailable: '60' }]) {
      expect(started(plan([makeNode('a'), granted, applying, cordoned], stopped))).toEqual(['y', 'z']);
    }
  });

  it.each<[string | number, string]>([
    [0, 'MaxUnavailableZero'],
    ['60', 'MaxUnavailableInvalid'],
  ])('starts nothing with maxUnavailable %j', (maxUnavailable, code) => {
    const turn = plan(makeNodes('a', 'b'), { maxUnavailable });
    expect({ starts: started(turn), code: turn.waiting?.code, limit: turn.maxUnavailable, done: turn.done }).toEqual({
      starts: [],
      code,
      limit: 0,
      done: false,
    });
  });

  it('names the running updates when they take all slots', () => {
    expect(waiting(makeNodes('a', 'b', 'c'), {}, { inFlight: ['a'] })).toEqual({
      code: 'UpdatesRunning',
      sentence: '2 nodes of pool worker wait for a slot, 1 of 1 taken: updates run on a',
    });
  });

  it('names a node that others cordoned and what helps', () => {
    const found = waiting([makeNode('n3', { unschedulable: true }), makeNode('a')]);
    expect(found?.code).toBe('NodesCordoned');
    expect(found?.sentence).toMatch(/1 node .*n3 is unschedulable, not by us; uncordon/);
  });

  it('names a node that is not ready and its condition', () => {
    const found = waiting([makeNode('n3', { ready: false, notReadyBecause: 'Ready is Unknown' }), makeNode('a')]);
    expect(found?.code).toBe('NodesNotReady');
    expect(found?.sentence).toContain('n3 is not ready (Ready is Unknown)');
  });

  it('tells of several obstacles in one sentence', () => {
    const found = waiting(
      [makeNode('n3', { ready: false }), makeNode('n4', { unschedulable: true }), makeNode('a')],
      { maxUnavailable: 3 },
      { inFlight: ['b'] },
    );
    expect(found?.code).toBe('SlotsTaken');
    expect(found?.sentence).toMatch(/updates run on b.*n3.*n4/);
  });

  it('tells what keeps the last nodes from starting although slots are free', () => {
    const rest = [updatedTo('a', NEW), makeNode('b', { ready: false })];
    expect(waiting(rest, { maxUnavailable: 5 })?.code).toBe('NodesNotReady');
    expect(waiting([makeNode('b')], {}, { resting: { b: NOW + 7 } })).toMatchObject({
      code: 'NodesUnreachable',
      until: NOW + 7,
    });
  });

  const rolledBack = {
    ...failedOn('n4', NEW, 1, NOW - 600 * MINUTE),
    failure: { target: NEW, attempts: 1, at: new Date(NOW - 600 * MINUTE).toISOString(), code: 'RolledBackAfterBoot' },
  };
  const drifted = { ...updatedTo('n4', NEW), state: 'Degraded' as const, reason: '/etc/a differs' };
  const host = { os: 'Debian 12', arch: 'amd64', backend: 'none', cannot: { fips: 'it is off here' } };

  it('says of a node that has drifted what helps, whether or not others wait for its slot', () => {
    for (const members of [[drifted], [drifted, makeNode('a')]]) {
      const found = waiting(members);
      expect(found?.code).toBe('NodesDegraded');
      expect(found?.sentence).toMatch(
        /n4 is Degraded \(\/etc\/a differs\).*put back.*or have it overwritten by the force file/,
      );
      expect(found?.until).toBeUndefined();
    }
  });

  it('says of a node that came back from the target what helps, within the failure budget and beyond', () => {
    const within = waiting([rolledBack, updatedTo('a', NEW), updatedTo('b', NEW)], { maxUnavailable: 2 });
    expect(within).toMatchObject({ code: 'NodesDegraded' });
    expect(within?.sentence).toMatch(/n4 is Degraded.*another config, or try again with `drydock node retry`/);
    const beyond = waiting([rolledBack, makeNode('a')]);
    expect(beyond).toMatchObject({ code: 'Halted' });
    expect(beyond?.sentence).toMatch(/n4 \(RolledBackAfterBoot: .*another config.*`drydock node retry n4`/);
    expect(beyond?.until).toBeUndefined();
  });

  it('names a node that cannot do what the target asks, the field and the reason', () => {
    const found = waiting([makeNode('n5', { host })], {}, { demands: { fields: ['fips'], kernelType: 'default' } });
    expect(found?.code).toBe('NodesIncapable');
    expect(found?.sentence).toMatch(/n5 cannot do spec\.fips \(it is off here\); leave that out/);
  });

  it('gives the earliest time at which a node may be tried again', () => {
    const members = [failedOn('a', NEW, 3, NOW), failedOn('b', NEW, 2, NOW), failedOn('c', NEW, 4, NOW)];
    expect(waiting(members, { maxUnavailable: 9 })?.until).toBe(NOW + 5 * MINUTE);
  });

  it('keeps to a thousand characters on one line, whatever nodes are called and say', () => {
    const names = Array.from({ length: 300 }, (_, index) => `${'n'.repeat(240)}-${index}`);
    const failed = names.map((name) => ({ ...failedOn(name, NEW, 1, NOW), reason: 'a\nb'.repeat(700) }));
    for (const members of [failed, [...failed, makeNode('x')]]) {
      const sentence = waiting(members, {}, { inFlight: names.slice(0, 20) })?.sentence ?? '';
      expect(sentence.length).toBeGreaterThan(100);
      expect(sentence.length).toBeLessThanOrEqual(1000);
      expect(sentence).not.toContain('\n');
    }
  });
});
