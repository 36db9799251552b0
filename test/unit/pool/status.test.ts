import { describe, expect, it } from 'vitest';
import type { MachineConfigPoolStatus } from '../../../machine-config/api/machine-config-pool.js';
import type { NodeFacts } from '../../../machine-config/pool/facts.js';
import { poolStatus, type PoolStatusFacts } from '../../../machine-config/pool/status.js';
import { failedOn, makeNode, makeNodes, makePool, NEW, NOW, OLD, updatedTo } from './make-node.js';

const T1 = '2026-03-01T12:00:00Z';
const T2 = '2026-03-01T13:00:00Z';
const configuration = { name: NEW, source: [{ kind: 'MachineConfig', name: '00-worker' }] };

function status(members: NodeFacts[], more: Partial<PoolStatusFacts> = {}) {
  return poolStatus({ pool: makePool(), generation: 3, configuration, members, now: T1, ...more });
}
const condition = (of: MachineConfigPoolStatus, type: string) => of.conditions?.find((one) => one.type === type);
const statuses = (of: MachineConfigPoolStatus) =>
  Object.fromEntries((of.conditions ?? []).map((one) => [one.type, one.status]));
const counts = (of: MachineConfigPoolStatus) => [
  of.machineCount,
  of.updatedMachineCount,
  of.readyMachineCount,
  of.unavailableMachineCount,
  of.degradedMachineCount,
];
const unmanaged = (name: string, ready = true) =>
  makeNode(name, { worker: undefined, current: undefined, desired: undefined, state: undefined, ready });

describe('poolStatus, counts: machines, updated, ready, unavailable, degraded', () => {
  it.each<[string, NodeFacts[], number[]]>([
    ['old nodes that were not granted anything', makeNodes('a', 'b', 'c'), [3, 0, 0, 0, 0]],
    ['updated nodes', [updatedTo('a', NEW), updatedTo('b', NEW)], [2, 2, 2, 0, 0]],
    ['an updated node that is not ready', [{ ...updatedTo('a', NEW), ready: false }], [1, 1, 0, 1, 0]],
    ['an updated node that is cordoned', [{ ...updatedTo('a', NEW), unschedulable: true }], [1, 1, 0, 1, 0]],
    ['a node on its way', [makeNode('a', { desired: NEW })], [1, 0, 0, 1, 0]],
    ['a node that failed on its way', [failedOn('a', NEW, 1, NOW)], [1, 0, 0, 0, 1]],
    ['a drifted node', [{ ...updatedTo('a', NEW), state: 'Degraded' }], [1, 0, 0, 1, 1]],
    ['unmanaged nodes', [unmanaged('a'), unmanaged('b', false)], [2, 0, 0, 1, 0]],
    ['no nodes', [], [0, 0, 0, 0, 0]],
  ])('counts %s', (_, members, expected) => {
    expect(counts(status(members))).toEqual(expected);
  });
});

