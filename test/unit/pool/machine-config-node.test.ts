import { fc, test } from '@fast-check/vitest';
import { isDeepStrictEqual } from 'node:util';
import { describe, expect, it } from 'vitest';
import {
  machineConfigNodeSpecSchema,
  machineConfigNodeStatusSchema,
  type MachineConfigNodeStatus,
} from '../../../machine-config/api/machine-config-node.js';
import type { NodeFacts } from '../../../machine-config/pool/facts.js';
import {
  isOnItsWay,
  nodeReport,
  nodeStatus,
  type NodeReport,
} from '../../../machine-config/pool/machine-config-node.js';
import { failedOn, makeNode, NEW, NOW, OLD, updatedTo } from './make-node.js';

interface Written extends NodeReport {
  readonly status: MachineConfigNodeStatus;
  readonly generation: number;
}

/** What the object is after the node was seen like that, and how many writes that took. */
function see(node: NodeFacts, before: Written | undefined, now: string, pool: string | undefined = 'worker') {
  const report = nodeReport({ node, pool, bootBefore: before?.bootBefore });
  const isNewSpec = before !== undefined && !isDeepStrictEqual(report, nodeReportOf(before));
  const generation = (before?.generation ?? 1) + (isNewSpec ? 1 : 0);
  const status = nodeStatus({ node, pool, generation, previous: before?.status, now, bootBefore: report.bootBefore });
  const writes = (before === undefined || isNewSpec ? 1 : 0) + (isDeepStrictEqual(status, before?.status) ? 0 : 1);
  return { written: { ...report, status, generation }, writes };
}
const nodeReportOf = ({ spec, bootBefore }: Written): NodeReport => ({ spec, bootBefore });

/** Sees the nodes one after the other, a minute apart. */
function walk(...nodes: NodeFacts[]) {
  let writes = 0;
  let last: Written | undefined;
  nodes.forEach((node, minute) => {
    const seen = see(node, last, new Date(NOW + minute * 60_000).toISOString());
    writes += seen.writes;
    last = seen.written;
  });
  return { ...last!, writes };
}
const statusOf = (status: MachineConfigNodeStatus, type: string) =>
  status.conditions?.find((condition) => condition.type === type);
const notFalse = (status: MachineConfigNodeStatus) =>
  (status.conditions ?? []).filter(({ status: is }) => is !== 'False').map(({ type, status: is }) => `${type} ${is}`);

const settled = updatedTo('n1', OLD);
const granted = makeNode('n1', { desired: NEW });
const preparing = { ...granted, state: 'Working' as const };
const cordoned = { ...preparing, cordonedFor: NEW, unschedulable: true };
const blocked = { ...cordoned, drainBlocked: { sentence: 'PDB shop/cart', pods: [], budgets: [] } };
const applying = { ...cordoned, applying: NEW };
const down = { ...applying, ready: false, notReadyBecause: 'Ready is Unknown' };
const rebooted = { ...applying, bootId: 'boot-2' };
const done = { ...updatedTo('n1', NEW), bootId: 'boot-2' };
const UPDATE = [granted, preparing, cordoned, blocked, applying, down, rebooted, done];

