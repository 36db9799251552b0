import { expect, it } from 'vitest';
import { planTurn } from '../../../machine-config/pool/plan-turn.js';
import { makeNode, makePool, NOW } from '../pool/make-node.js';

it('a node that rests because its drain took too long is told as that, and not as one whose worker is away', () => {
  const resting = { n1: NOW + 600_000 };
  const wait = (facts: Parameters<typeof makeNode>[1]) =>
    planTurn({
      pool: makePool(),
      members: [makeNode('n1', facts)],
      inFlight: [],
      gone: [],
      resting,
      now: NOW,
    }).waiting;
  const sentence = 'drain of n1: pod shop/cart not gone after 10m (spec.rollout.drain.timeout)';
  const undrained = wait({ drainBlocked: { sentence, pods: ['shop/cart'], budgets: [] } });
  expect(undrained).toMatchObject({ code: 'NodesUndrained', until: resting.n1 });
  expect(undrained?.sentence).toContain(`n1 was given back (${sentence}), next attempt at 2026-03-01T12:10:00Z`);
  expect(wait({})?.code).toBe('NodesUnreachable');
});
