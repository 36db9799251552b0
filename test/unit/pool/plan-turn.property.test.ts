import { fc, test } from '@fast-check/vitest';
import { describe, expect } from 'vitest';
import type { NodeFacts } from '../../../machine-config/pool/facts.js';
import { annotationsOfGrant, decideGrant } from '../../../machine-config/pool/grant.js';
import { resolveMaxUnavailable } from '../../../machine-config/pool/max-unavailable.js';
import { planTurn, type PlanTurnFacts } from '../../../machine-config/pool/plan-turn.js';
import { makeNode, makePool, NEW, NOW, OLD } from './make-node.js';

const maybe = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined });
const config = fc.constantFrom(OLD, NEW, 'rendered-worker-between');
const overrides = fc.record({
  createdAt: fc.constantFrom('2026-01-01T00:00:00Z', '2026-01-02T00:00:00Z', '2025-12-31T00:00:00.000Z', ''),
  ready: fc.boolean(),
  unschedulable: fc.boolean(),
  deleting: fc.boolean(),
  worker: maybe(fc.constant('1.0.0')),
  current: maybe(config),
  desired: maybe(config),
  state: maybe(fc.constantFrom('Done' as const, 'Working' as const, 'Degraded' as const, 'Unreconcilable' as const)),
  applying: maybe(config),
  cordonedFor: maybe(config),
  failure: maybe(
    fc.record(
      {
        target: config,
        attempts: fc.nat(6),
        at: fc.constant(new Date(NOW - 120_000).toISOString()),
        code: fc.constantFrom('ApplyFailed', 'Drifted', 'RolledBackAfterBoot'),
      },
      { requiredKeys: ['target', 'attempts', 'at'] },
    ),
  ),
  force: maybe(fc.constantFrom('boot-1', 'boot-0')),
  forceGranted: maybe(fc.constantFrom('boot-1', 'boot-0')),
});
/** Many that may start, so that they meet: any node is rarely one. */
const startable = fc.record({
  current: fc.constantFrom(OLD, NEW),
  desired: fc.constant(undefined),
  state: fc.constantFrom('Done' as const, 'Degraded' as const),
  force: maybe(fc.constant('boot-1')),
});
const members = fc
  .array(fc.oneof(overrides, startable), { maxLength: 12 })
  .map((list) => list.map((facts, index) => makeNode(`n${index}`, facts)));
const turnFacts: fc.Arbitrary<PlanTurnFacts> = fc
  .record({
    members,
    flying: fc.array(fc.nat(14), { maxLength: 4 }),
    lost: fc.array(fc.nat(14), { maxLength: 2 }),
    maxUnavailable: fc.oneof(fc.integer({ min: -1, max: 8 }), fc.constantFrom('0%', '10%', '50%', '100%', 'x')),
    paused: fc.boolean(),
    deleting: fc.boolean(),
  })
  .map(({ members: nodes, flying, lost, maxUnavailable, paused, deleting }) => {
    const inFlight = [...new Set(flying.map((index) => `n${index}`))];
    const gone = inFlight.filter((name) => lost.includes(Number(name.slice(1))));
    const pool = makePool({ maxUnavailable, paused: paused && deleting, deleting: deleting && !paused });
    return { pool, members: nodes, inFlight, gone, resting: {}, now: NOW };
  });

/** Written anew from the words of the design, so as not to ask the code about itself. */
const isForced = ({ force, applying }: NodeFacts) =>
  force === 'boot-1' || (force !== undefined && applying !== undefined);
const outOfService = (node: NodeFacts) =>
  !node.ready ||
  node.unschedulable ||
  node.deleting ||
  (node.applying !== undefined && (node.applying !== node.current || isForced(node)));
const holdsSlot = (node: NodeFacts) =>
  (node.desired !== undefined && node.desired !== node.current) ||
  (isForced(node) && node.force === node.forceGranted) ||
  (node.applying !== undefined && (node.applying !== node.current || isForced(node))) ||
  node.cordonedFor !== undefined;
