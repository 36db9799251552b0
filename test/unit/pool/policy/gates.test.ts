import { describe, expect, it } from 'vitest';
import type { Gate, RolloutPolicy } from '../../../../machine-config/api/rollout-policy.js';
import type { NodeFacts, PoolFacts } from '../../../../machine-config/pool/facts.js';
import { gatesInQuestion, type GateAnswers } from '../../../../machine-config/pool/policy/gates.js';
import type { PlanTurnFacts } from '../../../../machine-config/pool/plan-turn.js';
import { makeNode, makeNodes, NEW, NOW } from '../make-node.js';
import { decide, MINUTE, plan, pooled, starts, updatedAgo } from './make-rollout.js';

const alerts: Gate = { name: 'alerts', prometheus: { url: 'http://prometheus', query: 'ALERTS' } };
const ready: Gate = { name: 'ready', nodeReady: { for: '5m' } };
const between = (...gates: Gate[]): RolloutPolicy => ({ gates: { betweenNodes: gates } });
const after = (...gates: Gate[]): RolloutPolicy => ({ gates: { afterNode: gates } });
const two = makeNodes('a', 'b');

function asked(pool: PoolFacts, members: NodeFacts[], more: Partial<PlanTurnFacts> = {}) {
  const questions = gatesInQuestion({ pool, members, inFlight: [], gone: [], resting: {}, now: NOW, ...more });
  return questions.map(({ id, nodes }) => [id, nodes]);
}
const yes = (...ids: string[]): GateAnswers =>
  Object.fromEntries(ids.map((id) => [id, { passed: true, sentence: 'fine' }]));
const no = (id: string, until?: number): GateAnswers => ({
  [id]: { passed: false, sentence: 'KubeAPIErrors fires', ...(until === undefined ? {} : { until }) },
});

describe('the gates between nodes', () => {
  const pool = pooled(between(alerts, ready), { maxUnavailable: 1 });

  it('are asked about what the rollout has updated so far', () => {
    expect(asked(pool, [...two, updatedAgo('y', MINUTE)])).toEqual([
      ['betweenNodes/alerts', ['y']],
      ['betweenNodes/ready', ['y']],
    ]);
  });

  it.each<[string, PoolFacts, NodeFacts[], Partial<PlanTurnFacts>]>([
    ['the pool is paused', { ...pool, paused: true }, two, {}],
    ['everything is stopped', pool, two, { cluster: { stop: 'x', others: [] } }],
    ['no window is open', pooled({ ...pool.rollout, windows: { timeZone: 'UTC', allow: [] } }), two, {}],
    ['all slots are taken', pool, two, { inFlight: ['a'] }],
    ['all are updated', pool, [updatedAgo('a', MINUTE)], {}],
    ['only what was begun starts', pool, [makeNode('a', { desired: NEW, cordonedFor: NEW, unschedulable: true })], {}],
    ['the pool is deleted', { ...pool, deleting: true }, two, {}],
    ['the pool goes back', { ...pool, rollingBack: true }, two, {}],
  ])('are not asked while nothing would start anyway: %s', (_, of, members, more) => {
    expect(asked(of, members, more)).toEqual([]);
  });

  it('let nodes start when all are passed, and only then', () => {
    const all = yes('betweenNodes/alerts', 'betweenNodes/ready');
    expect(starts(pool, two, { gateAnswers: all })).toEqual(['a']);
    expect(starts(pool, two, { gateAnswers: { ...all, ...no('betweenNodes/ready') } })).toEqual([]);
    expect(starts(pool, two, { gateAnswers: yes('betweenNodes/alerts') })).toEqual([]);
    expect(starts(pool, two)).toEqual([]);
  });

  it('are told of by what they found, and asked again when that may help', () => {
    const waiting = (gateAnswers?: GateAnswers) => plan(pool, two, { gateAnswers }).waiting;
    const passed = yes('betweenNodes/ready');
    expect(waiting({ ...passed, ...no('betweenNodes/alerts') })).toEqual({
      code: 'GateClosed',
      sentence: 'Gate alerts of pool worker before the next node is not passed: KubeAPIErrors fires',
      until: NOW + 30_000,
    });
    expect(waiting({ ...passed, ...no('betweenNodes/alerts', NOW + 7) })?.until).toBe(NOW + 7);
    expect(waiting({ ...no('betweenNodes/ready', NOW + 9), ...no('betweenNodes/alerts', NOW + 7) })).toMatchObject({
      sentence: expect.stringMatching(/Gate alerts .*; 1 more gate not passed$/) as string,
      until: NOW + 7,
    });
    expect(waiting()?.sentence).toMatch(/it has not been asked yet/);
  });

  it('keep nothing back that was begun', () => {
    const begun = makeNode('a', { desired: NEW, cordonedFor: NEW, unschedulable: true });
    expect(
      starts({ ...pool, maxUnavailable: 2 }, [begun, makeNode('b')], { gateAnswers: no('betweenNodes/alerts') }),
    ).toEqual(['a']);
  });
});

