import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { KINDS } from '../../activities/kubernetes/client.js';
import type { PoolTuning, UpdateNodeResult } from '../../workflows/contract/inputs.js';
import { Gate } from '../support/gate.js';
import type { SimulatedNode } from '../support/simulated-node.js';
import { TEST_TUNING, until, WorkflowLab } from '../support/workflow-lab.js';

/** Nothing comes by itself for an hour: what goes on was told to. */
const ONLY_WHEN_TOLD: Partial<PoolTuning> = {
  tickSeconds: 3_600,
  node: { ...TEST_TUNING.node, clearanceFirstSeconds: 3_600 },
};
const CART = [{ pod: 'shop/cart-1', why: 'PDB shop/cart allows 0 disruptions' }];

// One after the other: the switch is one for all pools.
describe('stop and go', () => {
  let lab: WorkflowLab;
  beforeAll(async () => {
    lab = await WorkflowLab.start(ONLY_WHEN_TOLD);
  });
  afterAll(() => lab.stop());

  async function settled(pool: string, count = 1): Promise<[SimulatedNode, ...SimulatedNode[]]> {
    const { nodes } = await lab.addSettledPool(pool, count);
    return nodes as [SimulatedNode, ...SimulatedNode[]];
  }
  async function go(pool: string, nodes: readonly SimulatedNode[]): Promise<void> {
    await lab.stopEverything(null);
    await lab.untilUpdated(pool, nodes);
  }

  it('leave a node whose config is on its disk waiting before its reboot, and reboot it as soon as they are lifted', async () => {
    const [node, next] = await settled('applied', 2);
    const written = new Gate();
    let applies = false;
    node.before = (step) => {
      if (step !== 'apply') return undefined;
      applies = true;
      return written.wait();
    };
    await lab.revise('applied', 'second');
    await until('it applies', () => applies);
    await lab.stopEverything('storage is on fire');
    written.open();
    await until('it says for what it waits', async () => (await lab.sentenceOf(node.name)).startsWith('Waiting: '));
    expect(await lab.sentenceOf(node.name)).toMatch(
      /waits before its reboot: everything is stopped \(storage is on fire\)/,
    );
    await until('the rollout says so too', async () => {
      const { turn } = await lab
        .rollout('applied')
        .query<{ turn: { waiting: { code: string } | null } }>('rolloutStatus');
      return turn.waiting?.code === 'Stopped';
    });
    expect([node.boots, next?.steps]).toEqual([1, expect.not.arrayContaining(['cordon', 'apply']) as string[]]);
    await go('applied', [node, next!]);
    expect([node.boots, next?.boots]).toEqual([2, 2]);
  });

  it('give back a node that drains, at once and as it was, and start again as soon as they are lifted', async () => {
    const [node] = await settled('draining');
    node.blockers = CART;
    const before = node.facts.current;
    await lab.revise('draining', 'second');
    await until('it drains', () => node.steps.includes('drain'));
    const update = lab.update(node.name);
    const { runId } = await update.describe();
    await lab.stopEverything('wait for Ann');
    const result = (await lab.update(node.name, runId).result()) as UpdateNodeResult;
    expect(result).toMatchObject({ outcome: 'superseded', reason: expect.stringContaining('wait for Ann') as string });
    expect(node.facts).toMatchObject({ current: before, desired: before, unschedulable: false, state: 'Done' });
    expect(node.facts.cordonedFor).toBeUndefined();
    // Applied once, when it was adopted.
    expect([node.boots, node.steps.filter((step) => step === 'apply').length]).toEqual([1, 1]);
    node.blockers = [];
    await go('draining', [node]);
  });

  it('let nothing start', async () => {
    const [node] = await settled('fresh');
    const adopted = node.steps.length;
    await lab.stopEverything('wait');
    await lab.revise('fresh', 'second');
    await until('the rollout says why', async () => {
      const { status } = await lab.rollout('fresh').describe();
      if (status.name !== 'RUNNING') return false;
      const { turn } = await lab
        .rollout('fresh')
        .query<{ turn: { waiting: { code: string } | null } | null }>('rolloutStatus');
      return turn?.waiting?.code === 'Stopped';
    });
    expect(node.steps).toHaveLength(adopted);
    await go('fresh', [node]);
  });
});

describe('the only node of a control plane', () => {
  let lab: WorkflowLab;
  beforeAll(async () => {
    lab = await WorkflowLab.start();
  });
  afterAll(() => lab.stop());

  it('takes the API server away with its reboot, which is waiting and no failure', async () => {
    const { nodes } = await lab.addSettledPool('sole', 1);
    const [node] = nodes as [SimulatedNode];
    const label = { 'node-role.kubernetes.io/control-plane': '' };
    await lab.cluster.patch(KINDS.node, { name: node.name }, { metadata: { labels: label } });
    let away = false;
    const refusals: string[] = [];
    lab.cluster.intercept(({ verb, resource, subresource }) => {
      // The kubelet itself reports again as soon as it can.
      if (!away || subresource === 'status') return;
      refusals.push(`${verb} ${resource.kind}`);
      throw new Error('connect ECONNREFUSED');
    });
    node.before = (step) => {
      // Down with the reboot; the kubelet has the API server running again before it reports itself.
      if (step === 'confirm' && refusals.length === 0) away = true;
    };
    await lab.revise('sole', 'second');
    await until('everybody finds the API server away', () => new Set(refusals).size >= 2 && refusals.length >= 5);
    away = false;
    await lab.untilUpdated('sole', nodes);
    expect(await lab.update(node.name).result()).toMatchObject({ outcome: 'updated', rebooted: true });
    expect([node.boots, node.facts.failure]).toEqual([2, undefined]);
  });
});
