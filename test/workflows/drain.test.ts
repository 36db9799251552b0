import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { rolloutStatus } from '../../workflows/contract/messages.js';
import type { UpdateNodeResult } from '../../workflows/contract/inputs.js';
import type { SimulatedNode } from '../support/simulated-node.js';
import { until, WorkflowLab } from '../support/workflow-lab.js';

const CART = [{ pod: 'shop/cart-1', why: 'PDB shop/cart allows 0 disruptions' }];

describe.concurrent('a rollout whose nodes do not drain', () => {
  let lab: WorkflowLab;
  beforeAll(async () => {
    lab = await WorkflowLab.start();
  });
  afterAll(() => lab.stop());

  it('takes back what the pool’s policy gives back, goes on with other nodes, and comes again', async () => {
    const { nodes } = await lab.addSettledPool('given-back', 2);
    const [held, other] = nodes as [SimulatedNode, SimulatedNode];
    const reason = 'drain of given-back-n1: pod shop/cart-1 not gone after 10m';
    held.blockers = CART;
    held.givesBack = { reason, retryAfterSeconds: 4 };
    const second = await lab.revise('given-back', 'second');
    await until('it drains', () => held.steps.includes('drain'));
    const update = lab.update(held.name);
    expect((await update.result()) as UpdateNodeResult).toEqual({ outcome: 'postponed', reason, retryAfterSeconds: 4 });
    expect(held.facts).toMatchObject({ unschedulable: false, desired: held.facts.current });
    await lab.untilUpdated('given-back', [other]);
    // The other one was through before this one was tried again.
    expect(held.steps.filter((step) => step === 'drain')).toHaveLength(1);
    held.blockers = [];
    await lab.untilUpdated('given-back', nodes);
    expect(held.boots).toBe(2);
    expect(held.facts.current).toBe(second);
  });

  it('leaves a node that was given back alone for as long as it said, also through a rollout that continues as new', async () => {
    const { nodes } = await lab.addSettledPool('rests', 1);
    const [node] = nodes as [SimulatedNode];
    node.blockers = CART;
    node.givesBack = { reason: 'pod shop/cart-1 not gone', retryAfterSeconds: 600 };
    await lab.revise('rests', 'second');
    await until('it was given back', () => node.steps.includes('release'));
    await lab.update(node.name).result();
    await lab.rollout('rests').signal('wake');
    const turns = async () => (await lab.rollout('rests').query(rolloutStatus)).turn;
    await until('a turn that waits for it', async () => (await turns())?.waiting?.until !== undefined);
    expect((await turns())?.waiting?.until ?? 0).toBeGreaterThan(Date.now() + 500_000);
    expect(node.steps.filter((step) => step === 'drain')).toHaveLength(1);
  });

  it('cordons, and does not drain, a node whose pods could run nowhere else', async () => {
    const { nodes } = await lab.addSettledPool('sole', 1);
    const [node] = nodes as [SimulatedNode];
    node.keepsPods = true;
    node.blockers = CART;
    await lab.revise('sole', 'second');
    await lab.untilUpdated('sole', nodes);
    expect(node.steps).toContain('cordon');
    expect(node.steps).not.toContain('drain');
    expect(node.boots).toBe(2);
  });

  it('tells the sentence of the node worker in the UI', async () => {
    const { nodes } = await lab.addSettledPool('sentence', 1);
    const [node] = nodes as [SimulatedNode];
    node.blockers = CART;
    node.sentence = 'Waiting: PDB shop/cart allows 0 disruptions (pod shop/cart-1); drain of sentence-n1 since today';
    await lab.revise('sentence', 'second');
    await until('the update tells it', async () => {
      try {
        const { currentDetails } = await lab
          .update(node.name)
          .query<{ currentDetails?: string }>('__temporal_workflow_metadata');
        return currentDetails === node.sentence;
      } catch {
        return false;
      }
    });
    node.blockers = [];
    await lab.untilUpdated('sentence', nodes);
  });
});
