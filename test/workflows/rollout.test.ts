import { ApplicationFailure } from '@temporalio/common';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { KINDS } from '../../activities/kubernetes/client.js';
import type { UpdateNodeResult } from '../../workflows/contract/inputs.js';
import { SEARCH_ATTRIBUTES } from '../../workflows/contract/search-attributes.js';
import { CONTROL_TASK_QUEUE, managePoolId } from '../../workflows/contract/ids.js';
import { FakeCluster } from '../support/fake-cluster.js';
import { Gate } from '../support/gate.js';
import type { SimulatedNode, Step } from '../support/simulated-node.js';
import { flavour, until, WorkflowLab } from '../support/workflow-lab.js';

/** Holds the step of a node until the gate is opened. */
function hold(node: SimulatedNode, step: Step): Gate {
  const gate = new Gate();
  node.before = (begun) => (begun === step ? gate.wait() : undefined);
  return gate;
}

const CART = [{ pod: 'shop/cart-1', why: 'PDB shop/cart allows 0 disruptions' }];

describe.concurrent('a rollout', () => {
  let lab: WorkflowLab;
  beforeAll(async () => {
    lab = await WorkflowLab.start();
  });
  afterAll(() => lab.stop());

  it('updates oldest first and never more than maxUnavailable at once', async () => {
    const { nodes } = await lab.addSettledPool('order', 5, { maxUnavailable: 2 });
    expect(nodes.map((node) => node.boots)).toEqual([1, 1, 1, 1, 1]);
    const order: string[] = [];
    for (const node of nodes) {
      node.before = (step) => {
        if (step === 'cordon') order.push(node.name);
      };
    }
    const overlap = lab.observeOverlap(nodes);
    await lab.revise('order', 'second');
    await lab.untilUpdated('order', nodes);

    // Of two that start in one turn either may be cordoned first.
    expect(order.slice(0, 2).sort()).toEqual(['order-n1', 'order-n2']);
    expect(order.slice(2, 4).sort()).toEqual(['order-n3', 'order-n4']);
    expect(order.slice(4)).toEqual(['order-n5']);
    expect(overlap()).toBe(2);
    expect(nodes.map((node) => node.boots)).toEqual([2, 2, 2, 2, 2]);
    await until('the status says Updated', () => lab.condition('order', 'Updated') === 'True');
    expect(lab.pool('order').status?.configuration?.name).toBe(lab.target('order'));
  });

  it('counts a node that is NotReady already, and one that somebody cordoned', async () => {
    const { nodes } = await lab.addSettledPool('counted', 4, { maxUnavailable: 3 });
    const [down, held] = nodes as [SimulatedNode, SimulatedNode];
    await lab.cluster.patch(
      KINDS.node,
      { name: down.name },
      { status: { conditions: [{ type: 'Ready', status: 'False' }] } },
      'status',
    );
    await lab.cluster.patch(KINDS.node, { name: held.name }, { spec: { unschedulable: true } });
    const overlap = lab.observeOverlap(nodes.slice(2));
    await lab.revise('counted', 'second');
    await lab.untilUpdated('counted', nodes.slice(2));
    expect(overlap()).toBe(1);
    expect([down.boots, held.boots]).toEqual([1, 1]);

    await lab.cluster.patch(KINDS.node, { name: held.name }, { spec: { unschedulable: null } });
    await lab.untilUpdated('counted', nodes.slice(1));
    expect(down.boots).toBe(1);
  });

  it('tries a step again that failed for a passing reason, without a second reboot', async () => {
    const { nodes } = await lab.addSettledPool('retry', 1);
    const [node] = nodes as [SimulatedNode];
    let failures = 0;
    node.before = (step) => {
      if ((step === 'cordon' || step === 'reboot') && failures < 4) {
        failures += 1;
        throw ApplicationFailure.create({
          message: 'the API server is away',
          type: 'ApiUnavailable',
          nextRetryDelay: 50,
        });
      }
    };
    await lab.revise('retry', 'second');
    await lab.untilUpdated('retry', nodes);
    expect(failures).toBe(4);
    expect(node.boots).toBe(2);
  });

  it('plans, cordons and drains again when the change turns out to need an emptier node than it was planned for', async () => {
    const { nodes } = await lab.addSettledPool('replanned', 1);
    const [node] = nodes as [SimulatedNode];
    const before = node.steps.length;
    let refusals = 0;
    node.before = (step) => {
      if (step !== 'apply' || refusals > 0) return;
      refusals += 1;
      throw ApplicationFailure.nonRetryable('it reboots by now, and was not drained', 'NotDrained');
    };
    await lab.revise('replanned', 'second');
    await lab.untilUpdated('replanned', nodes);
    const half = ['prepare', 'cordon', 'drain', 'apply'];
    expect(node.steps.slice(before, before + 8)).toEqual([...half, ...half]);
    expect(node.steps.slice(before + 8).filter((step) => step === 'reboot')).toHaveLength(1);
    expect(node.facts.failure).toBeUndefined();
  });

  it('leaves a node that failed whole and schedulable, keeps its slot, and goes on with the others', async () => {
    const { nodes, first } = await lab.addSettledPool('failing', 4, { maxUnavailable: 2 });
    const [bad, ...good] = nodes as [SimulatedNode, ...SimulatedNode[]];
    bad.before = async (step, input) => {
      if (step === 'apply' && 'target' in input)
        throw await bad.degrade('ApplyFailed', 'no room for /etc/motd', String(input.target));
    };
    const overlap = lab.observeOverlap(good);
    const second = await lab.revise('failing', 'second');
    await lab.untilUpdated('failing', good);
    expect(overlap()).toBe(1);
    expect(bad.facts).toMatchObject({ current: first, desired: second, state: 'Degraded', unschedulable: false });
    expect(bad.boots).toBe(1);
    await until('the pool is Degraded', () => lab.condition('failing', 'Degraded') === 'True');
    expect(lab.pool('failing').status?.degradedMachineCount).toBe(1);

    bad.before = () => undefined;
    await lab.revise('failing', 'third');
    await lab.untilUpdated('failing', nodes);
    expect(bad.boots).toBe(2);
  });

  it('finishes what runs when the pool is paused, starts nothing, and goes on when it is resumed', async () => {
    const { nodes, first } = await lab.addSettledPool('paused', 3);
    const [one, two] = nodes as [SimulatedNode, SimulatedNode];
    const gate = hold(one, 'apply');
    await lab.revise('paused', 'second');
    await gate.reached;
    await lab.cluster.patch(flavour.machineConfigPool, { name: 'paused' }, { spec: { paused: true } });
    gate.open();
    await until(
      'the running node finishes',
      () => one.facts.current === lab.target('paused') && !one.facts.unschedulable,
    );
    await until('the rollout says why it waits', async () => {
      const { turn } = await lab
        .rollout('paused')
        .query<{ turn: { waiting: { code: string } | null } | null }>('rolloutStatus');
      return turn?.waiting?.code === 'PoolPaused';
    });
    expect(two.facts).toMatchObject({ current: first, unschedulable: false });
    await lab.cluster.patch(flavour.machineConfigPool, { name: 'paused' }, { spec: { paused: false } });
    await lab.untilUpdated('paused', nodes);
  });

  it('says in the UI what it does and what it waits for', async () => {
    const { nodes, first } = await lab.addSettledPool('told', 1);
    const [node] = nodes as [SimulatedNode];
    node.blockers = CART;
    const second = await lab.revise('told', 'second');
    const update = lab.update(node.name);
    const details = async () =>
      (await update.query<{ currentDetails?: string }>('__temporal_workflow_metadata')).currentDetails ?? '';
    await until('the update waits for the budget', async () => {
      try {
        return (await details()).startsWith('Waiting: PDB shop/cart allows 0 disruptions (pod shop/cart-1)');
      } catch {
        return false;
      }
    });
    expect(await details()).toMatch(/1 pods left on told-n1; drain since \d\d:\d\d; /);
    const described = await update.describe();
    const short = (name: string) => name.slice(0, 'rendered-told-0000'.length);
    expect(await described.staticSummary()).toBe(`told-n1: ${short(first)} → ${short(second).slice(-4)}`);
    expect(described.typedSearchAttributes.get(SEARCH_ATTRIBUTES.pool)).toBe('told');
    expect(described.typedSearchAttributes.get(SEARCH_ATTRIBUTES.node)).toBe('told-n1');
    expect(described.typedSearchAttributes.get(SEARCH_ATTRIBUTES.rendered)).toBe(second);
    expect(described.typedSearchAttributes.get(SEARCH_ATTRIBUTES.phase)).toBe('drain');
    const { events } = await update.fetchHistory();
    const summaries = events?.flatMap(({ userMetadata }) => (userMetadata?.summary ? [userMetadata.summary.data] : []));
    const texts = summaries?.map((data) => JSON.parse(Buffer.from(data ?? []).toString()) as string);
    expect(texts).toContain('drain told-n1');
    node.blockers = [];
    await lab.untilUpdated('told', nodes);
    expect((await update.describe()).typedSearchAttributes.get(SEARCH_ATTRIBUTES.phase)).toBe('reboot');
  });

  it('reboots once, to the newer config, when the config changes during a drain', async () => {
    const { nodes } = await lab.addSettledPool('newer', 1);
    const [node] = nodes as [SimulatedNode];
    node.blockers = CART;
    await lab.revise('newer', 'second');
    await until('it drains', () => node.steps.includes('drain'));
    const third = await lab.revise('newer', 'third');
    await until('it is retargeted', () => node.facts.desired === third);
    expect(node.facts.unschedulable).toBe(true);
    node.blockers = [];
    await lab.untilUpdated('newer', nodes);
    expect(node.boots).toBe(2);
    expect(node.facts.current).toBe(third);
  });

  it('does not reboot, and uncordons, when the config is changed back during a drain', async () => {
    const { nodes, first } = await lab.addSettledPool('back', 1);
    const [node] = nodes as [SimulatedNode];
    node.steps.length = 0;
    node.blockers = CART;
    await lab.revise('back', 'second');
    await until('it drains', () => node.steps.includes('drain'));
    expect(await lab.revise('back', 'first')).toBe(first);
    await until('it is given back', () => !node.facts.unschedulable);
    await lab.untilUpdated('back', nodes);
    expect(node.boots).toBe(1);
    expect(node.steps).not.toContain('apply');
  });

  it('finishes, and then updates again, when the config changes after apply began', async () => {
    const { nodes } = await lab.addSettledPool('twice', 1);
    const [node] = nodes as [SimulatedNode];
    const seen: (string | undefined)[] = [];
    const gate = new Gate();
    node.before = (step) => {
      if (step === 'uncordon') seen.push(node.facts.applying);
      return step === 'reboot' ? gate.wait() : undefined;
    };
    const second = await lab.revise('twice', 'second');
    await gate.reached;
    const third = await lab.revise('twice', 'third');
    gate.open();
    await until('it runs the newest', () => node.facts.current === third);
    await lab.untilUpdated('twice', nodes);
    expect(seen).toEqual([second, third]);
    expect(node.boots).toBe(3);
  });

  it('gives a node back as it was when its rollout is cancelled in the drain', async () => {
    const { nodes, first } = await lab.addSettledPool('cancelled', 2, { maxUnavailable: 2 });
    const [draining, applying] = nodes as [SimulatedNode, SimulatedNode];
    draining.blockers = CART;
    const gate = hold(applying, 'apply');
    const second = await lab.revise('cancelled', 'second');
    await gate.reached;
    await until('the other drains', () => draining.steps.includes('drain'));
    const update = lab.update(draining.name);
    const { runId } = await lab.rollout('cancelled').describe();
    await lab.cluster.patch(flavour.machineConfigPool, { name: 'cancelled' }, { spec: { paused: true } });
    await lab.rollout('cancelled', runId).cancel();
    expect(await update.result()).toEqual({ outcome: 'cancelled', step: 'drain' });
    expect(draining.facts).toMatchObject({ current: first, desired: first, unschedulable: false });
    gate.open();
    await until('what had begun is finished', () => applying.facts.current === second && !applying.facts.unschedulable);
    await until(
      'the rollout ends',
      async () => (await lab.rollout('cancelled', runId).describe()).status.name === 'CANCELLED',
    );
  });

  it('calls a node unreachable whose worker does not answer, and updates it when the worker is back', async () => {
    const { nodes } = await lab.addSettledPool('silent', 1);
    const [node] = nodes as [SimulatedNode];
    await lab.stopNodeWorker(node.name);
    await lab.revise('silent', 'second');
    await until('an update starts', async () => {
      try {
        return ((await lab.update(node.name).result()) as UpdateNodeResult).outcome === 'unreachable';
      } catch {
        return false;
      }
    });
    expect(node.facts.unschedulable).toBe(false);
    await lab.startNodeWorker(node);
    await lab.untilUpdated('silent', nodes);
    expect(node.boots).toBe(2);
  });

  it('frees the slot of a node that is deleted in its drain', async () => {
    const { nodes } = await lab.addSettledPool('deleted', 2);
    const [gone, next] = nodes as [SimulatedNode, SimulatedNode];
    gone.blockers = CART;
    await lab.revise('deleted', 'second');
    await until('it drains', () => gone.steps.includes('drain'));
    await lab.cluster.delete(KINDS.node, { name: gone.name });
    await lab.untilUpdated('deleted', [next]);
    expect(next.boots).toBe(2);
  });

  it('drops an update whose node was replaced by another machine of that name, and updates the new one', async () => {
    const { nodes } = await lab.addSettledPool('replaced', 1);
    const [old] = nodes as [SimulatedNode];
    old.blockers = CART;
    const second = await lab.revise('replaced', 'second');
    await until('it drains', () => old.steps.includes('drain'));
    const { runId } = await lab.update(old.name).describe();
    await lab.cluster.delete(KINDS.node, { name: old.name });
    await lab.stopNodeWorker(old.name);
    const replacement = await lab.addNode('replaced', old.name);
    await lab.untilUpdated('replaced', [replacement]);
    expect(replacement.facts.current).toBe(second);
    expect(replacement.uid).not.toBe(old.uid);
    // Whoever noticed first: the old machine's worker that its Node is gone, or the rollout.
    const dropped = (await lab.update(old.name, runId).result()) as UpdateNodeResult;
    expect(['cancelled', 'superseded']).toContain(dropped.outcome);
  });

  it('ends a cancelled update although its clean-up gets no answer, and lifts the cordon when the worker is back', async () => {
    const { nodes, first } = await lab.addSettledPool('unanswered', 1);
    const [node] = nodes as [SimulatedNode];
    node.blockers = CART;
    await lab.revise('unanswered', 'second');
    await until('it drains', () => node.steps.includes('drain'));
    const update = lab.update(node.name, (await lab.update(node.name).describe()).runId);
    expect(await lab.revise('unanswered', 'first')).toBe(first);
    await lab.stopNodeWorker(node.name);
    await update.cancel();
    await update.result();
    expect(node.facts).toMatchObject({ unschedulable: true, desired: first });
    node.blockers = [];
    await lab.startNodeWorker(node);
    await lab.untilUpdated('unanswered', nodes);
    expect(node.boots).toBe(1);
  });

  it('gives the nodes back when the pool is deleted in a drain', async () => {
    const { nodes } = await lab.addSettledPool('dissolved', 1);
    const [node] = nodes as [SimulatedNode];
    node.blockers = CART;
    await lab.revise('dissolved', 'second');
    await until('it drains', () => node.steps.includes('drain'));
    await lab.cluster.delete(flavour.machineConfigPool, { name: 'dissolved' });
    await until('it is given back', () => !node.facts.unschedulable);
    expect(node.boots).toBe(1);
    await until(
      'the rollout ends',
      async () => (await lab.rollout('dissolved').describe()).status.name === 'COMPLETED',
    );
  });

  it('takes up again a node whose update was terminated', async () => {
    const { nodes } = await lab.addSettledPool('terminated', 1);
    const [node] = nodes as [SimulatedNode];
    node.blockers = CART;
    await lab.revise('terminated', 'second');
    await until('it drains', () => node.steps.includes('drain'));
    await lab.update(node.name).terminate();
    expect(node.facts.unschedulable).toBe(true);
    node.blockers = [];
    await lab.untilUpdated('terminated', nodes);
    expect(node.boots).toBe(2);
  });

  it('starts no node whose worker never registered, and takes no slot for it', async () => {
    const { nodes } = await lab.addSettledPool('unmanaged', 1);
    lab.cluster.add(KINDS.node, {
      metadata: { name: 'unmanaged-x', labels: { pool: 'unmanaged' }, creationTimestamp: '2025-01-01T00:00:00Z' },
      status: { conditions: [{ type: 'Ready', status: 'False' }] },
    } as never);
    await lab.revise('unmanaged', 'second');
    await lab.untilUpdated('unmanaged', nodes);
    await until('the status counts it, and only the other one as updated', () => {
      const { machineCount, updatedMachineCount } = lab.pool('unmanaged').status ?? {};
      return machineCount === 2 && updatedMachineCount === 1;
    });
    await until(
      'the rollout ends',
      async () => (await lab.rollout('unmanaged').describe()).status.name === 'COMPLETED',
    );
  });

  it('keeps the rendered config when a MachineConfig is bad, says so on the pool, and goes on when it is mended', async () => {
    const { nodes, first } = await lab.addSettledPool('bad', 1);
    await lab.cluster.patch(
      flavour.machineConfig,
      { name: '50-bad' },
      { spec: { config: { ignition: { version: '9.9.9' } } } },
    );
    await until('it is RenderDegraded', () => lab.condition('bad', 'RenderDegraded') === 'True');
    const conditions = lab.pool('bad').status?.conditions ?? [];
    expect(conditions.find(({ type }) => type === 'RenderDegraded')?.message).toContain('50-bad');
    expect(lab.target('bad')).toBe(first);
    expect(nodes[0]!.facts.current).toBe(first);
    await lab.cluster.patch(
      flavour.machineConfig,
      { name: '50-bad' },
      { spec: { config: { ignition: { version: '3.4.0' } } } },
    );
    await until('it is mended', () => lab.condition('bad', 'RenderDegraded') === 'False');
  });

  it('keeps two clusters apart that were given the same Temporal namespace', async () => {
    await lab.addSettledPool('neighbour', 1);
    const { workflow } = lab.environment.client;
    await until('visibility shows the pool', async () => {
      for await (const { workflowId } of workflow.list({ query: 'WorkflowType = "managePool"' })) {
        if (workflowId === managePoolId('neighbour')) return true;
      }
      return false;
    });
    const other = new FakeCluster({ clusterUid: 'cluster-2' });
    await expect(lab.startControlOf(other)).rejects.toThrow(
      /used by the Kubernetes cluster "cluster-1".*this is cluster-2/,
    );

    const stranger = await workflow.start('renderPool', {
      workflowId: 'render/of-another-cluster',
      taskQueue: CONTROL_TASK_QUEUE,
      args: [{ cluster: 'cluster-2', pool: 'neighbour' }],
    });
    const failure: unknown = await stranger.result().catch((error: unknown) => error);
    expect(failure).toMatchObject({ cause: { cause: { type: 'WrongCluster' } } });
  });
});
