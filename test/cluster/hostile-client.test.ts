import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { KINDS } from '../../activities/kubernetes/client.js';
import { CONTROL_TASK_QUEUE, nodeTaskQueue, rollOutPoolId, updateNodeId } from '../../workflows/contract/ids.js';
import { DEFAULT_TUNING } from '../../workflows/contract/inputs.js';
import type { HostileAnswer } from '../support/hostile-workflows.js';
import { FILE, flavour, FleetLab, POOL } from '../support/fleet-lab.js';
import { HostileClient, NODE_STEPS } from '../support/hostile-client.js';

const NODES = ['worker-1', 'worker-2', 'worker-3'] as const;
const [OLDEST, SECOND, THIRD] = NODES;
const NEVER_RENDERED = 'rendered-worker-00000000000000000000000000000000';
const KEPT_POD = 'cart';
const FREE_POD = 'web';
/** Above the time after which a drain hears of its cancellation. */
const NUDGE_EVERY_MS = 7_000;

const codes = (answers: readonly HostileAnswer[]) =>
  new Set(answers.flatMap((answer) => (answer.kind === 'refused' ? [answer.code] : [])));
const doneOf = (answers: readonly HostileAnswer[]) => answers.filter(({ kind }) => kind === 'done');

/*
 * Whoever has a credential for Temporal may start, signal, cancel, terminate and answer everything in it. In Kubernetes
 * it may do nothing, and only what Kubernetes granted happens to a node. These tests run in this order, on one lab.
 */
