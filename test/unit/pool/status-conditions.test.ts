import { fc, test } from '@fast-check/vitest';
import { describe, expect, it } from 'vitest';
import type { MachineConfigPoolStatus } from '../../../machine-config/api/machine-config-pool.js';
import type { NodeFacts } from '../../../machine-config/pool/facts.js';
import { poolStatus, type PoolStatusFacts } from '../../../machine-config/pool/status.js';
import { blockedDrains } from '../../../machine-config/pool/status-waiting.js';
import { WAITING_CODES } from '../../../machine-config/pool/turn.js';
import { failedOn, makeNode, makeNodes, makePool, NEW, NOW, OLD, updatedTo } from './make-node.js';

const T1 = '2026-03-01T12:00:00Z';

function status(members: NodeFacts[], more: Partial<PoolStatusFacts> = {}) {
  return poolStatus({ pool: makePool(), generation: 3, configuration: { name: NEW }, members, now: T1, ...more });
}
const condition = (of: MachineConfigPoolStatus, type: string) => of.conditions?.find((one) => one.type === type);
const blocked = (name: string) =>
  makeNode(name, {
    desired: NEW,
    cordonedFor: NEW,
    unschedulable: true,
    drainBlocked: {
      sentence: 'PDB shop/cart allows 0 disruptions',
      pods: ['shop/cart-1', 'shop/cart-2'],
      budgets: ['shop/cart'],
    },
  });

describe('the condition Waiting', () => {
  it('says why nothing starts, in the code and the sentence of the turn', () => {
    const waiting = { code: 'ApprovalMissing', sentence: 'Stage rest waits for an approval' } as const;
    expect(condition(status(makeNodes('a'), { waiting }), 'Waiting')).toMatchObject({
      status: 'True',
      reason: 'ApprovalMissing',
      message: 'Stage rest waits for an approval',
    });
  });

  it('is False while updates run, with the sentence, so that it does not change with every node', () => {
    const waiting = { code: 'UpdatesRunning', sentence: 'updates run on a' } as const;
    const running = status([makeNode('a', { desired: NEW }), makeNode('b')], { waiting });
    expect(condition(running, 'Waiting')).toMatchObject({ status: 'False', reason: 'UpdatesRunning' });
    expect(condition(running, 'Waiting')?.message).toBe('updates run on a');
    expect(condition(status(makeNodes('a'), { waiting: null }), 'Waiting')).toMatchObject({ status: 'False' });
  });

  it('names the pods and budgets that block the drains of running updates', () => {
    const waiting = { code: 'UpdatesRunning', sentence: 'updates run on a' } as const;
    const told = condition(status([blocked('a'), makeNode('b')], { waiting }), 'Waiting');
    expect(told).toMatchObject({ status: 'True', reason: 'DrainBlocked' });
    expect(told?.message).toBe(
      'the drain of a waits: PDB shop/cart allows 0 disruptions (pods shop/cart-1, shop/cart-2); updates run on a',
    );
    const paused = { code: 'PoolPaused', sentence: 'MachineConfigPool worker is paused' } as const;
    const both = condition(status([blocked('a')], { waiting: paused }), 'Waiting');
    expect(both).toMatchObject({ reason: 'PoolPaused' });
    expect(both?.message).toMatch(/^MachineConfigPool worker is paused; the drain of a waits: /);
  });

  it('names a few blocked drains and counts the rest, whatever the order of the members', () => {
    const members = ['e', 'a', 'd', 'b', 'c'].map(blocked);
    const told = blockedDrains(members, NEW);
    expect(told).toMatch(/^the drain of a .*drain of b .*drain of c .*; and 2 more drains$/);
    expect(blockedDrains([...members].reverse(), NEW)).toBe(told);
    expect(blockedDrains([{ ...blocked('a'), ...updatedTo('a', NEW) }], NEW)).toBeUndefined();
  });

  it('stays as it is where no turn was taken, and ends with the rollout', () => {
    const waiting = { code: 'WindowClosed', sentence: 'the next window begins at 22:00' } as const;
    const previous = status(makeNodes('a'), { waiting });
    expect(condition(status(makeNodes('a'), { previous }), 'Waiting')).toEqual(condition(previous, 'Waiting'));
    const done = status([updatedTo('a', NEW)], { previous, now: '2026-03-01T13:00:00Z' });
    expect(condition(done, 'Waiting')).toMatchObject({
      status: 'False',
      reason: 'NothingToDo',
      message: '',
      lastTransitionTime: '2026-03-01T13:00:00Z',
    });
  });
});

describe('the condition Halted', () => {
  const failed = ['a', 'b'].map((name) => failedOn(name, NEW, 3, NOW));
  const pool = makePool({ maxUnavailable: 5 });

  it('is True once the failure budget is used up, which makes the pool Degraded, until it is resumed', () => {
    const halted = status([...failed, makeNode('c')], { pool });
    expect(condition(halted, 'Halted')).toMatchObject({ status: 'True' });
    expect(condition(halted, 'Halted')?.message).toContain('drydock rollout resume worker');
    expect(condition(halted, 'Degraded')).toMatchObject({ status: 'True', reason: 'FailureBudgetUsedUp' });
    const resumed = status([...failed, makeNode('c')], { pool: { ...pool, resumedAt: NOW + 1 }, previous: halted });
    expect(condition(resumed, 'Halted')).toMatchObject({ status: 'False' });
    expect(condition(status([failed[0]!, makeNode('b')], { pool }), 'Halted')).toMatchObject({ status: 'False' });
  });
});