const ours = (node: NodeFacts) =>
  node.worker !== undefined ||
  (node.desired !== undefined && node.desired !== node.current) ||
  node.applying !== undefined ||
  node.cordonedFor !== undefined;

describe('planTurn, for any pool', () => {
  test.prop([turnFacts])('never takes a working node out of service beyond maxUnavailable', (facts) => {
    const turn = planTurn(facts);
    const down = new Set(facts.inFlight.filter((name) => !facts.gone.includes(name)));
    for (const node of facts.members) if (outOfService(node) && ours(node)) down.add(node.name);
    const taken = turn.start.filter((start) => !down.has(start.node));
    if (taken.length > 0) expect(down.size + taken.length).toBeLessThanOrEqual(turn.maxUnavailable);
  });

  test.prop([turnFacts])(
    'starts no node twice, none in flight, none unmanaged, not ready or held by others',
    (facts) => {
      const names = planTurn(facts).start.map((start) => start.node);
      expect(new Set(names).size).toBe(names.length);
      for (const name of names) {
        expect(facts.inFlight).not.toContain(name);
        const node = facts.members.find((member) => member.name === name)!;
        expect(node.worker).toBeDefined();
        expect(node.ready && !node.deleting).toBe(true);
        expect(node.unschedulable && node.cordonedFor === undefined).toBe(false);
      }
    },
  );

  test.prop([turnFacts])('begins nothing while paused, deleted or without a valid limit', (facts) => {
    const { pool } = facts;
    const valid = resolveMaxUnavailable(pool.maxUnavailable, facts.members.length, pool.name).ok;
    const { start } = planTurn(facts);
    if (pool.deleting) expect(start).toEqual([]);
    if (!pool.paused && valid) return;
    for (const { node: name } of start) {
      const node = facts.members.find((member) => member.name === name)!;
      expect(node.applying ?? node.cordonedFor).toBeDefined();
    }
  });

  test.prop([turnFacts, fc.integer()])('gives the same answer for any order of the members', (facts, seed) => {
    const shuffled = [...facts.members].sort((a, b) => hash(a.name, seed) - hash(b.name, seed));
    const turn = planTurn({ ...facts, members: shuffled });
    expect({ ...turn, reconsider: [...turn.reconsider].sort() }).toEqual({
      ...planTurn(facts),
      reconsider: [...planTurn(facts).reconsider].sort(),
    });
  });

  test.prop([turnFacts])('passes over no older fresh node for a younger one', (facts) => {
    const { start } = planTurn(facts);
    const times = start
      .map(({ node }) => facts.members.find((member) => member.name === node)!)
      .filter((node) => node.desired === node.current && node.applying === undefined && node.cordonedFor === undefined)
      .map((node) => (node.createdAt === '' ? Infinity : Date.parse(node.createdAt)));
    expect(times).toEqual([...times].sort((a, b) => (a === b ? 0 : a - b)));
  });

  test.prop([turnFacts])('says why whenever nothing starts, nothing runs and it is not done', (facts) => {
    const turn = planTurn(facts);
    const idle = turn.start.length === 0 && facts.inFlight.length === 0;
    if (idle && !turn.done) expect(turn.waiting?.sentence).toMatch(/\S/);
  });

  test.prop([turnFacts])('is agreed with by decideGrant for each first start that it asks for', (facts) => {
    const [first] = planTurn(facts).start;
    if (first === undefined || facts.inFlight.length > 0) return;
    const node = facts.members.find((member) => member.name === first.node);
    const grant = decideGrant({
      intent: 'start',
      pool: facts.pool,
      poolName: facts.pool.name,
      node,
      nodeName: first.node,
      nodeUid: first.nodeUid,
      members: facts.members,
      now: facts.now,
      poolOf: () => ({ kind: 'pool', pool: facts.pool.name }),
    });
    expect(grant.outcome).not.toBe('refused');
  });
});

