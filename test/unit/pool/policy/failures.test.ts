import { describe, expect, it } from 'vitest';
import type { NodeFacts } from '../../../../machine-config/pool/facts.js';
import { failedNodes, isHalted, rollbackFrom } from '../../../../machine-config/pool/policy/failures.js';
import { failedOn, makeNode, makeNodes, makePool, NEW, NOW, OLD, updatedTo } from '../make-node.js';
import { decide, MINUTE, plan, pooled, starts } from './make-rollout.js';

const AGO = NOW - 2 * 60 * MINUTE;
const failedWith = (name: string, code: string, more: Partial<NodeFacts> = {}): NodeFacts => ({
  ...failedOn(name, NEW, 1, AGO),
  failure: { target: NEW, attempts: 1, at: new Date(AGO).toISOString(), code },
  ...more,
});
const away = (name: string, minutes: number, more: Partial<NodeFacts> = {}) =>
  makeNode(name, { desired: NEW, applying: NEW, ready: false, readinessSince: NOW - minutes * MINUTE, ...more });
const names = (pool: Parameters<typeof failedNodes>[0], members: NodeFacts[]) =>
  failedNodes(pool, members, NOW).map(({ node }) => node.name);

describe('a node has failed', () => {
  it.each<[string, NodeFacts, boolean]>([
    ['twice in vain', failedOn('n', NEW, 2, AGO), false],
    ['three times in vain', failedOn('n', NEW, 3, AGO), true],
    ['three times on another config', failedOn('n', OLD, 3, AGO), false],
    ['once, undone before a reboot', failedWith('n', 'ApplyFailed'), false],
    ['once, and came back from its boot', failedWith('n', 'RolledBackAfterBoot'), true],
    ['once, and did not reboot', failedWith('n', 'NotRebooted'), true],
    ['once, into another image', failedWith('n', 'WrongImage'), true],
    ['once, to another disk', failedWith('n', 'NotAsTarget'), true],
    ['once, and could not be undone', failedWith('n', 'UndoFailed'), true],
    [
      'once, and somebody asks for another try on its host',
      failedWith('n', 'RolledBackAfterBoot', { force: 'boot-1' }),
      false,
    ],
    ['away for 45 minutes while it is changed', away('n', 45), true],
    ['away for less', away('n', 44), false],
    ['away, on the way to another config', away('n', 600, { applying: 'rendered-worker-between' }), false],
    ['away before anything was begun', makeNode('n', { ready: false, readinessSince: 0 }), false],
    ['back, and not done yet', away('n', 600, { ready: true }), false],
    ['without a worker', failedWith('n', 'UndoFailed', { worker: undefined as never }), false],
  ])('that was updated %s: %#', (_, node, expected) => {
    expect(
      names(makePool(), [Object.fromEntries(Object.entries(node).filter(([, value]) => value !== undefined)) as never]),
    ).toEqual(expected ? ['n'] : []);
  });

  it('after the time that the pool gives a reboot', () => {
    expect(names(makePool({ rollout: { rebootTimeout: '10m' } }), [away('n', 10)])).toEqual(['n']);
    expect(names(makePool({ rollout: { rebootTimeout: '2h' } }), [away('n', 100)])).toEqual([]);
  });

  it('no more once the pool is resumed or the node is to be tried again, until it fails anew', () => {
    for (const node of [failedOn('n', NEW, 3, AGO), failedWith('n', 'UndoFailed'), away('n', 60)]) {
      expect(names(makePool({ resumedAt: NOW }), [node])).toEqual([]);
      expect(names(makePool(), [{ ...node, retryAt: NOW }])).toEqual([]);
      expect(names(makePool({ resumedAt: AGO - 1 }), [{ ...node, retryAt: AGO - 1 }])).toEqual(['n']);
    }
  });
});

