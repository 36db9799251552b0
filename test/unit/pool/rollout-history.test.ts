import { describe, expect, it } from 'vitest';
import type { PoolRollout } from '../../../machine-config/api/machine-config-pool.js';
import type { NodeFacts, PoolFacts } from '../../../machine-config/pool/facts.js';
import { needsRollout } from '../../../machine-config/pool/plan-turn.js';
import { rolloutHistory } from '../../../machine-config/pool/rollout-history.js';
import { failedOn, makeNode, makeNodes, makePool, NEW, NOW, OLD, updatedTo } from './make-node.js';

const at = (hour: number) => new Date(NOW + hour * 3_600_000).toISOString();

interface Step {
  readonly members: NodeFacts[];
  readonly pool?: Partial<PoolFacts>;
}

/** The history after these steps, an hour apart. */
function history(...steps: Step[]): PoolRollout[] {
  return steps.reduce<PoolRollout[]>((rollouts, { members, pool: changes = {} }, hour) => {
    const pool = makePool(changes);
    const updated = members.filter(({ current }) => current === pool.target).length;
    const previous = { rollouts, configuration: { name: OLD } };
    const facts = { pool, members, previous, updated, isDue: needsRollout(pool, members), now: at(hour) };
    const next = rolloutHistory(facts);
    expect(rolloutHistory({ ...facts, previous: { ...previous, rollouts: next }, now: 'later' })).toEqual(next);
    return next;
  }, []);
}

describe('the rollouts that a pool remembers', () => {
  it('begin with the first node that has to go, and end when all nodes run the target', () => {
    const begun = { target: NEW, from: OLD, startedAt: at(0), outcome: 'Running', updated: 0, failed: 0 };
    expect(history({ members: makeNodes('a', 'b') })).toEqual([begun]);
    const half = { members: [updatedTo('a', NEW), makeNode('b')] };
    expect(history({ members: makeNodes('a', 'b') }, half)).toEqual([{ ...begun, updated: 1 }]);
    const all = { members: [updatedTo('a', NEW), updatedTo('b', NEW)] };
    expect(history({ members: makeNodes('a', 'b') }, half, all, all)).toEqual([
      { ...begun, updated: 2, outcome: 'Completed', finishedAt: at(2) },
    ]);
  });

  it('hold none for a pool that has nothing to do, and none for a node that joins one that is done', () => {
    expect(history({ members: [updatedTo('a', NEW)] })).toEqual([]);
    const done = { members: [updatedTo('a', NEW)] };
    const joined = history({ members: makeNodes('a') }, done, { members: [updatedTo('a', NEW), makeNode('b')] });
    expect(joined).toMatchObject([{ outcome: 'Completed', finishedAt: at(1), updated: 1 }]);
  });

  it('are superseded by the next target, with the count that they came to', () => {
    const rollouts = history(
      { members: [updatedTo('a', NEW), makeNode('b')] },
      { members: [updatedTo('a', NEW), makeNode('b')], pool: { target: 'rendered-worker-next' } },
    );
    expect(rollouts).toMatchObject([
      { target: NEW, outcome: 'Superseded', finishedAt: at(1), updated: 1 },
      { target: 'rendered-worker-next', outcome: 'Running', updated: 0 },
    ]);
    const taken = history({ members: makeNodes('a') }, { members: makeNodes('a'), pool: { target: OLD } });
    expect(taken).toMatchObject([{ target: NEW, outcome: 'Superseded' }]);
  });

  it('are Halted while the failure budget is used up, and go on after a resume', () => {
    const members = [failedOn('a', NEW, 3, NOW), makeNode('b')];
    const halted = history({ members });
    expect(halted).toMatchObject([{ outcome: 'Halted', failed: 1 }]);
    expect(halted[0]?.finishedAt).toBeUndefined();
    const resumed = history({ members }, { members, pool: { resumedAt: NOW + 1 } });
    expect(resumed).toMatchObject([{ outcome: 'Running', failed: 1 }]);
    const next = history({ members }, { members, pool: { target: 'rendered-worker-next' } });
    expect(next[0]).toMatchObject({ outcome: 'Halted', finishedAt: at(1) });
  });

  it('are RolledBack when the pool goes back, which is a rollout of its own', () => {
    const members = [updatedTo('a', NEW), makeNode('b')];
    const rollouts = history({ members }, { members, pool: { target: OLD, rollingBack: true } });
    expect(rollouts).toMatchObject([
      { target: NEW, outcome: 'RolledBack', finishedAt: at(1) },
      { target: OLD, outcome: 'Running', startedAt: at(1) },
    ]);
    expect(rollouts[1]).not.toHaveProperty('from');
  });

  it('tell each approval once, with who gave it and when', () => {
    const members = makeNodes('a');
    const approved = (stages: string[], by: string, config = NEW) => ({
      members,
      pool: { approval: { config, stages, by } },
    });
    const rollouts = history(
      { members },
      approved(['canary'], 'alice'),
      approved(['canary', 'rest'], 'bob'),
      approved(['other'], 'eve', OLD),
    );
    expect(rollouts[0]?.approvals).toEqual([
      { stage: 'canary', by: 'alice', at: at(1) },
      { stage: 'rest', by: 'bob', at: at(2) },
    ]);
    const unsigned = history({ members, pool: { approval: { config: NEW, stages: ['canary'] } } });
    expect(unsigned[0]?.approvals).toEqual([{ stage: 'canary', by: 'unknown', at: at(0) }]);
  });

  it('are ten at most, the last ones', () => {
    const steps = Array.from({ length: 14 }, (_, index) => ({
      members: makeNodes('a'),
      pool: { target: `rendered-worker-${index}` },
    }));
    const targets = history(...steps).map(({ target }) => target);
    expect(targets).toEqual(Array.from({ length: 10 }, (_, index) => `rendered-worker-${index + 4}`));
  });

  it('stay as they are for a pool without a target or in deletion', () => {
    const members = makeNodes('a');
    const first = history({ members });
    expect(history({ members }, { members, pool: { deleting: true, target: OLD } })).toEqual(first);
  });
});