describe('the conditions of a MachineConfigNode', () => {
  it.each<[string, NodeFacts[], string[]]>([
    ['a node that runs what it was granted', [settled], ['Updated True']],
    ['a node with a grant', [settled, granted], []],
    [
      'a cordoned node',
      [settled, granted, cordoned],
      ['UpdatePrepared True', 'UpdateExecuted Unknown', 'Cordoned True', 'Drained Unknown'],
    ],
    [
      'a node whose disk changes',
      [settled, granted, cordoned, applying],
      ['UpdatePrepared True', 'UpdateExecuted Unknown', 'Cordoned True', 'Drained True', 'AppliedFilesAndOS Unknown'],
    ],
    [
      'a node that has rebooted for it',
      [settled, granted, cordoned, applying, rebooted],
      [
        'UpdatePrepared True',
        'UpdateExecuted True',
        'Cordoned True',
        'Drained True',
        'AppliedFilesAndOS True',
        'RebootedNode True',
      ],
    ],
    ['a node that is done', [settled, ...UPDATE], ['Updated True']],
    ['a node without a worker', [makeNode('n1', { worker: undefined })], []],
    ['a node that was never granted a config', [makeNode('n1', { current: 'drydock-empty', desired: undefined })], []],
    ['a drifted node', [settled, { ...settled, state: 'Degraded', reason: '/etc/x differs' }], ['NodeDegraded True']],
  ])('tell of %s', (_, nodes, expected) => {
    expect(notFalse(walk(...nodes).status)).toEqual(expected);
  });

  it('do not say Drained where the only node that takes pods was not drained', () => {
    const alone = { ...cordoned, noDrain: NEW };
    const { status } = walk(settled, granted, alone);
    expect(statusOf(status, 'Drained')).toMatchObject({ status: 'False', reason: 'NotNeeded' });
  });

  it('keep what happened in the last update as messages, until the next one', () => {
    const { status } = walk(settled, ...UPDATE);
    expect(statusOf(status, 'RebootedNode')).toMatchObject({
      status: 'False',
      message: `During the update to ${NEW}: The node was rebooted`,
    });
    expect(statusOf(status, 'Uncordoned')?.message).toBe(`During the update to ${NEW}: The cordon was lifted`);
    const next = walk(settled, ...UPDATE, { ...done, desired: 'rendered-worker-next' });
    expect(statusOf(next.status, 'RebootedNode')).toMatchObject({ status: 'False', reason: 'NotYetOccurred' });
  });

  it('claim no cordon and no reboot for an update that had none', () => {
    const { status } = walk(settled, granted, { ...preparing, applying: NEW }, updatedTo('n1', NEW));
    const told = (status.conditions ?? []).filter(({ reason }) => reason === 'LastUpdate').map(({ type }) => type);
    expect(told).toEqual([
      'UpdatePrepared',
      'UpdateExecuted',
      'AppliedFilesAndOS',
      'UpdatePostActionComplete',
      'Resumed',
      'UpdateComplete',
    ]);
  });

  it('claim nothing for an update that was taken back before it began', () => {
    const { status } = walk(settled, granted, settled);
    expect(notFalse(status)).toEqual(['Updated True']);
    expect((status.conditions ?? []).filter(({ reason }) => reason === 'LastUpdate')).toEqual([]);
  });

  it('name the update that was taken back from a cordoned node', () => {
    const { status } = walk(settled, granted, cordoned, settled);
    expect(statusOf(status, 'Cordoned')?.message).toBe(`During the update to ${NEW}: The node was cordoned`);
    expect(statusOf(status, 'UpdateComplete')?.reason).toBe('NotYetOccurred');
  });

  it('leave a failure standing where it happened, and begin anew with the next attempt', () => {
    const failed = failedOn('n1', NEW, 1, NOW);
    const first = walk(settled, granted, cordoned, applying, failed);
    expect(notFalse(first.status)).toEqual([
      'UpdatePrepared True',
      'UpdateExecuted Unknown',
      'Cordoned True',
      'Drained True',
      'AppliedFilesAndOS Unknown',
      'NodeDegraded True',
    ]);
    expect(statusOf(first.status, 'NodeDegraded')?.message).toBe('Node n1: unit a.service does not start');
    const again = walk(settled, granted, cordoned, applying, failed, cordoned);
    expect(notFalse(again.status)).toContain('Drained Unknown');
    expect(notFalse(again.status)).not.toContain('AppliedFilesAndOS Unknown');
    expect(notFalse(walk(settled, granted, cordoned, applying, failed, settled).status)).toEqual(['Updated True']);
    const givenUp = { ...failed, desired: OLD };
    const over = walk(settled, granted, cordoned, applying, failed, givenUp, settled);
    expect(notFalse(over.status)).toEqual(['Updated True']);
  });

  it('say that a hold kept the cordon', () => {
    const held = { ...done, heldCordon: true, unschedulable: true, hold: 'disk exchange' };
    const { status } = walk(settled, granted, cordoned, applying, rebooted, held);
    expect(statusOf(status, 'Uncordoned')?.reason).toBe('NotYetOccurred');
    expect(notFalse(status)).toEqual(['Updated True']);
  });

  it('move their times with their status only', () => {
    const at = (minute: number) => new Date(NOW + minute * 60_000).toISOString();
    const { status } = walk(settled, ...UPDATE);
    expect(statusOf(status, 'Updated')?.lastTransitionTime).toBe(at(8));
    expect(statusOf(status, 'NodeDegraded')?.lastTransitionTime).toBe(at(0));
    const { status: later } = walk(settled, granted, cordoned, applying, rebooted);
    expect(statusOf(later, 'Cordoned')?.lastTransitionTime).toBe(at(2));
    expect(statusOf(later, 'Drained')?.lastTransitionTime).toBe(at(3));
  });

  it('leave alone what others keep among them', () => {
    const foreign = { type: 'Theirs', status: 'True' as const, reason: 'X', message: '', lastTransitionTime: 't' };
    const previous = { conditions: [foreign], pinnedImageSets: [{ name: 'set' }] };
    const status = nodeStatus({
      node: settled,
      pool: 'worker',
      generation: 1,
      previous,
      now: 'now',
      bootBefore: 'boot-1',
    });
    expect(statusOf(status, 'Theirs')).toEqual(foreign);
    expect(status.pinnedImageSets).toEqual([{ name: 'set' }]);
  });
});