describe('the failure budget', () => {
  const failed = (...given: string[]) => given.map((name) => failedWith(name, 'UndoFailed'));

  it.each<[number | undefined, number | string, number]>([
    [undefined, 5, 2],
    [undefined, 1, 1],
    [3, 5, 3],
    [3, 2, 2],
    [1, 5, 1],
  ])('of %j with maxUnavailable %j halts after %i', (budget, maxUnavailable, halts) => {
    const pool = pooled(budget === undefined ? {} : { failureBudget: { nodes: budget } }, { maxUnavailable });
    const bad = failed('a', 'b', 'c', 'd');
    expect(isHalted(pool, [...bad.slice(0, halts - 1), ...makeNodes('x')], NOW)).toBe(false);
    expect(isHalted(pool, [...bad.slice(0, halts), ...makeNodes('x')], NOW)).toBe(true);
  });

  const pool = pooled({}, { maxUnavailable: 5 });
  const members = [failedWith('a', 'UndoFailed'), failedOn('b', NEW, 3, AGO), ...makeNodes('x', 'y')];

  it('lets nothing start once it is used up, tells of whom, and what helps', () => {
    expect(plan(pool, members)).toMatchObject({
      start: [],
      done: false,
      waiting: {
        code: 'Halted',
        sentence:
          'The rollout of pool worker to rendered-worker-new has halted after 2 failed nodes, 2 are enough: ' +
          'a (UndoFailed: unit a.service does not start), b (failed 3 times: unit a.service does not start); ' +
          'give the pool another config, or mend them and go on with `drydock rollout resume worker`, ' +
          'or try one again with `drydock node retry a`',
      },
    });
    expect(decide(pool, members, { name: 'x' })).toMatchObject({ code: 'Halted' });
  });

  it('does not try the failed ones again, and brings to their end those that were begun', () => {
    const cordoned = { cordonedFor: NEW, unschedulable: true };
    const left = makeNode('x', { desired: NEW, ...cordoned });
    const all = [{ ...members[0]!, ...cordoned }, members[1]!, left];
    expect(starts(pool, all)).toEqual(['x']);
    expect(decide(pool, all, { name: 'a' })).toMatchObject({ code: 'Halted' });
    expect(decide(pool, all, { name: 'x' })).toMatchObject({ outcome: 'granted' });
  });

  it.each<[string, NodeFacts[], object]>([
    ['another config', members, { target: 'rendered-worker-newer' }],
    ['the word to go on', members, { resumedAt: NOW }],
    ['the word to try one again', [{ ...members[0]!, retryAt: NOW }, ...members.slice(1)], {}],
  ])('is given anew by %s', (_, nodes, more) => {
    const again = { ...pool, ...more };
    expect(starts(again, nodes)).toContain('x');
    expect(decide(again, nodes, { name: 'x' })).toMatchObject({ outcome: 'granted' });
  });

  it('takes the next look when another node will have failed', () => {
    const turn = plan(pooled({}, { maxUnavailable: 1 }), [away('a', 40), makeNode('x')]);
    expect(turn.waiting).toMatchObject({ code: 'NodesNotReady', until: NOW + 5 * MINUTE });
  });
});

describe('rollbackFrom', () => {
  const pool = pooled({ onFailure: 'Rollback' }, { maxUnavailable: 1 });
  const halted = [failedWith('a', 'UndoFailed'), updatedTo('b', NEW)];
  const lastGood = { configuration: { name: OLD } };

  it('names the config that has failed', () => {
    expect(rollbackFrom(pool, halted, lastGood, NOW)).toBe(NEW);
  });

  it.each<[string, Parameters<typeof rollbackFrom>[0], NodeFacts[], object]>([
    ['that did not ask for it', pooled({ onFailure: 'Halt' }, { maxUnavailable: 1 }), halted, lastGood],
    ['that has not halted', pool, [updatedTo('b', NEW)], lastGood],
    ['that never ran anything everywhere', pool, halted, {}],
    ['that ran nothing else everywhere', pool, halted, { configuration: { name: NEW } }],
    ['that goes back already', { ...pool, rollingBack: true }, halted, lastGood],
  ])('is nothing for a pool %s', (_, of, members, status) => {
    expect(rollbackFrom(of, members, status, NOW)).toBeUndefined();
  });

  it('leads to an ordinary rollout of the last good config, which the failures do not halt', () => {
    const back = { ...pool, target: OLD, rollingBack: true };
    // The failed node never ran the new one: it only gives its slot back.
    expect(starts(back, halted)).toEqual(['a']);
    expect(decide(back, halted, { name: 'a' })).toMatchObject({ outcome: 'unneeded', target: OLD });
    expect(decide(back, [makeNode('a'), halted[1]!], { name: 'b' })).toMatchObject({ outcome: 'granted', target: OLD });
  });
});
