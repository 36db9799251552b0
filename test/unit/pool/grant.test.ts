import { describe, expect, it } from 'vitest';
import type { OsDemands } from '../../../machine-config/pool/capabilities.js';
import type { NodeFacts, PoolFacts } from '../../../machine-config/pool/facts.js';
import { annotationsOfGrant, decideGrant, type GrantFacts } from '../../../machine-config/pool/grant.js';
import { withPending, type PendingGrant } from '../../../machine-config/pool/grant-record.js';
import { failedOn, makeNode, makeNodes, makePool, NEW, NOW, OLD, updatedTo } from './make-node.js';

const MINUTE = 60_000;

function decide(intent: GrantFacts['intent'], node: NodeFacts, more: Partial<GrantFacts> = {}) {
  return decideGrant({
    intent,
    pool: makePool(),
    poolName: 'worker',
    node,
    nodeName: node.name,
    nodeUid: node.uid,
    members: [node, ...makeNodes('other-1', 'other-2')],
    now: NOW,
    poolOf: () => ({ kind: 'pool', pool: 'worker' }),
    ...more,
  });
}
const refusal = (code: string) => ({ outcome: 'refused', code });
const granted = (target: string) => ({ outcome: 'granted', target, current: OLD });
const held = (overrides: Partial<NodeFacts> = {}) =>
  makeNode('n', { desired: NEW, unschedulable: true, cordonedFor: NEW, state: 'Working', ...overrides });

const drifted = (overrides: Partial<NodeFacts> = {}) => ({
  ...updatedTo('n', NEW),
  state: 'Degraded' as const,
  ...overrides,
});
const forced = (overrides: Partial<NodeFacts> = {}) => drifted({ force: 'boot-1', ...overrides });
const rolledBack = (name: string): NodeFacts => ({
  ...failedOn(name, NEW, 1, NOW - 600 * MINUTE),
  failure: { target: NEW, attempts: 1, at: new Date(NOW - 600 * MINUTE).toISOString(), code: 'RolledBackAfterBoot' },
});