describe('a MachineConfigNode', () => {
  it('is for the node, its pool and what it was granted', () => {
    expect(walk(settled, granted).spec).toEqual({
      node: { name: 'n1' },
      pool: { name: 'worker' },
      configVersion: { desired: NEW },
    });
    const stranger = makeNode('n1', { worker: undefined, current: undefined, desired: undefined });
    const { spec } = see(stranger, undefined, 'now', undefined).written;
    expect([spec.pool.name, spec.configVersion.desired]).toEqual(['worker', 'not-yet-set']);
    expect(nodeReport({ node: stranger, pool: undefined, bootBefore: undefined }).spec.pool.name).toBe('not-yet-set');
  });

  it('shows as desired what the update has begun to bring, and as current what the node runs', () => {
    expect(walk(settled, granted).status.configVersion).toEqual({ current: OLD, desired: OLD });
    expect(walk(settled, granted, cordoned).status.configVersion).toEqual({ current: OLD, desired: NEW });
    expect(walk(settled, ...UPDATE).status.configVersion).toEqual({ current: NEW, desired: NEW });
  });

  it('takes another boot for the reboot of the update only after the change of the disk has begun', () => {
    const otherBoot = { ...settled, bootId: 'boot-7' };
    expect(
      notFalse(walk(settled, otherBoot, { ...granted, bootId: 'boot-7' }, { ...applying, bootId: 'boot-7' }).status),
    ).not.toContain('RebootedNode True');
    expect(walk(settled, ...UPDATE.slice(0, -1)).bootBefore).toBe('boot-1');
  });

  it('costs at most six writes for an update, and none where nothing changes', () => {
    const first = walk(settled).writes;
    expect(first).toBe(2);
    expect(walk(settled, ...UPDATE).writes - first).toBe(6);
    expect(walk(settled, settled, settled).writes).toBe(first);
    const hour = Array.from({ length: 60 }, () => blocked);
    expect(walk(settled, granted, ...hour).writes).toBe(walk(settled, granted, blocked).writes);
  });

  it('is on its way from the grant to the end', () => {
    const states = [settled, ...UPDATE].map((node) => isOnItsWay({ node, bootBefore: 'boot-1' }));
    expect(states).toEqual([false, true, true, true, true, true, true, true, false]);
  });

  const anyNode = fc
    .record({
      desired: fc.constantFrom(OLD, NEW, undefined),
      current: fc.constantFrom(OLD, NEW, 'drydock-empty', undefined),
      state: fc.constantFrom(
        'Done' as const,
        'Working' as const,
        'Degraded' as const,
        'Unreconcilable' as const,
        undefined,
      ),
      cordonedFor: fc.constantFrom(NEW, undefined),
      applying: fc.constantFrom(NEW, OLD, undefined),
      worker: fc.constantFrom('1.0.0', undefined),
      bootId: fc.constantFrom('boot-1', 'boot-2'),
      reason: fc.constantFrom('x', undefined),
      noDrain: fc.constantFrom(NEW, undefined),
      heldCordon: fc.constantFrom(true, undefined),
    })
    .map((facts) => makeNode('n1', facts));

  test.prop([fc.array(anyNode, { minLength: 1, maxLength: 12 })])(
    'is valid after any walk, the same for the same facts, and times move with the status only',
    (nodes) => {
      let last: Written | undefined;
      nodes.forEach((node, minute) => {
        const now = new Date(NOW + minute * 60_000).toISOString();
        const { written } = see(node, last, now);
        expect(machineConfigNodeSpecSchema.safeParse(written.spec).success).toBe(true);
        expect(machineConfigNodeStatusSchema.safeParse(written.status).success).toBe(true);
        for (const condition of written.status.conditions ?? []) {
          const before = last && statusOf(last.status, condition.type);
          const isMoved = condition.lastTransitionTime === now;
          expect(isMoved, condition.type).toBe(before?.status !== condition.status);
        }
        expect(see(node, written, 'later').writes).toBe(0);
        last = written;
      });
    },
  );
});