describe('decideGrant, whoever asks for whatever in any order', () => {
  const asked = fc.array(fc.nat(11), { minLength: 1, maxLength: 24 });
  test.prop([members, fc.integer({ min: 1, max: 5 }), asked])(
    'gives out no slot beyond maxUnavailable, forced or not',
    (nodes, maxUnavailable, order) => {
      const pool = makePool({ maxUnavailable });
      const state = new Map(nodes.map((node) => [node.name, node]));
      for (const index of order) {
        const before = state.get(`n${index}`);
        if (before === undefined) continue;
        const grant = decideGrant({
          intent: 'start',
          pool,
          poolName: pool.name,
          node: before,
          nodeName: before.name,
          nodeUid: before.uid,
          members: [...state.values()],
          now: NOW,
          poolOf: () => ({ kind: 'pool', pool: pool.name }),
        });
        if (grant.outcome !== 'granted' || holdsSlot(before)) continue;
        const written = annotationsOfGrant(before, grant);
        const after: NodeFacts =
          written === undefined
            ? before
            : makeNode(before.name, {
                ...before,
                desired: written.desired,
                forceGranted: written.forceGranted ?? undefined,
              });
        state.set(before.name, after);
        expect(holdsSlot(after)).toBe(true);
        const taken = [...state.values()].filter((node) => ours(node) && (holdsSlot(node) || outOfService(node)));
        expect(taken.length).toBeLessThanOrEqual(maxUnavailable);
      }
    },
  );
});

function hash(name: string, seed: number): number {
  return Array.from(name).reduce((sum, letter) => (sum * 31 + letter.charCodeAt(0)) | 0, seed);
}

interface Fleet {
  readonly sizes: number;
  readonly maxUnavailable: number | string;
  readonly choices: readonly number[];
}
const fleet: fc.Arbitrary<Fleet> = fc.record({
  sizes: fc.integer({ min: 1, max: 15 }),
  maxUnavailable: fc.oneof(fc.integer({ min: 1, max: 5 }), fc.constantFrom('10%', '50%', '100%')),
  choices: fc.array(fc.nat(99), { minLength: 1, maxLength: 40 }),
});

describe('a rollout that carries out what planTurn says', () => {
  test.prop([fleet])('ends done, with each node updated once and the limit kept at every moment', (input) => {
    const nodes = new Map(
      Array.from({ length: input.sizes }, (_, index) => {
        const name = `n${index}`;
        return [
          name,
          makeNode(name, { createdAt: `2026-01-${String(((index * 7) % 28) + 1).padStart(2, '0')}T00:00:00Z` }),
        ];
      }),
    );
    const pool = makePool({ maxUnavailable: input.maxUnavailable });
    const inFlight: string[] = [];
    const updates = new Map<string, number>();
    let shown = [...nodes.values()];
    for (let step = 0; step < 500; step += 1) {
      // The cache shows the world of one step ago.
      const turn = planTurn({ pool, members: shown, inFlight: [...inFlight], gone: [], resting: {}, now: NOW });
      if (turn.done) break;
      shown = [...nodes.values()];
      for (const { node } of turn.start) {
        inFlight.push(node);
        updates.set(node, (updates.get(node) ?? 0) + 1);
        nodes.set(node, { ...nodes.get(node)!, desired: NEW, state: 'Working', unschedulable: true, cordonedFor: NEW });
      }
      expect(inFlight.length).toBeLessThanOrEqual(turn.maxUnavailable);
      const choice = input.choices[step % input.choices.length]!;
      if (choice % 3 === 0 || turn.start.length === 0) {
        const [name] = inFlight.splice(choice % Math.max(1, inFlight.length), 1);
        if (name !== undefined)
          nodes.set(name, makeNode(name, { createdAt: nodes.get(name)!.createdAt, current: NEW, desired: NEW }));
        // Its last write reaches the cache before its workflow ends: `uncordon` answers after the patch.
        shown = [...nodes.values()];
      }
    }
    expect(planTurn({ pool, members: [...nodes.values()], inFlight, gone: [], resting: {}, now: NOW }).done).toBe(true);
    expect([...nodes.values()].every((node) => node.current === NEW && !node.unschedulable)).toBe(true);
    expect([...updates.values()].every((count) => count === 1)).toBe(true);
    expect(updates.size).toBe(input.sizes);
  });
});
