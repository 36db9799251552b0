import { describe, expect, it } from 'vitest';
import { apiFlavour } from '../../../machine-config/api/flavour.js';
import { nodeFacts, type NodeFacts, type PoolFacts } from '../../../machine-config/pool/facts.js';
import { decideGrant } from '../../../machine-config/pool/grant.js';
import { resolveMaxUnavailable, type MaxUnavailable } from '../../../machine-config/pool/max-unavailable.js';
import { membersOf, poolOf } from '../../../machine-config/pool/membership.js';
import { planTurn } from '../../../machine-config/pool/plan-turn.js';
import { poolStatus, type PoolStatusFacts } from '../../../machine-config/pool/status.js';
import { renderPool } from '../../../machine-config/render/render-pool.js';
import { failedOn, makeNode, makeNodes, makePool, NEW, NOW, OLD, updatedTo } from './make-node.js';

/*
 * The other half of edge-cases.test.ts: when a node is ready, how many may be away, who is in which pool, whose config
 * wins, and what a pool says of itself.
 */

const flavour = apiFlavour('openshift');
const LONG_AGO = NOW - 24 * 3600_000;

/** A Node of Kubernetes with a worker, Ready unless said otherwise. */
function nodeWith(more: {
  annotations?: Record<string, string>;
  conditions?: Record<string, string>;
  cordoned?: true;
}) {
  const conditions = Object.entries(more.conditions ?? { Ready: 'True' });
  return nodeFacts(
    {
      metadata: { name: 'n', uid: 'u', annotations: { 'drydock.dev/worker': '1.0.0', ...more.annotations } },
      spec: { ...(more.cordoned && { unschedulable: true }) },
      status: { conditions: conditions.map(([type, status]) => ({ type, status })) },
    },
    flavour,
  );
}

function onConfig(name: string): Record<string, string> {
  const { currentConfig, desiredConfig, state } = flavour.annotations;
  return { [currentConfig]: name, [desiredConfig]: name, [state]: 'Done' };
}

describe('edge case: when a node is ready', () => {
  it.each<[string, Record<string, string>, boolean]>([
    ['says so', { Ready: 'True' }, true],
    ['says so, and that nothing is wrong', { Ready: 'True', DiskPressure: 'False', NetworkUnavailable: 'False' }, true],
    ['is not', { Ready: 'False' }, false],
    ['has not been heard of', { Ready: 'Unknown' }, false],
    ['has no room on its disk', { Ready: 'True', DiskPressure: 'True' }, false],
    ['may have no room on its disk', { Ready: 'True', DiskPressure: 'Unknown' }, false],
    ['has no network', { Ready: 'True', NetworkUnavailable: 'True' }, false],
    ['lacks memory', { Ready: 'True', MemoryPressure: 'True' }, true],
    // There it is ready. A kubelet that has never reported can take no pods, and no update either.
    ['has never reported anything', {}, false],
  ])('one that %s', (_, conditions, ready) => {
    expect(nodeWith({ conditions }).ready).toBe(ready);
  });

  it('a cordoned one takes no pods: it counts as unavailable, whoever cordoned it', () => {
    const node = nodeWith({ cordoned: true, annotations: onConfig(NEW) });
    expect(status([node])).toMatchObject({ updatedMachineCount: 1, readyMachineCount: 0, unavailableMachineCount: 1 });
  });
});

describe('edge case: maxUnavailable of a pool of four', () => {
  const limit = (count: number): MaxUnavailable => ({ ok: true, limit: count });
  it.each<[number | string | undefined, MaxUnavailable | object]>([
    [undefined, limit(1)],
    [2, limit(2)],
    // Rounded down, and a percentage above 0 is at least one node.
    ['50%', limit(2)],
    ['60%', limit(2)],
    ['1%', limit(1)],
    // There 1. Who writes 0 wants nothing to be unavailable, and is told how a pool is stopped.
    [0, { ok: false, code: 'MaxUnavailableZero' }],
    ['0%', { ok: false, code: 'MaxUnavailableZero' }],
    ['50 percent', { ok: false, code: 'MaxUnavailableInvalid' }],
    ['60', { ok: false, code: 'MaxUnavailableInvalid' }],
    ['40 %', { ok: false, code: 'MaxUnavailableInvalid' }],
    // There accepted, and the pool stands still without a word.
    [-1, { ok: false, code: 'MaxUnavailableInvalid' }],
  ])('written as %j', (value, expected) => {
    expect(resolveMaxUnavailable(value, 4, 'worker')).toMatchObject(expected);
  });

  it('one that cannot be read stops the pool and is told, where there it is found in a log', () => {
    const pool = makePool({ maxUnavailable: '40 %' });
    const members = makeNodes('a', 'b');
    const { start, waiting } = planTurn({ pool, members, inFlight: [], gone: [], resting: {}, now: NOW });
    expect(start).toEqual([]);
    expect(waiting).toMatchObject({
      code: 'MaxUnavailableInvalid',
      sentence: expect.stringContaining('40 %') as string,
    });
  });
});

