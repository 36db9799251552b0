import { ApplicationFailure } from '@temporalio/common';
import { KINDS, type KubernetesObject } from '../../activities/kubernetes/client.js';
import { firstBootManifests } from '../../client/install/first-boot.js';
import { applyManifest } from '../../client/install/manifest.js';
import type { KubeletConfig } from '../../machine-config/api/kubelet-config.js';
import {
  CONTROL_TASK_QUEUE,
  KEEP_BOOTSTRAP_TOKEN_ID,
  managePoolId,
  manageSourcesId,
  renderPoolId,
  rollOutPoolId,
  updateNodeId,
} from '../../workflows/contract/ids.js';
import { Gate } from '../support/gate.js';
import type { SimulatedNode } from '../support/simulated-node.js';
import type { PoolTuning } from '../../workflows/contract/inputs.js';
import { flavour, TEST_TUNING, until, type WorkflowLab } from '../support/workflow-lab.js';

/** Workflow executions whose histories belong to a scenario; without a run id, the latest run. */
export interface Recorded {
  readonly workflowId: string;
  readonly runId?: string;
}

export interface Scenario {
  /** Also the name of its folder under histories/. */
  readonly name: string;
  /** Tuning of the pools' workflows. */
  readonly tuning?: Partial<PoolTuning>;
  /** Plays it in a pool of that name, to the end of everything that it records. */
  play(lab: WorkflowLab, pool: string): Promise<readonly Recorded[]>;
}

const CART = [{ pod: 'shop/cart-1', why: 'PDB shop/cart allows 0 disruptions' }];

async function firstOf(lab: WorkflowLab, pool: string, count = 1): Promise<[SimulatedNode, ...SimulatedNode[]]> {
  const { nodes } = await lab.addSettledPool(pool, count);
  return nodes as [SimulatedNode, ...SimulatedNode[]];
}

async function ended(lab: WorkflowLab, workflowId: string, runId?: string): Promise<void> {
  const handle = lab.environment.client.workflow.getHandle(workflowId, runId);
  await until(`${workflowId} ended`, async () => (await handle.describe()).status.name !== 'RUNNING');
}

/** What the pool's target was rendered from. */
function sourcesOf(lab: WorkflowLab, pool: string): string[] {
  return (lab.pool(pool).spec.configuration?.source ?? []).map(({ name }) => name ?? '');
}

/** Its latest run is over and no other one follows, since every node runs the target. */
async function rolledOut(lab: WorkflowLab, pool: string, nodes: readonly SimulatedNode[]): Promise<void> {
  await lab.untilUpdated(pool, nodes);
  await ended(lab, rollOutPoolId(pool));
}

async function plain(lab: WorkflowLab, pool: string): Promise<readonly Recorded[]> {
  const nodes = await firstOf(lab, pool, 2);
  await lab.revise(pool, 'second');
  await rolledOut(lab, pool, nodes);
  return [managePoolId(pool), renderPoolId(pool), rollOutPoolId(pool), updateNodeId(nodes[0].name)].map(
    (workflowId) => ({ workflowId }),
  );
}

async function continuedAsNew(lab: WorkflowLab, pool: string): Promise<readonly Recorded[]> {
  const nodes = await firstOf(lab, pool, 4);
  const [slow] = nodes;
  slow.blockers = CART;
  await lab.cluster.patch(lab.pools, { name: pool }, { spec: { maxUnavailable: 2 } });
  await lab.revise(pool, 'second');
  await until('the slow one drains', () => slow.steps.includes('drain'));
  const first = await lab.rollout(pool).describe();
  await until('it continued', async () => (await lab.rollout(pool).describe()).runId !== first.runId);
  slow.blockers = [];
  await rolledOut(lab, pool, nodes);
  return [first, { workflowId: rollOutPoolId(pool) }, { workflowId: updateNodeId(slow.name) }];
}

async function cancelledInDrain(lab: WorkflowLab, pool: string): Promise<readonly Recorded[]> {
  const [node] = await firstOf(lab, pool);
  node.blockers = CART;
  await lab.revise(pool, 'second');
  await until('it drains', () => node.steps.includes('drain'));
  const update = await lab.update(node.name).describe();
  const rollout = await lab.rollout(pool).describe();
  await lab.rollout(pool).cancel();
  await ended(lab, update.workflowId, update.runId);
  await ended(lab, rollout.workflowId, rollout.runId);
  node.blockers = [];
  return [update, rollout];
}

