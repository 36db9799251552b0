import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { updateNodeId, CONTROL_TASK_QUEUE } from '../../workflows/contract/ids.js';
import type { UpdateNodeInput } from '../../workflows/contract/inputs.js';
import { Gate } from '../support/gate.js';
import type { SimulatedNode } from '../support/simulated-node.js';
import { flavour, TEST_TUNING, until, WorkflowLab } from '../support/workflow-lab.js';

describe('a rollout that continues as new every 80 events', () => {
  let lab: WorkflowLab;
  beforeAll(async () => {
    lab = await WorkflowLab.start({ maxEvents: 80 });
  });
  afterAll(() => lab.stop());

  it('finishes the others and keeps every slot full while one child never ends, one is terminated and one is foreign', async () => {
    const { nodes, first } = await lab.addSettledPool('handover', 9, { maxUnavailable: 3 });
    const [endless, terminated, foreign, ...others] = nodes as [
      SimulatedNode,
      SimulatedNode,
      SimulatedNode,
      ...SimulatedNode[],
    ];
    endless.blockers = [{ pod: 'shop/cart-1', why: 'PDB shop/cart allows 0 disruptions' }];
    terminated.blockers = [{ pod: 'shop/cart-2', why: 'PDB shop/cart allows 0 disruptions' }];
    const foreignGate = new Gate();
    foreign.before = (step) => (step === 'prepare' ? foreignGate.wait() : undefined);
    const overlap = lab.observeOverlap(nodes);

    await lab.cluster.patch(flavour.machineConfigPool, { name: 'handover' }, { spec: { paused: true } });
    const second = await lab.revise('handover', 'second');
    const input: UpdateNodeInput = {
      cluster: 'cluster-1',
      pool: 'handover',
      node: foreign.name,
      nodeUid: foreign.uid,
      target: second,
      current: first,
      tuning: TEST_TUNING.node,
    };
    await lab.cluster.patch(flavour.machineConfigPool, { name: 'handover' }, { spec: { paused: false } });
    await lab.environment.client.workflow.start('updateNode', {
      workflowId: updateNodeId(foreign.name),
      taskQueue: CONTROL_TASK_QUEUE,
      args: [input],
    });

    await until('the first three are in work', () => nodes.slice(0, 3).every(({ facts }) => facts.desired === second));
    const firstRun = (await lab.rollout('handover').describe()).runId;
    await until('the rollout has continued as new with them in flight', async () => {
      return (await lab.rollout('handover').describe()).runId !== firstRun;
    });
    await lab.update(terminated.name).terminate('somebody terminates it');
    const late = lab.observeOverlap(others);
    terminated.blockers = [];
    foreignGate.open();
    await lab.untilUpdated('handover', [terminated, foreign, ...others]);

    expect(endless.facts).toMatchObject({ current: first, desired: second, unschedulable: true });
    expect((await lab.update(endless.name).describe()).status.name).toBe('RUNNING');
    // Never more, and no slot leaked: beside the endless one, two others were still updated at once.
    expect(overlap()).toBe(3);
    expect(late()).toBe(2);
    expect([terminated, foreign, ...others].map(({ boots }) => boots)).toEqual(Array<number>(8).fill(2));

    endless.blockers = [];
    await lab.untilUpdated('handover', nodes);
    expect(endless.boots).toBe(2);
    await until('the rollout ends', async () => (await lab.rollout('handover').describe()).status.name === 'COMPLETED');
  });
});
