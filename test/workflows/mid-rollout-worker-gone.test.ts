import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { UpdateNodeResult } from '../../workflows/contract/inputs.js';
import { RollingPool } from '../support/rolling-pool.js';
import type { SimulatedNode } from '../support/simulated-node.js';
import { TEST_TUNING, until, WorkflowLab } from '../support/workflow-lab.js';

/** Patience with a node of seconds, where it is half an hour: "for an hour" is then a few of them. Not so few that a busy machine uses them up. */
const IMPATIENT = {
  ...TEST_TUNING.node,
  workerPresentSeconds: 8,
  stepSeconds: 10,
  heartbeatSeconds: 6,
  drainMaxSliceSeconds: 1,
  rebootLimitSeconds: 12,
  cleanUpSeconds: 8,
};

describe.concurrent('changes in mid-rollout', () => {
  let lab: WorkflowLab;
  beforeAll(async () => {
    lab = await WorkflowLab.start({ node: IMPATIENT });
  });
  afterAll(() => lab.stop());

  /** Away for so long that its update gave up, and another one that was tried later gave up as well. */
  async function untilGivenUpTwice(node: SimulatedNode): Promise<void> {
    const { runId: first } = await lab.update(node.name).describe();
    const outcomeOf = async (runId: string) =>
      ((await lab.update(node.name, runId).result()) as UpdateNodeResult).outcome;
    expect(await outcomeOf(first)).toBe('unreachable');
    await until(`another update of ${node.name}`, async () => (await lab.update(node.name).describe()).runId !== first);
    const { runId: second } = await lab.update(node.name).describe();
    expect(await outcomeOf(second)).toBe('unreachable');
  }

  it('the worker of a draining node gone for an hour: the node keeps the only slot, is named, and is finished first', async () => {
    const pool = await RollingPool.begin(lab, 'gone-in-drain');
    const { inDrain, next, last } = pool;
    await lab.stopNodeWorker(inDrain.name);
    await untilGivenUpTwice(inDrain);
    await pool.untilItWaits('NodesUnreachable', new RegExp(`the worker of ${inDrain.name} did not answer`));
    expect(inDrain.facts).toMatchObject({ desired: pool.second, unschedulable: true });
    pool.expectUntouched(next, last);
    pool.letDrain();
    await lab.startNodeWorker(inDrain);
    await lab.untilUpdated(pool.name, pool.nodes);
    pool.expectUpdates(pool.nodes.map((node) => [node, 1] as const));
    expect(pool.ledger.mostTaken).toBe(1);
  });

  it('the worker of a waiting node gone for an hour: it is not cordoned, and the others go on without it', async () => {
    const pool = await RollingPool.begin(lab, 'gone-while-waiting', { maxUnavailable: 2 });
    const [next] = pool.waiting;
    await lab.stopNodeWorker(next!.name);
    pool.letDrain();
    await lab.untilUpdated(pool.name, [pool.done, ...pool.draining]);
    await until('it is its turn', () => next!.facts.desired === pool.second);
    await untilGivenUpTwice(next!);
    expect(next!.facts).toMatchObject({ current: pool.first, unschedulable: false });
    expect(pool.ledger.cordonsOf(next!.name)).toBe(0);
    await lab.startNodeWorker(next!);
    await lab.untilUpdated(pool.name, pool.nodes);
    pool.expectUpdates(pool.nodes.map((node) => [node, 1] as const));
    expect(pool.ledger.mostTaken).toBe(2);
  });

  it('a node that does not come back from its reboot for an hour: nobody takes its place, and it needs no second reboot', async () => {
    const pool = await RollingPool.begin(lab, 'gone-in-reboot');
    const { inDrain, next, last } = pool;
    let isAway = false;
    inDrain.before = (step) => {
      if (step === 'confirm') isAway = true;
    };
    pool.letDrain();
    await until('it was told to reboot', () => isAway);
    await lab.stopNodeWorker(inDrain.name);
    await untilGivenUpTwice(inDrain);
    expect(inDrain.boots).toBe(2);
    pool.expectUntouched(next, last);
    await lab.startNodeWorker(inDrain);
    await lab.untilUpdated(pool.name, pool.nodes);
    pool.expectUpdates(pool.nodes.map((node) => [node, 1] as const));
    expect(pool.ledger.mostTaken).toBe(1);
  });
});
