import { describe, expect, it } from 'vitest';
import type { NodeFacts, PoolFacts } from '../../../machine-config/pool/facts.js';
import { planTurn } from '../../../machine-config/pool/plan-turn.js';
import type { Turn, WaitingCode } from '../../../machine-config/pool/turn.js';
import { isLeftTainted, taintChanges } from '../../../machine-config/pool/waiting-taints.js';
import { makeNode, makePool, NEW, NOW, OLD, updatedTo } from './make-node.js';

const tainted = (node: NodeFacts): NodeFacts => ({ ...node, waitsTainted: true });

/** After the turn that the pool really takes. */
function changes(members: NodeFacts[], running: string[] = [], pool: Partial<PoolFacts> = {}) {
  const facts = makePool(pool);
  const turn = planTurn({ pool: facts, members, inFlight: running, gone: [], resting: {}, now: NOW });
  return taintChanges({ pool: facts, members, running, turn });
}

/** After a turn that waits. */
function waiting(code: WaitingCode, members: NodeFacts[], running: string[] = []) {
  const pool = makePool();
  const turn: Turn = {
    ...planTurn({ pool, members, inFlight: running, gone: [], resting: {}, now: NOW }),
    start: [],
    done: false,
    waiting: { code, sentence: 'it waits' },
  };
  return taintChanges({ pool, members, running, turn });
}

const NOTHING = { add: [], remove: [] };

describe('taintChanges', () => {
  it('taints those that wait once one is updated, and not those that start, run or are updated', () => {
    const running = makeNode('b', { desired: NEW, unschedulable: true, cordonedFor: NEW });
    const members = [updatedTo('a', NEW), running, makeNode('c'), makeNode('d')];
    expect(changes(members, ['b'])).toEqual({ add: ['c', 'd'], remove: [] });
    // Two at once: the next one starts in this very turn.
    expect(changes(members, ['b'], { maxUnavailable: 2 })).toEqual({ add: ['d'], remove: [] });
  });

  it('has nothing to prefer before a first member is updated and in service', () => {
    expect(changes([makeNode('a'), makeNode('b')])).toEqual(NOTHING);
    const out = { ...updatedTo('a', NEW), unschedulable: true };
    expect(changes([out, makeNode('b'), makeNode('c')], ['b'])).toEqual(NOTHING);
  });

  it('writes nothing where all is as it should be', () => {
    expect(changes([updatedTo('a', NEW), makeNode('b'), tainted(makeNode('c'))], ['b'])).toEqual(NOTHING);
  });

  it('takes it off the updated, and leaves it on one that is on its way', () => {
    const members = [tainted(updatedTo('a', NEW)), tainted(makeNode('b', { desired: NEW })), tainted(makeNode('c'))];
    expect(changes(members, ['b'])).toEqual({ add: [], remove: ['a'] });
  });

  it('leaves out those that are held, cordoned or not managed', () => {
    const others = [
      makeNode('c', { hold: 'ask Ann' }),
      makeNode('d', { unschedulable: true }),
      makeNode('e', { worker: undefined }),
    ];
    expect(changes([updatedTo('a', NEW), makeNode('b'), ...others], ['b'])).toEqual(NOTHING);
    const held = tainted(makeNode('c', { hold: 'ask Ann' }));
    expect(changes([updatedTo('a', NEW), makeNode('b'), held], ['b'])).toEqual({ add: [], remove: ['c'] });
  });

  it.each([
    ['the pool is paused', { paused: true }],
    ['the pool does not want it', { rollout: { preferUpdatedNodes: false } }],
    ['the pool is being deleted', { deleting: true }],
  ])('takes it off all when %s', (_, pool) => {
    const members = [updatedTo('a', NEW), makeNode('b', { desired: NEW }), tainted(makeNode('c'))];
    expect(changes(members, ['b'], pool)).toEqual({ add: [], remove: ['c'] });
  });

  it('takes it off all when the rollout is done', () => {
    expect(changes([updatedTo('a', NEW), tainted(updatedTo('b', NEW))])).toEqual({ add: [], remove: ['b'] });
  });

  it.each(['Stopped', 'Halted'] as const)('takes it off when %s, also while an update runs', (code) => {
    const members = [updatedTo('a', NEW), makeNode('b', { desired: NEW }), tainted(makeNode('c'))];
    expect(waiting(code, members, ['b'])).toEqual({ add: [], remove: ['c'] });
  });

  it.each(['Soaking', 'GateClosed'] as const)('neither adds nor takes off between two nodes: %s', (code) => {
    expect(waiting(code, [updatedTo('a', NEW), makeNode('b'), tainted(makeNode('c'))])).toEqual(NOTHING);
  });

  it.each(['WindowClosed', 'ApprovalMissing', 'AfterPool', 'NodesDegraded'] as const)(
    'takes it off for a wait that may be long, unless an update runs: %s',
    (code) => {
      const members = [updatedTo('a', NEW), makeNode('b', { desired: NEW }), tainted(makeNode('c'))];
      expect(waiting(code, members)).toEqual({ add: [], remove: ['c'] });
      expect(waiting(code, members, ['b'])).toEqual(NOTHING);
    },
  );
});

describe('isLeftTainted', () => {
  const node = tainted(makeNode('a'));
  it('is who is in no pool, or in one that does not wait for it', () => {
    expect(isLeftTainted(node, undefined)).toBe(true);
    expect(isLeftTainted(node, makePool())).toBe(false);
    for (const pool of [
      { paused: true },
      { deleting: true },
      { target: OLD },
      { rollout: { preferUpdatedNodes: false } },
    ])
      expect(isLeftTainted(node, makePool(pool))).toBe(true);
  });
  it('is nobody without the taint', () => {
    expect(isLeftTainted(makeNode('a'), undefined)).toBe(false);
  });
});