describe('edge case: which pool a node is in', () => {
  const role = (name: string) => `node-role.kubernetes.io/${name}`;
  const selectors = ['master', 'worker', 'infra', 'infra2'].map((name) => ({
    name,
    nodeSelector: { matchLabels: { [role(name)]: '' } },
  }));
  const labelled = (roles: string[], more: Record<string, string> = {}) =>
    makeNode('n', { labels: { ...Object.fromEntries(roles.map((one) => [role(one), ''])), ...more } });
  const none = { kind: 'none' };
  const inPool = (pool: string) => ({ kind: 'pool', pool });

  it.each<[string[], object]>([
    [['unknown'], none],
    [['master', 'worker'], inPool('master')],
    [['worker', 'infra'], inPool('infra')],
    [['master', 'infra'], { ...inPool('master'), alert: expect.stringContaining('infra') as string }],
    [['infra', 'infra2'], { kind: 'conflict', pools: ['infra', 'infra2'] }],
    [['worker', 'infra', 'infra2'], { kind: 'conflict', pools: ['infra', 'infra2'] }],
  ])('with the roles %j', (roles, expected) => {
    expect(poolOf(labelled(roles), selectors)).toMatchObject(expected);
  });

  it('a Windows node is in none', () => {
    expect(poolOf(labelled(['worker'], { 'kubernetes.io/os': 'windows' }), selectors)).toEqual(none);
  });

  it('a node of two custom pools is in neither, gets nothing from either, and is told why by name', () => {
    const node = labelled(['infra', 'infra2']);
    for (const pool of ['infra', 'infra2']) {
      expect(membersOf(pool, [node], selectors)).toEqual([]);
      const decision = decideGrant({
        intent: 'start',
        pool: makePool({ name: pool }),
        poolName: pool,
        node,
        nodeName: node.name,
        nodeUid: node.uid,
        members: [makeNode('other')],
        now: NOW,
        poolOf: (one) => poolOf(one, selectors),
      });
      expect(decision).toMatchObject({
        outcome: 'refused',
        code: 'NotMember',
        sentence: expect.stringMatching(/n is selected by 2 custom pools, infra and infra2/) as string,
      });
    }
  });

  it('a node that loses the label of its custom pool goes back to worker', () => {
    expect(poolOf(labelled(['worker', 'infra']), selectors)).toEqual(inPool('infra'));
    expect(poolOf(labelled(['worker']), selectors)).toEqual(inPool('worker'));
  });

  it('an arbiter is a custom pool of its own, and never loses more than one', () => {
    // There it waits besides for the control plane, whose etcd it has a vote in.
    const arbiter = { name: 'arbiter', nodeSelector: { matchLabels: { [role('arbiter')]: '' } } };
    expect(poolOf(labelled(['arbiter']), [...selectors, arbiter])).toEqual(inPool('arbiter'));
    expect(resolveMaxUnavailable('100%', 4, 'arbiter')).toEqual({ ok: true, limit: 1 });
  });
});