describe('a pool that goes back to its last good config', () => {
  const pool = makePool({ target: OLD, rollingBack: true });
  const facts = { pool, configuration: { name: NEW }, previous: { configuration: { name: OLD } } };

  it('is Updating while it goes, and Degraded with the config that failed', () => {
    const going = status([updatedTo('a', NEW), updatedTo('b', OLD)], facts);
    expect(condition(going, 'Updating')).toMatchObject({ status: 'True', reason: 'RollingBack' });
    expect(condition(going, 'Degraded')).toMatchObject({ status: 'True', reason: 'RolledBack' });
    expect(condition(going, 'Degraded')?.message).toContain(`${NEW} failed`);
  });

  it('is neither Updated nor Updating once it is back, and keeps the config that it is back on', () => {
    const back = status([updatedTo('a', OLD)], facts);
    expect(condition(back, 'Updated')).toMatchObject({ status: 'False', reason: 'RolledBack' });
    expect(condition(back, 'Updating')).toMatchObject({ status: 'False' });
    expect(condition(back, 'Degraded')).toMatchObject({ status: 'True', reason: 'RolledBack' });
    expect(back.configuration).toEqual({ name: OLD });
  });
});

describe('the condition MembershipConflict', () => {
  it('makes the pool Degraded with the node and the pools, and says how many more there are', () => {
    const conflicts = Array.from({ length: 12 }, (_, index) => `Node n${index} is selected by gpu and infra`);
    const told = status([updatedTo('a', NEW)], { conflicts });
    expect(condition(told, 'MembershipConflict')).toMatchObject({ status: 'True', reason: 'SelectedTwice' });
    expect(condition(told, 'MembershipConflict')?.message).toMatch(/^Node n0 .*and 2 more nodes$/);
    expect(condition(told, 'Degraded')).toMatchObject({ status: 'True', reason: 'SelectedTwice' });
  });
});

describe('the condition ControlPlane', () => {
  it('says that a pool with control-plane nodes is updated one node at a time, whatever is written', () => {
    const labels = { 'node-role.kubernetes.io/control-plane': '' };
    const pool = makePool({ maxUnavailable: 3 });
    const told = condition(status([makeNode('a', { labels }), makeNode('b')], { pool }), 'ControlPlane');
    expect(told).toMatchObject({ status: 'True', reason: 'OneAtATime' });
    expect(told?.message).toContain('whatever maxUnavailable says (3)');
  });
});

describe('a status of a pool', () => {
  const anyMember = fc
    .record({
      current: fc.constantFrom(OLD, NEW),
      desired: fc.constantFrom(OLD, NEW),
      state: fc.constantFrom('Done' as const, 'Working' as const, 'Degraded' as const),
      ready: fc.boolean(),
      unschedulable: fc.boolean(),
      worker: fc.constantFrom('1.0.0', undefined),
      applying: fc.constantFrom(NEW, undefined),
      reason: fc.constantFrom('x', undefined),
      failure: fc.constantFrom({ target: NEW, attempts: 3, at: T1 }, undefined),
      drainBlocked: fc.constantFrom({ sentence: 'PDB', pods: ['a/b'], budgets: [] }, undefined),
    })
    .map((facts) => facts);
  const anyStep = fc.record({
    members: fc.array(anyMember, { maxLength: 4 }),
    target: fc.constantFrom(OLD, NEW, undefined),
    paused: fc.boolean(),
    rollingBack: fc.constantFrom(true, undefined),
    waiting: fc.option(
      fc.constantFrom(...WAITING_CODES).map((code) => ({ code, sentence: code })),
      { nil: null },
    ),
    renderError: fc.constantFrom('no such unit', null, undefined),
    conflicts: fc.constantFrom<string[]>([], ['Node n1 is selected twice']),
  });

  test.prop([fc.array(anyStep, { minLength: 1, maxLength: 8 })])(
    'moves the times of its conditions with their status only, and is the same for the same facts',
    (steps) => {
      let previous: MachineConfigPoolStatus | undefined;
      steps.forEach(({ members, target, paused, rollingBack, ...step }, hour) => {
        const now = new Date(NOW + hour * 3_600_000).toISOString();
        const nodes = members.map((facts, index) => makeNode(`n${index}`, facts));
        const pool = Object.fromEntries(
          Object.entries({ ...makePool({ paused }), target, rollingBack }).filter(([, value]) => value !== undefined),
        ) as unknown as PoolStatusFacts['pool'];
        const configuration = target === undefined ? undefined : { name: target };
        const facts = { pool, generation: 1, configuration, members: nodes, previous, now, ...step };
        const next = poolStatus(facts);
        for (const each of next.conditions ?? []) {
          const before = previous && condition(previous, each.type);
          expect(each.lastTransitionTime === now, each.type).toBe(before?.status !== each.status);
        }
        const again = poolStatus({ ...facts, previous: next, renderError: undefined, now: 'later' });
        expect({ ...again, conditions: again.conditions }).toEqual(next);
        previous = next;
      });
    },
  );
});
