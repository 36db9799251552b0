import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { KINDS } from '../../activities/kubernetes/client.js';
import type { UpdateNodeResult } from '../../workflows/contract/inputs.js';
import { BUDGET, RollingPool } from '../support/rolling-pool.js';
import { flavour, until, WorkflowLab } from '../support/workflow-lab.js';

/*
 * What may change while a pool rolls, and what is right then. One row a change; the pool of each is as RollingPool says:
 * the oldest node is done, the next sits in its drain, the others wait. The rows that need real plans, real disks or real
 * node identities are in test/cluster/mid-rollout.test.ts, a worker that stays away and a changed workflow in
 * mid-rollout-worker-gone.test.ts and mid-rollout-upgrade.test.ts beside this file.
 */
describe.concurrent('changes in mid-rollout', () => {
  let lab: WorkflowLab;
  beforeAll(async () => {
    lab = await WorkflowLab.start();
  });
  afterAll(() => lab.stop());

  it('a newer config: what drains goes on to it with one reboot, what waits never sees the one between', async () => {
    const pool = await RollingPool.begin(lab, 'newer-config');
    const { done, inDrain, next, last } = pool;
    const third = await lab.revise(pool.name, 'third');
    await until('the draining one is retargeted', () => inDrain.facts.desired === third);
    pool.letDrain();
    await lab.untilUpdated(pool.name, pool.nodes);
    pool.expectUpdates([
      [done, 2],
      [inDrain, 1],
      [next, 1],
      [last, 1],
    ]);
    expect(pool.ledger.mostTaken).toBe(1);
  });

  it('an older config: what is done goes back, what drains is given back as it was, what waits is not touched', async () => {
    const pool = await RollingPool.begin(lab, 'older-config');
    expect(await lab.revise(pool.name, 'first')).toBe(pool.first);
    await until('the draining one is given back, blocked as it is', () => !pool.inDrain.facts.unschedulable);
    await lab.untilUpdated(pool.name, pool.nodes);
    await pool.untilRolloutEnds();
    pool.expectGivenBack(pool.inDrain);
    pool.expectUntouched(...pool.waiting);
    pool.expectUpdates([[pool.done, 2]]);
    expect(pool.ledger.mostTaken).toBe(1);
  });

  it('a node added: it takes its turn, and gets its first config without cordon, drain or reboot', async () => {
    const pool = await RollingPool.begin(lab, 'node-added');
    const added = await lab.addNode(pool.name, 'node-added-new', 60);
    await until('the pool counts it', () => lab.pool(pool.name).status?.machineCount === 5);
    expect(lab.condition(pool.name, 'Updated')).toBe('False');
    pool.letDrain();
    await lab.untilUpdated(pool.name, [...pool.nodes, added]);
    await until('the pool is Updated', () => lab.condition(pool.name, 'Updated') === 'True');
    pool.expectUpdates([
      [added, 0],
      [pool.done, 1],
      [pool.inDrain, 1],
      [pool.next, 1],
      [pool.last, 1],
    ]);
    expect(added.steps).not.toContain('drain');
    expect(added.facts.current).toBe(pool.second);
    expect(pool.ledger.mostTaken).toBe(1);
  });

  it('nodes deleted, in the drain and before its turn: the slot is free at once, and nobody waits for them', async () => {
    const pool = await RollingPool.begin(lab, 'node-deleted');
    await lab.cluster.delete(KINDS.node, { name: pool.last.name });
    await lab.cluster.delete(KINDS.node, { name: pool.inDrain.name });
    await lab.untilUpdated(pool.name, [pool.done, pool.next]);
    await pool.untilRolloutEnds();
    await until('the pool is Updated', () => lab.condition(pool.name, 'Updated') === 'True');
    expect(lab.pool(pool.name).status?.machineCount).toBe(2);
    pool.expectUpdates([
      [pool.done, 1],
      [pool.next, 1],
    ]);
    expect(pool.last.steps).toEqual([]);
    expect(pool.ledger.mostTaken).toBe(1);
  });

  it('a node deleted and recreated with the same name: what was begun is not carried over to the new machine', async () => {
    const pool = await RollingPool.begin(lab, 'node-recreated');
    const { inDrain, next, last } = pool;
    const { runId } = await lab.update(inDrain.name).describe();
    for (const { name } of [inDrain, last]) await lab.cluster.delete(KINDS.node, { name });
    for (const { name } of [inDrain, last]) await lab.stopNodeWorker(name);
    const recreated = [
      await lab.addNode(pool.name, inDrain.name, 50),
      await lab.addNode(pool.name, last.name, 51),
    ] as const;
    await lab.untilUpdated(pool.name, [pool.done, next, ...recreated]);
    const dropped = (await lab.update(inDrain.name, runId).result()) as UpdateNodeResult;
    expect(['cancelled', 'superseded']).toContain(dropped.outcome);
    pool.expectUpdates([
      [pool.done, 1],
      [next, 1],
      [recreated[0], 0],
      [recreated[1], 0],
    ]);
    expect([inDrain.boots, last.boots]).toEqual([1, 1]);
    expect(pool.ledger.mostTaken).toBe(1);
  });

  it('nodes relabelled to another pool: they leave as they were, and take their turns with its config there', async () => {
    const pool = await RollingPool.begin(lab, 'relabelled');
    const { nodes: natives } = await lab.addSettledPool('relabelled-to', 1);
    const moved = [pool.inDrain, pool.last];
    for (const { name } of moved) {
      await lab.cluster.patch(KINDS.node, { name }, { metadata: { labels: { pool: 'relabelled-to' } } });
    }
    await lab.untilUpdated(pool.name, [pool.done, pool.next]);
    await pool.untilRolloutEnds();
    expect(lab.pool(pool.name).status?.machineCount).toBe(2);
    expect(pool.inDrain.steps).not.toContain('apply');
    pool.letDrain();
    await lab.untilUpdated('relabelled-to', [...natives, ...moved]);
    expect(moved.map(({ boots }) => boots)).toEqual([2, 2]);
    expect(natives.map(({ boots }) => boots)).toEqual([1]);
    expect(pool.ledger.mostTaken).toBe(1);
  });

  it('a waiting node cordoned by hand: it is named and passed over, keeps its cordon, and is updated when that is lifted', async () => {
    const pool = await RollingPool.begin(lab, 'cordoned-by-hand');
    const { next, last } = pool;
    const setCordon = (unschedulable: true | null) =>
      lab.cluster.patch(KINDS.node, { name: next.name }, { spec: { unschedulable } });
    await setCordon(true);
    pool.letDrain();
    await lab.untilUpdated(pool.name, [pool.done, pool.inDrain]);
    await pool.untilItWaits('NodesCordoned', new RegExp(`${next.name} is unschedulable, not by us`));
    pool.expectUntouched(next, last);
    await pool.change({ maxUnavailable: 2 });
    await lab.untilUpdated(pool.name, [pool.done, pool.inDrain, last]);
    pool.expectUntouched(next);
    expect(next.facts.unschedulable).toBe(true);
    await setCordon(null);
    await lab.untilUpdated(pool.name, pool.nodes);
    pool.expectUpdates(pool.nodes.map((node) => [node, 1] as const));
    expect(pool.ledger.mostTaken).toBe(1);
  });

  it('nodes that become NotReady, in the drain and before its turn: nobody takes their place, and they go on when they are back', async () => {
    const pool = await RollingPool.begin(lab, 'not-ready');
    const { inDrain, next, last } = pool;
    const setReady = (name: string, status: 'True' | 'Unknown') =>
      lab.cluster.patch(KINDS.node, { name }, { status: { conditions: [{ type: 'Ready', status }] } }, 'status');
    await setReady(inDrain.name, 'Unknown');
    await setReady(next.name, 'Unknown');
    await pool.untilItWaits('SlotsTaken', new RegExp(`updates run on ${inDrain.name}; ${next.name} is not ready`));
    expect(inDrain.facts).toMatchObject({ desired: pool.second, unschedulable: true });
    await setReady(inDrain.name, 'True');
    pool.letDrain();
    await lab.untilUpdated(pool.name, [pool.done, inDrain]);
    await pool.untilItWaits('NodesNotReady', new RegExp(`${next.name} is not ready`));
    pool.expectUntouched(next, last);
    await setReady(next.name, 'True');
    await lab.untilUpdated(pool.name, pool.nodes);
    pool.expectUpdates(pool.nodes.map((node) => [node, 1] as const));
    expect(pool.ledger.mostTaken).toBe(1);
  });

  it('maxUnavailable raised: more begin at once, the oldest of those that wait, and not one too many', async () => {
    const pool = await RollingPool.begin(lab, 'limit-raised', { nodes: 5 });
    const { next, last } = pool;
    const second = pool.waiting[1]!;
    for (const node of [next, second]) node.blockers = BUDGET;
    await pool.change({ maxUnavailable: 3 });
    await until('three drain', () => [next, second].every(({ steps }) => steps.includes('drain')));
    await pool.untilItWaits('UpdatesRunning', /3 of 3 taken/);
    pool.expectUntouched(last);
    for (const node of [next, second]) node.blockers = [];
    pool.letDrain();
    await lab.untilUpdated(pool.name, pool.nodes);
    pool.expectUpdates(pool.nodes.map((node) => [node, 1] as const));
    expect(pool.ledger.mostTaken).toBe(3);
  });

  it('maxUnavailable lowered: what has begun goes on, and nothing begins before the rest fits again', async () => {
    const pool = await RollingPool.begin(lab, 'limit-lowered', { nodes: 6, maxUnavailable: 3 });
    const [one, two, three] = pool.draining;
    await pool.change({ maxUnavailable: 1 });
    await pool.untilItWaits('UpdatesRunning', /3 of 1 taken/);
    for (const node of pool.draining) expect(node.facts).toMatchObject({ desired: pool.second, unschedulable: true });
    one!.blockers = [];
    await lab.untilUpdated(pool.name, [one!]);
    await pool.untilItWaits('UpdatesRunning', /2 of 1 taken/);
    two!.blockers = [];
    await lab.untilUpdated(pool.name, [two!]);
    await pool.untilItWaits('UpdatesRunning', /1 of 1 taken/);
    pool.expectUntouched(...pool.waiting);
    pool.ledger.forgetMost();
    three!.blockers = [];
    await lab.untilUpdated(pool.name, pool.nodes);
    pool.expectUpdates(pool.nodes.map((node) => [node, 1] as const));
    expect(pool.ledger.mostTaken).toBe(1);
  });

  it('the pool paused, and given a newer config: what drains finishes on what it was granted, the rest waits', async () => {
    const pool = await RollingPool.begin(lab, 'pool-paused');
    const { done, inDrain, next, last } = pool;
    await pool.change({ paused: true });
    const third = await lab.revise(pool.name, 'third');
    await pool.untilItWaits('PoolPaused', /1 running update will finish/);
    pool.letDrain();
    await until('it finishes', () => inDrain.facts.current === pool.second && !inDrain.facts.unschedulable);
    await pool.untilItWaits('PoolPaused', new RegExp(`4 nodes not on ${third}; set spec.paused to false`));
    pool.expectUntouched(next, last);
    await pool.change({ paused: false });
    await lab.untilUpdated(pool.name, pool.nodes);
    pool.expectUpdates([
      [done, 2],
      [inDrain, 2],
      [next, 1],
      [last, 1],
    ]);
    expect(pool.ledger.mostTaken).toBe(1);
  });

  it('the pool deleted: what drains is given back as it was, what is done and what waits stays as it is', async () => {
    const pool = await RollingPool.begin(lab, 'pool-deleted');
    await lab.cluster.delete(flavour.machineConfigPool, { name: pool.name });
    await until('the draining one is given back, blocked as it is', () => !pool.inDrain.facts.unschedulable);
    await pool.untilRolloutEnds();
    await until('nobody looks after the pool', async () => {
      const { status } = await lab.environment.client.workflow.getHandle(`pool/${pool.name}`).describe();
      return status.name === 'COMPLETED';
    });
    pool.expectGivenBack(pool.inDrain);
    pool.expectUntouched(...pool.waiting);
    pool.expectUpdates([[pool.done, 1]]);
    expect(pool.done.facts).toMatchObject({ current: pool.second, state: 'Done', unschedulable: false });
  });
});