describe('a hostile client of Temporal', { timeout: 400_000 }, () => {
  let lab: FleetLab;
  let hostile: HostileClient;
  /** uid of the namespace kube-system, which every history tells. */
  let cluster: string;
  beforeAll(async () => {
    lab = await FleetLab.start(NODES);
    hostile = await HostileClient.connect(lab.lab.temporal);
    cluster = (await lab.admin.get(KINDS.namespace, { name: 'kube-system' })).metadata.uid ?? '';
  });
  afterAll(async () => {
    await hostile.close();
    await lab.stop();
  });

  /** All of a node that a hostile client must not change. */
  async function nodeAsItIs(node: string) {
    const { current, desired, state, unschedulable, cordonedFor, applying, failure } = await lab.facts(node);
    const disk = await lab.onDisk(node);
    return { node, current, desired, state, unschedulable, cordonedFor, applying, failure, disk };
  }
  async function clusterAsItIs() {
    return { nodes: await Promise.all(NODES.map(nodeAsItIs)), pods: await lab.pods(), boots: await lab.boots() };
  }
  async function stepOf(node: string, target: string) {
    const { uid: nodeUid } = await lab.facts(node);
    return { cluster, pool: POOL, node, nodeUid, target, sliceSeconds: 1 };
  }
  const updateInput = async (node: string, target: string) => ({
    ...(await stepOf(node, target)),
    current: target,
    tuning: { ...DEFAULT_TUNING.node, workerPresentSeconds: 5, rebootLimitSeconds: 5, cleanUpSeconds: 5 },
  });
  /** With what codes the node's own worker refuses the steps towards the target. */
  async function refusalsOf(node: string, target: string): Promise<Set<string>> {
    const input = await stepOf(node, target);
    const answers: HostileAnswer[] = [];
    for (const step of NODE_STEPS) answers.push(await hostile.askNode(node, step, input));
    return codes(answers);
  }
  /** Starts a workflow of the product under an id of the hostile client's choice, and does not wait for it. */
  const start = (workflow: string, workflowId: string, input: object) =>
    hostile.temporal.workflow.start(workflow, {
      workflowId,
      taskQueue: CONTROL_TASK_QUEUE,
      args: [input],
      workflowExecutionTimeout: '1m',
    });

  it('moves no node that was granted nothing, whatever it has the node’s own worker asked', async () => {
    await lab.addPod(KEPT_POD, OLDEST, true);
    await lab.addPod(FREE_POD, OLDEST, false);
    const before = await clusterAsItIs();
    const current = await lab.target();
    const good = await stepOf(OLDEST, current);
    const inputs = [
      good,
      { ...good, target: NEVER_RENDERED },
      { ...good, target: 'drydock-empty' },
      { ...good, target: '../../etc/passwd' },
      { ...good, target: 'x'.repeat(100_000) },
      { ...good, target: null },
      { ...good, nodeUid: 'another' },
      { ...good, node: SECOND, nodeUid: (await lab.facts(SECOND)).uid },
      { ...good, cluster: 'another' },
      {},
      null,
    ];
    for (const step of NODE_STEPS) {
      // One after the other: the host does one thing at a time, and says so to whoever comes in between.
      const answers: HostileAnswer[] = [];
      for (const input of inputs) answers.push(await hostile.askNode(OLDEST, step, input));
      // Where nothing is left to do, an answer is no deed: the node runs `current`, and is not cordoned.
      const harmless = step === 'release' ? 6 : step === 'confirm' || step === 'uncordon' ? 1 : 0;
      expect(doneOf(answers), step).toHaveLength(harmless);
      const expected = ['WrongCluster', 'WrongNode', ...(step === 'release' ? [] : ['NotGranted'])];
      expect([...codes(answers)], step).toEqual(expect.arrayContaining(expected));
    }
    expect(await clusterAsItIs()).toEqual(before);
  });

  it('gets no grant that the pool does not allow, whatever it has the control worker asked and whatever it starts', async () => {
    await lab.changePool({ paused: true });
    const target = await lab.revise('second');
    const before = await clusterAsItIs();
    const { uid: nodeUid } = await lab.facts(OLDEST);
    const slot = { cluster, pool: POOL, node: OLDEST, nodeUid };
    const asked = ['start', 'continue', 'withdraw'].flatMap((intent) => [
      { ...slot, intent },
      { ...slot, intent, pool: 'another' },
      { ...slot, intent, pool: '..' },
      { ...slot, intent, node: '', nodeUid: '' },
      { ...slot, intent, node: '..', nodeUid: '' },
      { ...slot, intent, nodeUid: 'another' },
      { ...slot, intent, cluster: 'another' },
    ]);
    const grants = await Promise.all(asked.map((input) => hostile.ask(CONTROL_TASK_QUEUE, 'assign', input)));
    for (const { result } of doneOf(grants) as { result: { outcome: string } }[]) {
      // To withdraw what was not granted leaves the node where it is.
      expect(['refused', 'unneeded']).toContain(result.outcome);
    }
    for (const activity of ['renderPool', 'syncPool', 'planTurn', 'checkChildren']) {
      for (const pool of [POOL, '', '..', '../nodes/worker-1', null]) {
        const more = { inFlight: {}, resting: {}, now: 0, children: {} };
        await hostile.ask(CONTROL_TASK_QUEUE, activity, { cluster, pool, ...more });
      }
    }
    const input = await updateInput(OLDEST, target);
    await start('updateNode', updateNodeId(OLDEST), input);
    await start('updateNode', 'node/of-the-hostile-1', input);
    await start('updateNode', 'node/of-the-hostile-2', { ...input, target: NEVER_RENDERED });
    await start('updateNode', 'node/of-the-hostile-3', { ...input, pool: 'another' });
    const inFlight = Object.fromEntries(NODES.map((node) => [node, { runId: 'none', nodeUid: 'none' }]));
    const rollout = { cluster, pool: POOL, tuning: DEFAULT_TUNING };
    await start('rollOutPool', 'rollout/of-the-hostile-1', rollout);
    await start('rollOutPool', 'rollout/of-the-hostile-2', { ...rollout, inFlight });
    for (const workflowId of [updateNodeId(OLDEST), 'node/of-the-hostile-1', 'node/of-the-hostile-3']) {
      expect(await hostile.temporal.workflow.getHandle(workflowId).result()).toMatchObject({ outcome: 'superseded' });
    }
    expect(await refusalsOf(OLDEST, target)).toEqual(new Set(['NotGranted']));
    expect(await clusterAsItIs()).toEqual(before);
    expect(lab.observer.violations).toEqual([]);
  });

  it('gets no second slot while one node drains, nor that node rebooted from under a pod that its budget keeps', async () => {
    const target = await lab.target();
    const boots = await lab.boots();
    await lab.changePool({ paused: false });
    await lab.until('the oldest to drain', async () => (await lab.facts(OLDEST)).unschedulable);
    for (const node of [SECOND, THIRD]) {
      const { uid: nodeUid } = await lab.facts(node);
      const slot = { cluster, pool: POOL, node, nodeUid };
      for (const intent of ['start', 'continue']) {
        const answer = await hostile.ask(CONTROL_TASK_QUEUE, 'assign', { ...slot, intent });
        expect(answer).toMatchObject({ kind: 'done', result: { outcome: 'refused', code: 'NoSlot' } });
      }
      expect(await refusalsOf(node, target)).toEqual(new Set(['NotGranted']));
    }
    const update = hostile.temporal.workflow.getHandle(updateNodeId(OLDEST));
    const { runId } = await update.describe();
    await hostile.temporal.workflow
      .getHandle(rollOutPoolId(POOL))
      .signal('settled', { node: OLDEST, runId, outcome: 'updated' });
    const step = await stepOf(OLDEST, target);
    expect(await hostile.askNode(OLDEST, 'apply', step)).toMatchObject({ kind: 'refused', code: 'NotDrained' });
    for (const name of ['reboot', 'confirm', 'uncordon']) {
      expect(await hostile.askNode(OLDEST, name, step)).toMatchObject({ kind: 'refused', code: 'NotGranted' });
    }
    // The drain never says that it is done. The hostile client says so in its place, and the update believes it.
    await hostile.answerOn(nodeTaskQueue(OLDEST), {
      drain: () => ({ drained: true, evicted: 1, remaining: 0, blockers: [] }),
    });
    let nudgedAt = 0;
    await lab.until('the update to go on, and the node to refuse that', async () => {
      // A slice of the drain that the node's own worker has begun is cut short: the next one may be answered by us.
      if (Date.now() - nudgedAt > NUDGE_EVERY_MS) {
        nudgedAt = Date.now();
        await update.signal('reconsider');
      }
      const { events } = await update.fetchHistory();
      const failures = (events ?? []).map(({ activityTaskFailedEventAttributes: failed }) => failed?.failure);
      return failures.filter((failure) => failure?.applicationFailureInfo?.type === 'NotDrained').length >= 2;
    });
    expect(await lab.pods()).toContain(KEPT_POD);
    expect(await lab.boots()).toEqual(boots);
    expect(await lab.onDisk(OLDEST)).toBe('first');
    expect(lab.observer).toMatchObject({ violations: [], mostTaken: 1 });

    await hostile.withdraw();
    await lab.removePod(KEPT_POD);
    await lab.untilUpdated('second');
    expect(await lab.boots()).toEqual(Object.fromEntries(NODES.map((node) => [node, (boots[node] ?? 0) + 1])));
    expect(lab.observer).toMatchObject({ violations: [], mostTaken: 1 });
  });

  it('makes no pool Updated and no node Done by answering in their place, and all is well once it is gone', async () => {
    let lies = 0;
    const lie = (answer: unknown) => () => {
      lies += 1;
      return answer;
    };
    const target = NEVER_RENDERED;
    const facts = await Promise.all(NODES.map((node) => lab.facts(node)));
    const everybody = facts.map(({ name, uid }) => ({ node: name, nodeUid: uid, target, current: 'drydock-empty' }));
    const counts = { machines: 3, updated: 3, ready: 3, unavailable: 0, degraded: 0, unmanaged: 0 };
    const turn = { cancel: [], reconsider: [], waiting: null, done: false, counts, target, maxUnavailable: 9 };
    await hostile.answerOn(CONTROL_TASK_QUEUE, {
      assign: lie({ outcome: 'granted', target, current: 'drydock-empty' }),
      planTurn: lie({ ...turn, start: everybody }),
      checkChildren: lie({ closed: [...NODES] }),
      syncPool: lie({ exists: true, needsRollout: true, target }),
    });
    for (const node of NODES) {
      await hostile.answerOn(nodeTaskQueue(node), {
        prepare: lie({ from: target, target, disruption: 'none', changes: {}, pods: 0, summary: '' }),
        cordon: lie({ ours: true }),
        drain: lie({ drained: true, evicted: 0, remaining: 0, blockers: [] }),
        apply: lie({ reboot: false, bootId: 'none', filesWritten: 0, unitsChanged: 0 }),
        reboot: lie({ requested: true, oldBootId: 'none' }),
        confirm: lie({ bootId: 'none', rebooted: true }),
        uncordon: lie({ uncordoned: true }),
        release: lie({ uncordoned: true }),
      });
    }
    await lab.revise('third');
    await lab.until('plenty of lies to be told', () => Promise.resolve(lies >= 40));
    for (const handle of await hostile.running()) await handle.terminate('a hostile client may').catch(() => undefined);
    await lab.revise('fourth');
    await lab.until('more of them', () => Promise.resolve(lies >= 80));
    expect(lab.observer).toMatchObject({ violations: [], mostTaken: 1 });

    await hostile.withdraw();
    await lab.revise('fifth');
    await lab.untilUpdated('fifth');
    expect(lab.observer).toMatchObject({ violations: [], mostTaken: 1 });
  });

  it('gets nothing more done by running workflows of its own in the place of the product’s', async () => {
    await hostile.takeWorkflowTasksOf(CONTROL_TASK_QUEUE);
    const target = await lab.revise('sixth');
    for (const node of NODES) await start('updateNode', `node/of-the-hostile/${node}`, await updateInput(node, target));
    await lab.until('all of them to end', async () => {
      const running = await hostile.running();
      return !running.some(({ workflowId }) => workflowId.startsWith('node/of-the-hostile/'));
    });
    expect(lab.observer).toMatchObject({ violations: [], mostTaken: 1 });

    await hostile.withdraw();
    // What two kinds of workflows have written in turn cannot be replayed by either: an administrator ends it.
    for (const handle of await hostile.running()) await handle.terminate('cleaned up').catch(() => undefined);
    await lab.revise('seventh');
    await lab.untilUpdated('seventh');
    expect(lab.observer).toMatchObject({ violations: [], mostTaken: 1 });
  });

  it('has no node cordoned or drained whose update costs neither, although the node is granted it', async () => {
    const boots = await lab.boots();
    const nodeDisruptionPolicy = { files: [{ path: `/${FILE}`, actions: [{ type: 'None' }] }] };
    await lab.admin.patch(flavour.machineConfiguration, { name: 'cluster' }, { spec: { nodeDisruptionPolicy } });
    // A gate keeps the rollout from starting, and nobody else: so the node is granted its update, and nothing runs it.
    const never = { name: 'never', available: { selector: { matchLabels: { app: 'none' } }, namespace: 'default' } };
    await lab.changePool({ rollout: { gates: { betweenNodes: [never] } } });
    const target = await lab.revise('eighth');
    await lab.addPod(FREE_POD, OLDEST, false);
    const step = await stepOf(OLDEST, target);
    const granted = await hostile.ask(CONTROL_TASK_QUEUE, 'assign', { ...step, intent: 'start' });
    expect(granted).toMatchObject({ kind: 'done', result: { outcome: 'granted', target } });
    for (const name of ['cordon', 'drain', 'cordon', 'drain']) {
      expect(await hostile.askNode(OLDEST, name, step), name).toMatchObject({ kind: 'refused', code: 'NotGranted' });
    }
    expect(await lab.facts(OLDEST)).toMatchObject({ unschedulable: false, desired: target });
    expect(await lab.pods()).toContain(FREE_POD);

    await lab.changePool({ rollout: null });
    await lab.untilUpdated('eighth');
    expect(await lab.boots()).toEqual(boots);
    expect(await lab.pods()).toContain(FREE_POD);
    expect(lab.observer).toMatchObject({ violations: [], mostTaken: 1 });
  });
});