describe('the gates before a stage', () => {
  const pool = pooled({
    stages: [
      { name: 'canary', count: 1, soak: '10m', gates: [ready] },
      { name: 'all', gates: [alerts] },
    ],
  });

  it('are asked before the first node of the stage', () => {
    expect(asked(pool, two)).toEqual([['stage/canary/ready', []]]);
    expect(starts(pool, two, { gateAnswers: yes('stage/canary/ready') })).toEqual(['a']);
    const canaryDone = [updatedAgo('a', 20 * MINUTE), ...makeNodes('b', 'c')];
    expect(asked(pool, canaryDone)).toEqual([['stage/all/alerts', ['a']]]);
    expect(plan(pool, canaryDone, { gateAnswers: no('stage/all/alerts') }).waiting).toMatchObject({
      code: 'GateClosed',
      sentence: expect.stringMatching(/Gate alerts of pool worker before stage all is not passed/) as string,
    });
    expect(starts(pool, canaryDone, { gateAnswers: yes('stage/all/alerts') })).toEqual(['b', 'c']);
  });

  it('are not asked again once a node of the stage is updated, by an alert that its own work may raise', () => {
    const members = [updatedAgo('a', 20 * MINUTE), updatedAgo('b', MINUTE), makeNode('c')];
    expect(asked(pool, members)).toEqual([]);
    expect(starts(pool, members)).toEqual(['c']);
    // One that had been updated before the stage opened has not begun it.
    const early = [updatedAgo('a', 20 * MINUTE), updatedAgo('b', 15 * MINUTE), makeNode('c')];
    expect(asked(pool, early)).toEqual([['stage/all/alerts', ['a', 'b']]]);
  });
});

describe('the gates after a node', () => {
  const pool = pooled(after(alerts, ready), { maxUnavailable: 2 });
  const done = [updatedAgo('x', MINUTE), updatedAgo('y', MINUTE)];

  it('are asked for the nodes that wait, those about a node one by one', () => {
    expect(asked(pool, [...done, ...two])).toEqual([
      ['afterNode/alerts', ['x', 'y']],
      ['afterNode/ready/x', ['x']],
      ['afterNode/ready/y', ['y']],
    ]);
    const passedOne = [{ ...done[0]!, gatesPassed: NEW }, done[1]!, ...two];
    expect(asked(pool, passedOne)).toEqual([
      ['afterNode/alerts', ['y']],
      ['afterNode/ready/y', ['y']],
    ]);
  });

  it('keep the slot of an updated node until they are passed, also when a slot is granted', () => {
    expect(starts(pool, [...done, ...two])).toEqual([]);
    expect(decide(pool, [...done, ...two], { name: 'a' })).toMatchObject({
      code: 'NoSlot',
      sentence: expect.stringMatching(/2 of 2 .* taken by x and y/) as string,
    });
    expect(starts(pool, [{ ...done[0]!, gatesPassed: NEW }, done[1]!, ...two])).toEqual(['a']);
    expect(decide(pool, [{ ...done[0]!, gatesPassed: NEW }, done[1]!, ...two], { name: 'a' })).toMatchObject({
      outcome: 'granted',
    });
    expect(starts(pool, [{ ...done[0]!, gatesPassed: 'rendered-worker-before' }, done[1]!, ...two])).toEqual([]);
  });

  it('give it free in the very turn in which they are passed, and tell for whom', () => {
    const turn = plan(pool, [...done, ...two], { gateAnswers: yes('afterNode/alerts', 'afterNode/ready/x') });
    expect(turn.passed).toEqual(['x']);
    expect(turn.start.map(({ node }) => node)).toEqual(['a']);
    expect(plan(pool, [...done, ...two], { gateAnswers: yes('afterNode/ready/x') })).not.toHaveProperty('passed');
  });

  it('say what the others wait for', () => {
    const { waiting } = plan(pool, [...done, ...two], { gateAnswers: no('afterNode/alerts', NOW + 8) });
    expect(waiting).toMatchObject({ code: 'GateClosed', until: NOW + 8 });
    expect(waiting?.sentence).toMatch(
      /2 nodes .*for a slot, 2 of 2 taken: Gate alerts .* after x and y is not passed: Kube/,
    );
  });

  it('hold nothing for nodes that another rollout brought here, nor at the end of a rollout', () => {
    const before = [updatedAgo('x', 48 * 60 * MINUTE), updatedAgo('y', 48 * 60 * MINUTE)];
    expect(starts(pool, [...before, ...two])).toEqual(['a', 'b']);
    expect(plan(pool, done)).toMatchObject({ done: true, waiting: null });
  });
});
