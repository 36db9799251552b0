import { describe, expect, it } from 'vitest';
import type { Stage } from '../../../../machine-config/api/rollout-policy.js';
import type { NodeFacts } from '../../../../machine-config/pool/facts.js';
import { stagesOf } from '../../../../machine-config/pool/policy/stages.js';
import { limitOf } from '../../../../machine-config/pool/max-unavailable.js';
import { failedOn, makeNode, makeNodes, NEW, NOW, OLD, updatedTo } from '../make-node.js';
import { decide, MINUTE, plan, pooled, starts, updatedAgo } from './make-rollout.js';

const gpu = { labels: { gpu: 'yes' } };
const nodeSelector = { matchLabels: { gpu: 'yes' } };

function staged(stages: Stage[], members: NodeFacts[], more: Parameters<typeof pooled>[1] = {}) {
  const pool = pooled({ stages }, more);
  const facts = { pool, target: NEW, limit: limitOf(pool, members), members, running: new Set<string>(), now: NOW };
  return Object.fromEntries(
    stagesOf(facts).map(({ stage, members: held }) => [stage.name, held.map(({ name }) => name)]),
  );
}

describe('who is in which stage', () => {
  const five = makeNodes('a', 'b', 'c', 'd', 'e');

  it('takes by count, by percent of all rounded up, by selector, and leaves the others to the last', () => {
    expect(staged([{ name: 'canary', count: 2 }], five)).toEqual({ canary: ['a', 'b'], rest: ['c', 'd', 'e'] });
    expect(staged([{ name: 'canary', percent: '30%' }], five)).toEqual({ canary: ['a', 'b'], rest: ['c', 'd', 'e'] });
    expect(staged([{ name: 'gpus', nodeSelector }], [...five, makeNode('g', gpu)])).toEqual({
      gpus: ['g'],
      rest: ['a', 'b', 'c', 'd', 'e'],
    });
  });

  it('takes stage after stage from those that are left; a written last stage holds the rest', () => {
    const stages: Stage[] = [{ name: 'gpus', nodeSelector }, { name: 'one', count: 1 }, { name: 'all' }];
    expect(staged(stages, [makeNode('a', gpu), ...makeNodes('b', 'c', 'd')])).toEqual({
      gpus: ['a'],
      one: ['b'],
      all: ['c', 'd'],
    });
  });

  it('leaves out stages without nodes, and is nothing without stages', () => {
    expect(staged([{ name: 'gpus', nodeSelector }], five)).toEqual({ rest: ['a', 'b', 'c', 'd', 'e'] });
    expect(staged([], five)).toEqual({});
  });

  it('spends no stage on nodes on which nothing will happen', () => {
    const members = [
      makeNode('held', { hold: 'disk' }),
      makeNode('unmanaged', { worker: undefined }),
      makeNode('leaving', { deleting: true }),
      ...makeNodes('x', 'y'),
    ];
    expect(staged([{ name: 'canary', count: 1 }], members)).toEqual({ canary: ['x'], rest: ['y'] });
  });

  it('keeps its nodes when older ones join, others are held, or the order would be another by now', () => {
    const canary: Stage[] = [{ name: 'canary', count: 2 }];
    const joined = makeNode('0', { createdAt: '2020-01-01T00:00:00Z' });
    const done = updatedAgo('b', MINUTE);
    const working = makeNode('c', { desired: NEW, cordonedFor: NEW, unschedulable: true });
    expect(staged(canary, [joined, makeNode('a'), done, working])).toEqual({ canary: ['b', 'c'], rest: ['0', 'a'] });
    expect(staged(canary, [joined, { ...done, hold: 'disk' }, { ...working, hold: 'disk' }])).toEqual({
      canary: ['b', 'c'],
      rest: ['0'],
    });
  });
});

