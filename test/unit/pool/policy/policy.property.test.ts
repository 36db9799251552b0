import { fc, test } from '@fast-check/vitest';
import { describe, expect } from 'vitest';
import type { Gate, RolloutPolicy } from '../../../../machine-config/api/rollout-policy.js';
import type { NodeFacts, PoolFacts } from '../../../../machine-config/pool/facts.js';
import { decideGrant } from '../../../../machine-config/pool/grant.js';
import { planTurn } from '../../../../machine-config/pool/plan-turn.js';
import { gatesInQuestion, type GateAnswer } from '../../../../machine-config/pool/policy/gates.js';
import { makeNode, NEW, NOW } from '../make-node.js';

const MINUTE = 60_000;
const ZONE = 'topology.kubernetes.io/zone';
const gate: Gate = { name: 'ready', nodeReady: { for: '1m' } };
const gates = fc.constantFrom<Gate[] | undefined>(undefined, [gate]);

const policy: fc.Arbitrary<RolloutPolicy> = fc
  .record({
    order: fc.constantFrom<RolloutPolicy['order']>(undefined as never, { by: 'NewestFirst' }, { by: 'Zone' }),
    canary: fc.constantFrom(
      undefined,
      { count: 2 },
      { percent: '20%' },
      { nodeSelector: { matchLabels: { gpu: 'yes' } } },
    ),
    stageSoak: fc.constantFrom(undefined, '3m'),
    stageGates: gates,
    soak: fc.constantFrom(undefined, '2m'),
    growth: fc.constantFrom(undefined, 'Constant' as const, 'Linear' as const, 'Exponential' as const),
    perZone: fc.constantFrom(undefined, 1, 2, '50%'),
    between: gates,
    after: gates,
    windows: fc.boolean(),
  })
  .map(({ order, canary, stageSoak, stageGates, soak, growth, perZone, between, after, windows }) => {
    const stage = { name: 'canary', ...canary, soak: stageSoak, gates: stageGates };
    const written = {
      order,
      stages: canary === undefined ? undefined : [defined(stage)],
      soak,
      pace: growth && { growth },
      maxUnavailablePerZone: perZone && { maxUnavailable: perZone },
      gates: defined({ betweenNodes: between, afterNode: after }),
      windows: windows
        ? {
            timeZone: 'UTC',
            allow: [
              { start: '12:10', length: '30m' },
              { start: '20:00', length: '4h' },
            ],
          }
        : undefined,
    };
    return defined(written) as RolloutPolicy;
  });

function defined<T extends object>(value: T): T {
  return Object.fromEntries(Object.entries(value).filter(([, each]) => each !== undefined)) as T;
}

const world = fc.record({
  policy,
  size: fc.integer({ min: 1, max: 14 }),
  maxUnavailable: fc.integer({ min: 1, max: 5 }),
  // At least one of them is even, so that updates end.
  choices: fc.array(fc.nat(99), { maxLength: 20 }).map((choices) => [...choices, 0]),
});

function member(index: number): NodeFacts {
  const labels = {
    ...(index % 4 === 3 ? {} : { [ZONE]: `zone-${index % 3}` }),
    ...(index % 5 === 0 ? { gpu: 'yes' } : {}),
  };
  return makeNode(`n${index}`, {
    labels,
    createdAt: `2026-01-${String(((index * 7) % 28) + 1).padStart(2, '0')}T00:00:00Z`,
  });
}

/** Written anew from the words of the API, so as not to ask the code about itself. */
function expectWithinLimits(pool: PoolFacts, nodes: readonly NodeFacts[], maxUnavailable: number) {
  const away = nodes.filter((node) => node.unschedulable);
  expect(away.length).toBeLessThanOrEqual(maxUnavailable);
  const written = pool.rollout?.maxUnavailablePerZone?.maxUnavailable;
  if (written === undefined) return;
  for (const zone of ['zone-0', 'zone-1', 'zone-2']) {
    const inZone = nodes.filter(({ labels }) => labels[ZONE] === zone).length;
    const most = typeof written === 'number' ? written : Math.max(1, Math.floor(inZone / 2));
    expect(away.filter(({ labels }) => labels[ZONE] === zone).length).toBeLessThanOrEqual(most);
  }
}

describe('a rollout under any policy', () => {
  test.prop([world], { numRuns: 15 })(
    'ends with every node updated once, within all limits, by starts that assign agrees with, told why it waits',
    ({ policy: rollout, size, maxUnavailable, choices }) => {
      const nodes = new Map(Array.from({ length: size }, (_, index) => [`n${index}`, member(index)]));
      const began = NOW - 30 * MINUTE;
      const pool: PoolFacts = {
        name: 'worker',
        uid: 'u',
        paused: false,
        deleting: false,
        target: NEW,
        maxUnavailable,
        rollout,
        rolloutStartedAt: began,
      };
      const gateOpens = new Map<string, number>();
      const updates = new Map<string, number>();
      const inFlight: string[] = [];
      let now = began;
      let done = false;
      for (let step = 0; step < 500 && !done; step += 1) {
        now += MINUTE;
        const members = [...nodes.values()];
        const facts = { pool, members, inFlight: [...inFlight], gone: [], resting: {}, now };
        const answers = gatesInQuestion(facts).map(({ id }): [string, GateAnswer] => {
          // Closed for three minutes at first, then open.
          if (!gateOpens.has(id)) gateOpens.set(id, now + 3 * MINUTE);
          return [id, { passed: now >= gateOpens.get(id)!, sentence: 'not yet' }];
        });
        const turn = planTurn({ ...facts, gateAnswers: Object.fromEntries(answers) });
        done = turn.done;
        for (const name of turn.passed ?? []) nodes.set(name, { ...nodes.get(name)!, gatesPassed: NEW });
        for (const { node: name } of turn.start) {
          const node = nodes.get(name)!;
          const current = [...nodes.values()];
          const grant = decideGrant({
            intent: 'start',
            pool,
            poolName: 'worker',
            node,
            nodeName: name,
            nodeUid: node.uid,
            members: current,
            now,
            poolOf: () => ({ kind: 'pool', pool: 'worker' }),
          });
          expect(grant).toMatchObject({ outcome: 'granted' });
          nodes.set(name, { ...node, desired: NEW, state: 'Working', unschedulable: true, cordonedFor: NEW });
          inFlight.push(name);
          updates.set(name, (updates.get(name) ?? 0) + 1);
        }
        expectWithinLimits(pool, [...nodes.values()], maxUnavailable);
        if (!done && turn.start.length === 0) {
          expect(turn.waiting?.sentence).toMatch(/\S/);
          // Where nothing is on its way that would wake the pool, it says when to look again, and is not looked at before.
          if (inFlight.length === 0) {
            expect(turn.waiting?.until).toBeGreaterThan(now);
            now = Math.max(now, turn.waiting!.until! - MINUTE);
          }
        }
        const choice = choices[step % choices.length]!;
        const [name] = choice % 2 === 0 ? inFlight.splice(choice % Math.max(1, inFlight.length), 1) : [];
        if (name === undefined) continue;
        const { labels, createdAt } = nodes.get(name)!;
        const lastUpdate = { target: NEW, at: now, seconds: {} };
        nodes.set(name, makeNode(name, { labels, createdAt, current: NEW, desired: NEW, lastUpdate }));
      }
      expect(done).toBe(true);
      expect([...updates.values()]).toEqual(Array.from({ length: size }, () => 1));
    },
  );
});