export const SCENARIOS: readonly Scenario[] = [
  {
    name: 'plain',
    play: plain,
  },
  {
    // By updates that signal their end to nobody who awaits their result.
    name: 'ended-quietly',
    play: async (lab, pool) => (await plain(lab, pool)).slice(2),
  },
  {
    name: 'planned-again',
    async play(lab, pool) {
      const [node] = await firstOf(lab, pool);
      let refusals = 0;
      node.before = (step) => {
        if (step !== 'apply' || refusals > 0) return;
        refusals += 1;
        throw ApplicationFailure.nonRetryable('it reboots by now, and was not drained', 'NotDrained');
      };
      await lab.revise(pool, 'second');
      await rolledOut(lab, pool, [node]);
      return [{ workflowId: updateNodeId(node.name) }];
    },
  },
  {
    name: 'cancelled-in-drain',
    play: cancelledInDrain,
  },
  {
    // As before, by a rollout that waits for the updates that it cancels.
    name: 'cancelled-and-awaited',
    play: cancelledInDrain,
  },
  {
    name: 'retargeted-before-apply',
    async play(lab, pool) {
      const [node] = await firstOf(lab, pool);
      node.blockers = CART;
      await lab.revise(pool, 'second');
      await until('it drains', () => node.steps.includes('drain'));
      const third = await lab.revise(pool, 'third');
      await until('it is retargeted', () => node.facts.desired === third);
      node.blockers = [];
      await rolledOut(lab, pool, [node]);
      return [{ workflowId: updateNodeId(node.name) }, { workflowId: rollOutPoolId(pool) }];
    },
  },
  {
    // What a new version of the workflows finds that is started while a node waits in its drain.
    name: 'waited-in-drain',
    async play(lab, pool) {
      const [node] = await firstOf(lab, pool);
      node.blockers = CART;
      await lab.revise(pool, 'second');
      await until('it drains for the third time', () => node.steps.filter((step) => step === 'drain').length >= 3);
      node.blockers = [];
      await rolledOut(lab, pool, [node]);
      return [{ workflowId: updateNodeId(node.name) }];
    },
  },
  {
    name: 'stopped-before-reboot',
    async play(lab, pool) {
      const [node] = await firstOf(lab, pool);
      const written = new Gate();
      let applies = false;
      node.before = (step) => {
        if (step !== 'apply') return undefined;
        applies = true;
        return written.wait();
      };
      await lab.revise(pool, 'second');
      await until('it applies', () => applies);
      await lab.stopEverything('a test');
      written.open();
      await until('it waits', async () => (await lab.sentenceOf(node.name)).includes('waits before its reboot'));
      await lab.stopEverything(null);
      await rolledOut(lab, pool, [node]);
      return [{ workflowId: updateNodeId(node.name) }, { workflowId: rollOutPoolId(pool) }];
    },
  },
  {
    name: 'lost-in-apply',
    async play(lab, pool) {
      const [node] = await firstOf(lab, pool);
      const frozen = new Gate();
      let attempts = 0;
      node.before = (step) => {
        if (step !== 'apply') return undefined;
        attempts += 1;
        return attempts === 1 ? frozen.wait() : undefined;
      };
      await lab.revise(pool, 'second');
      await rolledOut(lab, pool, [node]);
      frozen.open();
      return [{ workflowId: updateNodeId(node.name) }];
    },
  },
  {
    name: 'lost-in-reboot',
    tuning: { node: { ...TEST_TUNING.node, rebootLimitSeconds: 4 } },
    async play(lab, pool) {
      const [node] = await firstOf(lab, pool);
      const away = () => {
        throw ApplicationFailure.create({ message: 'it is not back', type: 'NotRebootedYet', nextRetryDelay: 100 });
      };
      node.before = (step) => (step === 'confirm' ? away() : undefined);
      await lab.revise(pool, 'second');
      await until('it reboots', () => node.steps.includes('confirm'));
      const lost = await lab.update(node.name).describe();
      await ended(lab, lost.workflowId, lost.runId);
      node.before = () => undefined;
      await rolledOut(lab, pool, [node]);
      return [lost, { workflowId: updateNodeId(node.name) }];
    },
  },
  {
    name: 'continued-as-new',
    tuning: { maxEvents: 60 },
    play: continuedAsNew,
  },
  {
    // As before, by a run that asks its updates for signals before it ends.
    name: 'handed-over',
    tuning: { maxEvents: 60 },
    play: continuedAsNew,
  },
  {
    name: 'failed-and-retried',
    async play(lab, pool) {
      const [node] = await firstOf(lab, pool);
      node.before = async (step, input) => {
        if (step === 'apply' && 'target' in input) {
          throw await node.degrade('ApplyFailed', 'no room for /etc/motd', String(input.target));
        }
      };
      await lab.revise(pool, 'second');
      await until('it fails', () => node.facts.state === 'Degraded');
      const failed = await lab.update(node.name).describe();
      await ended(lab, failed.workflowId, failed.runId);
      node.before = () => undefined;
      await lab.revise(pool, 'third');
      await rolledOut(lab, pool, [node]);
      return [failed, { workflowId: updateNodeId(node.name) }, { workflowId: rollOutPoolId(pool) }];
    },
  },
  {
    // The drain takes longer than the pool allows: the node is given back, comes again later, and is updated then.
    name: 'postponed',
    async play(lab, pool) {
      const [node] = await firstOf(lab, pool);
      node.blockers = CART;
      node.givesBack = {
        reason: 'pod shop/cart-1 not gone after 1s (spec.rollout.drain.timeout)',
        retryAfterSeconds: 1,
      };
      await lab.revise(pool, 'second');
      await until('it drains', () => node.steps.includes('drain'));
      const postponed = await lab.update(node.name).describe();
      await ended(lab, postponed.workflowId, postponed.runId);
      node.blockers = [];
      node.givesBack = undefined;
      await rolledOut(lab, pool, [node]);
      return [postponed, { workflowId: updateNodeId(node.name) }, { workflowId: rollOutPoolId(pool) }];
    },
  },
  {
    // The only node that takes pods: cordoned, and not drained.
    name: 'kept-its-pods',
    async play(lab, pool) {
      const [node] = await firstOf(lab, pool);
      node.keepsPods = true;
      await lab.revise(pool, 'second');
      await rolledOut(lab, pool, [node]);
      return [{ workflowId: updateNodeId(node.name) }];
    },
  },
  {
    // A KubeletConfig becomes a MachineConfig, which is rendered and rolled out.
    name: 'generated',
    async play(lab, pool) {
      const nodes = await firstOf(lab, pool);
      await lab.cluster.patch(lab.pools, { name: pool }, { metadata: { labels: { pool } } });
      const object: KubernetesObject & KubeletConfig = {
        metadata: { name: pool },
        spec: { machineConfigPoolSelector: { matchLabels: { pool } }, kubeletConfig: { maxPods: 100 } },
      };
      lab.cluster.add(flavour.kubeletConfig, object);
      const name = `99-${pool}-generated-kubelet`;
      await until('the config', () => lab.cluster.peek(flavour.machineConfig, name) !== undefined);
      await until('a render with it', () => sourcesOf(lab, pool).includes(name));
      await rolledOut(lab, pool, nodes);
      return [manageSourcesId('KubeletConfig'), renderPoolId(pool)].map((workflowId) => ({ workflowId }));
    },
  },
  {
    // New machines join by a token that is looked at again and again.
    name: 'bootstrap-token',
    async play({ cluster, environment }) {
      const users = { controlUser: 'control', ignitionUser: 'ignition' };
      for (const manifest of firstBootManifests(flavour, users)) await applyManifest(cluster, manifest);
      const { metadata } = await cluster.get(KINDS.namespace, { name: 'kube-system' });
      const handle = await environment.client.workflow.start('keepBootstrapToken', {
        workflowId: KEEP_BOOTSTRAP_TOKEN_ID,
        taskQueue: CONTROL_TASK_QUEUE,
        args: [{ cluster: metadata.uid ?? '', lookEverySeconds: 1 }],
      });
      await until('it has looked twice', async () => (await handle.describe()).historyLength > 20);
      return [{ workflowId: KEEP_BOOTSTRAP_TOKEN_ID }];
    },
  },
];