describe('edge case: whose MachineConfig wins', () => {
  const file = (name: string, role: string, contents: object) => ({
    metadata: { name, labels: { [flavour.roleLabel]: role } },
    spec: {
      config: { ignition: { version: '3.4.0' }, storage: { files: [{ path: '/etc/chrony.conf', contents }] } },
    },
  });
  const fileOf = (...machineConfigs: ReturnType<typeof file>[]) => {
    const result = renderPool({ pool: 'infra', flavour, machineConfigs });
    if (result.outcome === 'refused') throw new Error(result.reason);
    const { storage } = result.config.spec?.config as { storage?: { files?: Record<string, unknown>[] } };
    return storage?.files?.[0];
  };

  it('the custom pool’s before the worker’s, whatever their names', () => {
    const worker = file('ddd', 'worker', { source: 'data:,worker' });
    const infra = file('ccc', 'infra', { source: 'data:,infra' });
    for (const order of [[worker, infra] as const, [infra, worker] as const]) {
      expect(fileOf(...order)).toMatchObject({ contents: { source: 'data:,infra' }, overwrite: true });
    }
  });

  it('the one with the greater name within a role', () => {
    const first = file('aaa', 'worker', { source: 'data:,first' });
    const second = file('bbb', 'worker', { source: 'data:,second' });
    expect(fileOf(second, first)).toMatchObject({ contents: { source: 'data:,second' } });
  });

  it('and a plain file that wins over a compressed one is not taken for compressed', () => {
    const compressed = file('aaa', 'worker', {
      source: 'data:;base64,H4sIAAAAAAACA8tIzcnJBwCGphA2BQAAAA==',
      compression: 'gzip',
    });
    const plain = fileOf(compressed, file('bbb', 'worker', { source: 'data:,plain' })) as { contents: object };
    expect(plain.contents).not.toHaveProperty('compression', 'gzip');
    expect(plain.contents).toMatchObject({ source: 'data:,plain' });
  });
});

const configuration = { name: NEW, source: [{ kind: 'MachineConfig', name: '00-worker' }] };
function status(members: NodeFacts[], pool: Partial<PoolFacts> = {}, more: Partial<PoolStatusFacts> = {}) {
  const previous = { configuration: { name: OLD } };
  return poolStatus({
    pool: makePool(pool),
    generation: 1,
    configuration,
    members,
    previous,
    now: new Date(NOW).toISOString(),
    ...more,
  });
}
const conditionsOf = ({ conditions = [] }: ReturnType<typeof status>) =>
  Object.fromEntries(conditions.map(({ type, status: value }) => [type, value]));

describe('edge case: what a pool says of itself', () => {
  it('three nodes on the old config, none granted anything: Updating, nothing unavailable', () => {
    const said = status(makeNodes('a', 'b', 'c'));
    expect(said).toMatchObject({ updatedMachineCount: 0, readyMachineCount: 0, unavailableMachineCount: 0 });
    expect(conditionsOf(said)).toMatchObject({ Updated: 'False', Updating: 'True' });
    expect(said.configuration).toEqual({ name: OLD });
  });

  it('the same, paused: neither Updated nor Updating', () => {
    const said = conditionsOf(status(makeNodes('a', 'b', 'c'), { paused: true }));
    expect(said).toMatchObject({ Updated: 'False', Updating: 'False' });
  });

  it('one that failed on its way and is not ready: unavailable, degraded, and the pool says both', () => {
    const said = status([{ ...failedOn('a', NEW, 1, LONG_AGO), ready: false }, updatedTo('b', NEW)]);
    expect(said).toMatchObject({ unavailableMachineCount: 1, degradedMachineCount: 1 });
    expect(conditionsOf(said)).toMatchObject({ Degraded: 'True', NodeDegraded: 'True', Updated: 'False' });
  });

  it('the count and the names of the degraded nodes come from one place', () => {
    // There the count is of the Nodes and the names of other objects, so that "0 nodes" may be degraded.
    const said = status([failedOn('a', NEW, 1, LONG_AGO), failedOn('b', NEW, 1, LONG_AGO), updatedTo('c', NEW)]);
    expect(said.degradedMachineCount).toBe(2);
    const { message } = said.conditions?.find(({ type }) => type === 'NodeDegraded') ?? {};
    expect(message).toMatch(/\ba\b.*does not start/);
    expect(message).toMatch(/\bb\b.*does not start/);
    // And Degraded repeats it where there it is left empty.
    expect(said.conditions?.find(({ type }) => type === 'Degraded')?.message).toBe(message);
  });

  it('all on the target: Updated, and its configuration moves with its sources', () => {
    const said = status([updatedTo('a', NEW), updatedTo('b', NEW)]);
    expect(conditionsOf(said)).toMatchObject({ Updated: 'True', Updating: 'False', Degraded: 'False' });
    expect(said.configuration).toEqual(configuration);
  });

  it('no nodes at all: Updated', () => {
    const said = status([]);
    expect(conditionsOf(said)).toMatchObject({ Updated: 'True', Updating: 'False' });
    expect(said.configuration).toEqual(configuration);
  });
});