describe('decideGrant, start', () => {
  it('grants the target of the pool to a candidate while a slot is free', () => {
    expect(decide('start', makeNode('n'))).toEqual(granted(NEW));
  });

  it('grants a drifted node another config than the one it drifted from, which its host then judges', () => {
    expect(decide('start', makeNode('n', { state: 'Degraded' }))).toEqual(granted(NEW));
  });

  it('refuses a node whose host cannot do what the target asks, and says what', () => {
    const host = { os: 'Debian 12', arch: 'amd64', backend: 'none', cannot: { fips: 'it is off here' } };
    const demands: OsDemands = { fields: ['fips'], kernelType: 'default' };
    expect(decide('start', makeNode('n', { host }), { demands })).toMatchObject({
      ...refusal('CannotDo'),
      sentence: expect.stringMatching(/n cannot do spec\.fips \(it is off here\)/) as string,
    });
    expect(decide('start', makeNode('n', { host }))).toEqual(granted(NEW));
  });

  const refused: [string, NodeFacts, string][] = [
    ['an unmanaged node', makeNode('n', { worker: undefined }), 'NotManaged'],
    ['a node that is not ready', makeNode('n', { ready: false, notReadyBecause: 'Ready is Unknown' }), 'NotReady'],
    ['a node that others cordoned', makeNode('n', { unschedulable: true }), 'CordonedByOthers'],
    ['a drifted node on the target', { ...updatedTo('n', NEW), state: 'Degraded' }, 'Drifted'],
    ['a node that came back from the target', rolledBack('n'), 'RolledBack'],
    ['a node in its back-off', failedOn('n', NEW, 1, NOW - 1000), 'Backoff'],
    ['a node under deletion', makeNode('n', { deleting: true }), 'NodeGone'],
  ];
  it.each(refused)('refuses %s', (_, node, code) => {
    expect(decide('start', node)).toMatchObject(refusal(code));
  });

  const pools: [string, PoolFacts | undefined, string][] = [
    ['paused', makePool({ paused: true }), 'PoolPaused'],
    ['being deleted', makePool({ deleting: true }), 'PoolDeleting'],
    ['gone', undefined, 'PoolDeleting'],
    ['without a rendered config', { name: 'worker', uid: 'u', paused: false, deleting: false }, 'NothingRendered'],
    ['stopped by maxUnavailable 0', makePool({ maxUnavailable: 0 }), 'MaxUnavailableInvalid'],
    ['with a malformed maxUnavailable', makePool({ maxUnavailable: 'all' }), 'MaxUnavailableInvalid'],
  ];
  it.each(pools)('refuses while the pool is %s', (_, pool, code) => {
    expect(decide('start', makeNode('n'), { pool })).toMatchObject(refusal(code));
  });

  it('refuses a node that is gone, is another machine, or belongs elsewhere', () => {
    const node = makeNode('n');
    expect(decide('start', node, { node: undefined })).toMatchObject(refusal('NodeGone'));
    expect(decide('start', node, { nodeUid: 'uid-before' })).toMatchObject(refusal('NodeReplaced'));
    expect(decide('start', node, { poolOf: () => ({ kind: 'none' }) })).toMatchObject(refusal('NotMember'));
    expect(decide('start', node, { poolOf: () => ({ kind: 'pool', pool: 'infra' }) })).toMatchObject({
      ...refusal('NotMember'),
      sentence: expect.stringContaining('infra') as string,
    });
    const sentence = 'two pools';
    expect(decide('start', node, { poolOf: () => ({ kind: 'conflict', pools: [], sentence }) })).toMatchObject({
      code: 'NotMember',
      sentence,
    });
  });

  it.each<[string, NodeFacts]>([
    ['granted', makeNode('other', { desired: NEW })],
    ['not ready', makeNode('other', { ready: false })],
    ['cordoned', makeNode('other', { unschedulable: true })],
    ['failed on the target', failedOn('other', NEW, 2, NOW)],
  ])('refuses while another node takes the only slot because it is %s', (_, other) => {
    const node = makeNode('n');
    const grant = decide('start', node, { members: [node, other] });
    expect(grant).toMatchObject(refusal('NoSlot'));
    expect(grant).toHaveProperty('sentence', expect.stringContaining('other'));
    expect(decide('start', node, { members: [node, other], pool: makePool({ maxUnavailable: 2 }) })).toEqual(
      granted(NEW),
    );
  });

  it('is not kept back by unmanaged members, whatever their state', () => {
    const node = makeNode('n');
    const other = makeNode('u', { worker: undefined, current: undefined, desired: undefined, ready: false });
    expect(decide('start', node, { members: [node, other] })).toEqual(granted(NEW));
  });

  it('counts a recorded slot although its node does not show it yet', () => {
    const start = (pending: Partial<PendingGrant>, more: Partial<GrantFacts> = {}) => {
      const grant = { node: 'other-1', at: new Date(NOW - 1000).toISOString(), target: NEW, ...pending };
      const members = [makeNode('n'), ...makeNodes('other-1', 'other-2')];
      return decide('start', makeNode('n'), { members: withPending(members, [grant], 'n'), ...more });
    };
    expect(start({})).toMatchObject(refusal('NoSlot'));
    expect(start({}, { pool: makePool({ maxUnavailable: 2 }) })).toEqual(granted(NEW));
    expect(start({ node: 'n' })).toEqual(granted(NEW));
    expect(start({ node: 'deleted' })).toEqual(granted(NEW));
  });

  it('answers unneeded for a node that is there, and says whether our cordon is left', () => {
    const done = updatedTo('n', NEW);
    expect(decide('start', done)).toEqual({ outcome: 'unneeded', target: NEW, cordonedByUs: false });
    expect(decide('start', done, { pool: makePool({ paused: true }) })).toMatchObject({ outcome: 'unneeded' });
    expect(decide('start', { ...done, unschedulable: true, cordonedFor: NEW })).toEqual({
      outcome: 'unneeded',
      target: NEW,
      cordonedByUs: true,
    });
  });

  it('takes back a grant that has become pointless because the pool went back', () => {
    const node = { ...failedOn('n', NEW, 2, NOW) };
    expect(decide('start', node, { pool: makePool({ target: OLD }) })).toMatchObject({
      outcome: 'unneeded',
      target: OLD,
    });
  });

  it('lets a node that we left cordoned go on although others take all slots', () => {
    const node = held({ state: 'Working' });
    expect(decide('start', node, { members: [node, makeNode('x', { ready: false })] })).toEqual(granted(NEW));
  });

  it('does not take a working node out of service beyond the limit although it holds a slot', () => {
    const node = makeNode('n', { desired: NEW });
    expect(decide('start', node, { members: [node, makeNode('x', { ready: false })] })).toMatchObject(
      refusal('NoSlot'),
    );
    expect(decide('start', node, { members: [node, makeNode('x', { desired: NEW })] })).toEqual(granted(NEW));
  });
});