describe('stage by stage', () => {
  const canary: Stage[] = [{ name: 'canary', count: 2, soak: '1h' }];

  it('starts those of the first stage alone, and says what the others wait for', () => {
    const pool = pooled({ stages: canary });
    const members = makeNodes('a', 'b', 'c');
    expect(starts(pool, members)).toEqual(['a', 'b']);
    expect(decide(pool, members, { name: 'a' })).toMatchObject({ outcome: 'granted' });
    expect(decide(pool, members, { name: 'c' })).toMatchObject({
      code: 'StageWaits',
      sentence: 'Node c waits for stage canary of pool worker: it starts when the nodes of that stage are updated',
    });
  });

  it('waits for the whole stage, whatever keeps it, and names that', () => {
    const pool = pooled({ stages: canary });
    const members = [
      updatedAgo('a', 120 * MINUTE),
      makeNode('b', { ready: false, notReadyBecause: 'Ready is Unknown' }),
      makeNode('c'),
    ];
    expect(plan(pool, members)).toMatchObject({
      start: [],
      waiting: {
        code: 'StageWaits',
        sentence: expect.stringMatching(
          /1 node of pool worker waits for stage canary.*b is not ready \(Ready is Unknown\)/,
        ) as string,
      },
    });
    const running = [updatedAgo('a', 120 * MINUTE), makeNode('b', { desired: NEW }), makeNode('c')];
    expect(plan(pool, running, { inFlight: ['b'] }).waiting?.sentence).toMatch(/stage canary.*updates run on b/);
  });

  it('is not kept by a held node for ever, nor by one without a worker', () => {
    const members = [updatedAgo('a', 120 * MINUTE), makeNode('b', { hold: 'disk' }), makeNode('c'), makeNode('d')];
    const picky: Stage[] = [{ name: 'picked', nodeSelector }];
    expect(starts(pooled({ stages: canary }), members)).toEqual(['c']);
    const all = [makeNode('g', { ...gpu, hold: 'disk' }), makeNode('h', { ...gpu, worker: undefined }), makeNode('c')];
    expect(starts(pooled({ stages: picky }), all)).toEqual(['c']);
  });

  it('goes on when the stage is updated and has soaked, and not a millisecond before', () => {
    const pool = pooled({ stages: canary });
    const members = (ago: number) => [updatedAgo('a', 5 * 60 * MINUTE), updatedAgo('b', ago), makeNode('c')];
    expect(plan(pool, members(60 * MINUTE - 1))).toMatchObject({
      start: [],
      waiting: {
        code: 'Soaking',
        until: NOW + 1,
        sentence: 'Pool worker soaks after stage canary: stage rest may begin at 2026-03-01T12:00:00Z',
      },
    });
    expect(decide(pool, members(60 * MINUTE - 1), { name: 'c' })).toMatchObject({ code: 'Soaking' });
    expect(starts(pool, members(60 * MINUTE))).toEqual(['c']);
    expect(decide(pool, members(60 * MINUTE), { name: 'c' })).toMatchObject({ outcome: 'granted' });
  });

  it('does not soak after a stage that ran the target before the rollout', () => {
    expect(starts(pooled({ stages: canary }), [updatedTo('a', NEW), updatedTo('b', NEW), makeNode('c')])).toEqual([
      'c',
    ]);
  });

  it('is not passed by in the pool of a failed canary', () => {
    const failed = failedOn('a', NEW, 1, NOW - 30 * MINUTE);
    expect(starts(pooled({ stages: [{ name: 'canary', count: 1 }] }), [failed, makeNode('c')])).toEqual(['a']);
  });

  it('takes back the slot of a node that was granted another config, before the stage of this one', () => {
    // Else it would keep the only slot from the stage, and the stage its turn from it.
    const left = makeNode('x', { desired: 'rendered-worker-between' });
    const pool = pooled({ stages: [{ name: 'gpus', nodeSelector }] }, { maxUnavailable: 1 });
    const members = [makeNode('g', gpu), left];
    expect(starts(pool, members)).toEqual(['x']);
    expect(decide(pool, members, { name: 'x' })).toEqual({ outcome: 'unneeded', target: OLD, cordonedByUs: false });
    // In its own stage it gets the present target at once.
    expect(decide(pool, [left], { name: 'x' })).toMatchObject({ outcome: 'granted', target: NEW });
  });

  it('brings to its end what was begun in a later stage', () => {
    const begun = makeNode('x', { desired: NEW, cordonedFor: NEW, unschedulable: true });
    const members = [makeNode('g', gpu), begun];
    const pool = pooled({ stages: [{ name: 'gpus', nodeSelector }] });
    expect(starts(pool, members)).toEqual(['x', 'g']);
    expect(decide(pool, members, { name: 'x' })).toMatchObject({ outcome: 'granted' });
  });
});

describe('the approval of a stage', () => {
  const stages: Stage[] = [
    { name: 'canary', count: 1, approval: 'Required' },
    { name: 'all', approval: 'Required' },
  ];
  const approved = (config: string, ...names: string[]) => ({ approval: { config, stages: names } });
  const members = makeNodes('a', 'b');

  it('is asked for before the first node of the stage, for this config', () => {
    for (const more of [{}, approved(NEW, 'all'), approved('rendered-worker-before', 'canary')]) {
      const pool = pooled({ stages }, more);
      expect(plan(pool, members)).toMatchObject({ start: [], waiting: { code: 'ApprovalMissing' } });
      expect(decide(pool, members, { name: 'a' })).toMatchObject({
        code: 'ApprovalMissing',
        sentence: expect.stringMatching(
          /Stage canary .*rendered-worker-new.*`drydock rollout approve worker`/,
        ) as string,
      });
    }
    expect(plan(pooled({ stages }, approved('rendered-worker-before', 'canary')), members).waiting?.sentence).toContain(
      'the approval there is for rendered-worker-before',
    );
    expect(starts(pooled({ stages }, approved(NEW, 'canary')), members)).toEqual(['a']);
  });

  it('lets the next stage wait for its own, and no stage be passed over', () => {
    const done = [updatedAgo('a', MINUTE), makeNode('b')];
    expect(plan(pooled({ stages }, approved(NEW, 'canary')), done).waiting?.sentence).toMatch(/Stage all of pool/);
    expect(plan(pooled({ stages }, approved(NEW, 'all')), done).waiting?.sentence).toMatch(/Stage canary of pool/);
    expect(starts(pooled({ stages }, approved(NEW, 'canary', 'all')), done)).toEqual(['b']);
  });

  it('is not asked for by a roll-back, which wants what has run everywhere', () => {
    expect(starts(pooled({ stages }, { rollingBack: true }), members)).toEqual(['a', 'b']);
  });
});