describe('poolStatus, conditions', () => {
  it('is Updated when every node is updated and ready, and takes over the configuration then', () => {
    const done = status([updatedTo('a', NEW)]);
    expect(statuses(done)).toEqual({
      Updated: 'True',
      Updating: 'False',
      NodeDegraded: 'False',
      RenderDegraded: 'False',
      Degraded: 'False',
      Waiting: 'False',
      Halted: 'False',
      ControlPlane: 'False',
      MembershipConflict: 'False',
    });
    expect(condition(done, 'Updated')?.message).toContain(NEW);
    expect(done.configuration).toEqual(configuration);
    expect(done.observedGeneration).toBe(3);
  });

  it('keeps the last configuration that all nodes ran while they are on their way', () => {
    const previous = { configuration: { name: OLD } };
    const on = status([updatedTo('a', NEW), makeNode('b')], { previous });
    expect(statuses(on)).toMatchObject({ Updated: 'False', Updating: 'True' });
    expect(condition(on, 'Updating')?.message).toContain('1 of 2 nodes');
    expect(on.configuration).toEqual({ name: OLD });
  });

  it('calls an empty pool Updated', () => {
    const empty = status([]);
    expect(statuses(empty)).toMatchObject({ Updated: 'True', Updating: 'False' });
    expect(empty.configuration).toEqual(configuration);
  });

  it('is neither Updated nor Updating while paused with nodes to update, and shows the target', () => {
    const paused = status([makeNode('a')], { pool: makePool({ paused: true }) });
    expect(statuses(paused)).toMatchObject({ Updated: 'False', Updating: 'False' });
    expect(condition(paused, 'Updating')).toMatchObject({ reason: 'Paused' });
    expect(condition(paused, 'Updating')?.message).toContain(NEW);
    expect(statuses(status([updatedTo('a', NEW)], { pool: makePool({ paused: true }) }))).toMatchObject({
      Updated: 'True',
    });
  });

  it('is neither Updated nor Updating before the first render', () => {
    const pool = { name: 'worker', uid: 'u', paused: false, deleting: false };
    const fresh = status([], { pool, configuration: undefined });
    expect(statuses(fresh)).toMatchObject({ Updated: 'False', Updating: 'False' });
    expect(fresh).not.toHaveProperty('configuration');
  });

  it('names degraded nodes and their reasons, within bounds', () => {
    const one = status([failedOn('a', NEW, 1, NOW), makeNode('b')]);
    expect(statuses(one)).toMatchObject({ NodeDegraded: 'True', Degraded: 'True', Updating: 'True' });
    expect(condition(one, 'NodeDegraded')?.message).toBe('a: unit a.service does not start');
    expect(condition(one, 'Degraded')?.message).toContain('a.service');
    const many = Array.from({ length: 40 }, (_, index) => ({
      ...failedOn(`n${String(index).padStart(2, '0')}`, NEW, 1, NOW),
      reason: 'r'.repeat(2000),
    }));
    const message = condition(status(many), 'NodeDegraded')?.message ?? '';
    expect(message.length).toBeLessThanOrEqual(2000);
    expect(message).toMatch(/n00: r.*n09: r.*and 30 more$/);
  });

  it('counts unmanaged members but does not call the pool degraded for them, and names them', () => {
    const found = status([updatedTo('a', NEW), unmanaged('u1', false), unmanaged('u2')]);
    expect(statuses(found)).toMatchObject({
      Updated: 'False',
      Updating: 'True',
      NodeDegraded: 'False',
      Degraded: 'False',
    });
    expect(condition(found, 'Updating')?.message).toMatch(/1 of 3 nodes.*u1 and u2/);
  });

  it('takes what the last render said, and keeps it until the next one', () => {
    const bad = status([updatedTo('a', NEW)], { renderError: 'MachineConfig 50-x: spec.config is no object' });
    expect(statuses(bad)).toMatchObject({ RenderDegraded: 'True', Degraded: 'True', Updated: 'True' });
    expect(condition(bad, 'Degraded')?.message).toContain('50-x');
    const kept = status([updatedTo('a', NEW)], { previous: bad, now: T2 });
    expect(kept).toEqual(bad);
    const good = status([updatedTo('a', NEW)], { previous: bad, renderError: null, now: T2 });
    expect(condition(good, 'RenderDegraded')).toMatchObject({ status: 'False', lastTransitionTime: T2 });
    expect(condition(good, 'Degraded')).toMatchObject({ status: 'False' });
  });
});

describe('poolStatus, over the previous status', () => {
  it('changes nothing when nothing has changed', () => {
    for (const members of [makeNodes('a', 'b'), [failedOn('a', NEW, 1, NOW)], [updatedTo('a', NEW)], []]) {
      const first = status(members);
      expect(status([...members].reverse(), { previous: first, now: T2 })).toEqual(first);
    }
  });

  it('moves the transition time with the status only, not with the message', () => {
    const first = status(makeNodes('a', 'b', 'c'));
    const second = status([updatedTo('a', NEW), ...makeNodes('b', 'c')], { previous: first, now: T2 });
    expect(condition(second, 'Updating')?.message).not.toBe(condition(first, 'Updating')?.message);
    expect(condition(second, 'Updating')?.lastTransitionTime).toBe(T1);
    const third = status([updatedTo('a', NEW)], { previous: second, now: T2 });
    expect(condition(third, 'Updating')?.lastTransitionTime).toBe(T2);
    expect(condition(third, 'NodeDegraded')?.lastTransitionTime).toBe(T1);
  });

  it('leaves alone what others keep in the status', () => {
    const previous: MachineConfigPoolStatus = {
      osImageStream: { name: 'stream' },
      conditions: [{ type: 'PinnedImageSetsDegraded', status: 'True', reason: 'x', message: 'y' }],
    };
    const next = status(makeNodes('a'), { previous });
    expect(next.osImageStream).toEqual({ name: 'stream' });
    expect(next.conditions).toContainEqual(previous.conditions?.[0]);
  });
});