describe('decideGrant for a forced node', () => {
  const again = { outcome: 'granted', target: NEW, current: NEW };
  const apart = 'rendered-worker-newer';

  it.each<[string, NodeFacts]>([
    ['drifted', forced()],
    ['well', { ...updatedTo('n', NEW), force: 'boot-1' }],
    ['back from the target after its boot', { ...forced(), failure: rolledBack('n').failure! }],
  ])('grants the config that it runs once more: %s', (_, node) => {
    expect(decide('start', node)).toEqual(again);
  });

  it('grants nothing where it was asked in an earlier boot, or the pool is paused', () => {
    expect(decide('start', forced({ force: 'boot-0' }))).toMatchObject(refusal('Drifted'));
    expect(decide('start', forced(), { pool: makePool({ paused: true }) })).toMatchObject(refusal('PoolPaused'));
  });

  it('needs room among those that were granted a slot, seen or not', () => {
    const start = (members: NodeFacts[], more: Partial<GrantFacts> = {}) =>
      decide('start', forced(), { members: [forced(), ...members], ...more });
    expect(start([drifted({ name: 'x' })])).toEqual(again);
    expect(start([forced({ name: 'x' })])).toEqual(again);
    for (const other of [
      forced({ name: 'x', forceGranted: 'boot-1' }),
      makeNode('x', { desired: NEW }),
      makeNode('x', { ready: false }),
    ]) {
      expect(start([other])).toMatchObject(refusal('NoSlot'));
    }
    const pending = [{ node: 'x', at: new Date(NOW - 1000).toISOString(), target: NEW, force: 'boot-1' }];
    const members = withPending([forced(), forced({ name: 'x' })], pending, 'n');
    expect(start([], { members })).toMatchObject(refusal('NoSlot'));
  });

  it('keeps its slot, follows the pool, and lets nothing stop it once it has begun', () => {
    const node = forced({ forceGranted: 'boot-1', unschedulable: true, cordonedFor: NEW });
    expect(decide('continue', node)).toEqual(again);
    expect(decide('continue', node, { pool: makePool({ paused: true }) })).toEqual(again);
    expect(decide('continue', node, { pool: makePool({ target: apart }) })).toMatchObject({ target: apart });
    const begun = { ...node, applying: NEW, bootId: 'boot-2' };
    for (const pool of [makePool({ target: apart }), makePool({ deleting: true }), undefined]) {
      expect(decide('continue', begun, { pool })).toEqual(again);
      expect(decide('withdraw', begun, { pool })).toEqual(again);
    }
  });

  it('is unneeded as soon as nobody asks any more', () => {
    const node = drifted({ forceGranted: 'boot-1', unschedulable: true, cordonedFor: NEW });
    expect(decide('continue', node)).toEqual({ outcome: 'unneeded', target: NEW, cordonedByUs: true });
    expect(decide('start', node)).toEqual({ outcome: 'unneeded', target: NEW, cordonedByUs: true });
  });
});

describe('annotationsOfGrant', () => {
  const grant = { outcome: 'granted', target: NEW, current: OLD } as const;
  const back = { outcome: 'unneeded', target: NEW, cordonedByUs: false } as const;
  it.each([
    ['another config', makeNode('n'), grant, { desired: NEW, forceGranted: null }],
    ['what is granted already', makeNode('n', { desired: NEW }), grant, undefined],
    ['by force', forced(), grant, { desired: NEW, forceGranted: 'boot-1' }],
    ['by force already', forced({ forceGranted: 'boot-1' }), grant, undefined],
    [
      'by a force of an earlier boot',
      forced({ forceGranted: 'boot-0' }),
      grant,
      { desired: NEW, forceGranted: 'boot-1' },
    ],
    [
      'what was granted by force and is given back',
      forced({ forceGranted: 'boot-1' }),
      back,
      { desired: NEW, forceGranted: null },
    ],
    ['what was given back', forced(), back, undefined],
  ])('says what the Node does not say yet: %s', (_, node, decision, expected) => {
    expect(annotationsOfGrant(node, decision)).toEqual(expected);
  });
});

describe('decideGrant, continue', () => {
  it('grants the present target to a node that has not begun to apply', () => {
    const newer = makePool({ target: 'rendered-worker-newer' });
    expect(decide('continue', held())).toEqual(granted(NEW));
    expect(decide('continue', held(), { pool: newer })).toEqual(granted('rendered-worker-newer'));
  });

  it('is unneeded when the pool went back to what the node runs', () => {
    expect(decide('continue', held(), { pool: makePool({ target: OLD }) })).toEqual({
      outcome: 'unneeded',
      target: OLD,
      cordonedByUs: true,
    });
  });

  it('keeps what the node applies, whatever happened to the pool since', () => {
    const node = held({ applying: NEW });
    for (const pool of [
      makePool({ target: OLD }),
      makePool({ deleting: true }),
      makePool({ paused: true }),
      undefined,
    ]) {
      expect(decide('continue', node, { pool, poolOf: () => ({ kind: 'none' }) })).toEqual(granted(NEW));
      expect(decide('withdraw', node, { pool })).toEqual(granted(NEW));
    }
  });

  it('lets a running update finish in a paused pool, with the target that it was granted', () => {
    const pool = makePool({ paused: true, target: 'rendered-worker-newer' });
    expect(decide('continue', held(), { pool })).toEqual(granted(NEW));
    expect(decide('start', held(), { pool })).toEqual(granted(NEW));
  });

  it('ends for a node that left the pool, or when the pool is deleted', () => {
    expect(decide('continue', held(), { poolOf: () => ({ kind: 'none' }) })).toMatchObject(refusal('NotMember'));
    expect(decide('continue', held(), { pool: makePool({ deleting: true }) })).toMatchObject(refusal('PoolDeleting'));
  });

  it('is not disturbed by a cordon of others, by readiness or by nodes that take slots meanwhile', () => {
    const node = held({ ready: false });
    expect(decide('continue', node, { members: [node, makeNode('x', { ready: false })] })).toEqual(granted(NEW));
  });

  it('is a start when the node holds no slot', () => {
    const node = makeNode('n');
    const members = [node, makeNode('x', { ready: false })];
    expect(decide('continue', node, { members })).toMatchObject(refusal('NoSlot'));
    expect(decide('continue', node, { pool: makePool({ paused: true }) })).toMatchObject(refusal('PoolPaused'));
  });
});

describe('decideGrant, withdraw', () => {
  it('gives the slot back: desired becomes current, whatever the pool is', () => {
    expect(decide('withdraw', held(), { pool: undefined, poolOf: () => ({ kind: 'none' }) })).toEqual({
      outcome: 'unneeded',
      target: OLD,
      cordonedByUs: true,
    });
  });

  it('refuses for another machine and for a node that does not say what it runs', () => {
    expect(decide('withdraw', held(), { nodeUid: 'uid-before' })).toMatchObject(refusal('NodeReplaced'));
    expect(decide('withdraw', makeNode('n', { current: undefined, desired: NEW }))).toMatchObject(
      refusal('NotManaged'),
    );
  });
});

it('says every refusal in one bounded line', () => {
  const node = drifted({ reason: `line\n${'x'.repeat(5000)}` });
  const grant = decide('start', node);
  if (grant.outcome !== 'refused') throw new Error('expected a refusal');
  expect(grant.sentence.length).toBeLessThanOrEqual(1000);
  expect(grant.sentence).not.toContain('\n');
});
