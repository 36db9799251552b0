import { beforeEach, describe, expect, it } from 'vitest';
import { assign } from '../../../activities/cluster/assign.js';
import { clearReboot } from '../../../activities/cluster/clear-reboot.js';
import type { NodeResource } from '../../../activities/cluster/control-dependencies.js';
import { TurnPlanner } from '../../../activities/cluster/plan-turn.js';
import { removeLeftTaints } from '../../../activities/cluster/waiting-taints.js';
import { KINDS, type KubernetesObject } from '../../../activities/kubernetes/client.js';
import { DRYDOCK_ANNOTATIONS } from '../../../machine-config/api/flavour.js';
import type { RolloutPolicy } from '../../../machine-config/api/rollout-policy.js';
import { CLUSTER, FakeControl, POOL } from './fake-control.js';

const [OLD, TARGET] = ['rendered-worker-1', 'rendered-worker-2'];
const CONTROL_PLANE = 'node-role.kubernetes.io/control-plane';

let control: FakeControl;
let planner: TurnPlanner;
let time: number;

function setUp(rollout: RolloutPolicy = {}): void {
  control = new FakeControl();
  time = Date.parse('2026-03-01T12:00:00Z');
  control.dependencies = { ...control.dependencies, now: () => time };
  control.addPool({ configuration: { name: TARGET }, rollout });
  planner = new TurnPlanner(control.dependencies);
}
beforeEach(() => setUp());

function addNode(name: string, current = OLD, more: Record<string, string> = {}): void {
  const { currentConfig, desiredConfig, state } = control.flavour.annotations;
  control.addNode(name, { [currentConfig]: current, [desiredConfig]: current, [state]: 'Done', ...more });
}
/** Updated by this rollout. */
function addUpdated(name: string): void {
  const lastUpdate = JSON.stringify({ target: TARGET, at: '2026-03-01T11:00:00Z', seconds: {} });
  addNode(name, TARGET, { [DRYDOCK_ANNOTATIONS.lastUpdate]: lastUpdate });
}
const uid = (name: string) => control.node(name).metadata.uid ?? '';
function turn(...running: string[]) {
  // What was asked is remembered for some seconds.
  time += 60_000;
  const inFlight = Object.fromEntries(running.map((name) => [name, uid(name)]));
  return planner.planTurn({ cluster: CLUSTER, pool: POOL, inFlight, resting: {}, now: time });
}
const started = async (...running: string[]) => (await turn(...running)).start.map(({ node }) => node);
const ask = (node: string) =>
  assign(control.dependencies, { cluster: CLUSTER, pool: POOL, node, nodeUid: uid(node), intent: 'start' });
const mayReboot = (node: string) =>
  clearReboot(control.dependencies, { cluster: CLUSTER, pool: POOL, node, nodeUid: uid(node), target: TARGET });
const change = (name: string, patch: object) => control.cluster.patch<NodeResource>(KINDS.node, { name }, patch);
const annotate = (name: string, annotations: object) => change(name, { metadata: { annotations } });

async function stop(reason: string | null): Promise<void> {
  const { machineConfiguration: kind } = control.flavour;
  if (control.cluster.peek(kind, 'cluster') === undefined) await control.setPolicies({});
  const annotations = { [DRYDOCK_ANNOTATIONS.stop]: reason };
  await control.cluster.patch(kind, { name: 'cluster' }, { metadata: { annotations } });
}

describe('the switch that stops everything', () => {
  it('lets nothing start, gives no slot and clears no reboot; and then it does', async () => {
    addNode('a');
    await stop('storage is on fire');
    const stopped = { sentence: expect.stringContaining('storage is on fire') as string };
    expect(await turn()).toMatchObject({ start: [], waiting: { code: 'Stopped', ...stopped } });
    expect(await ask('a')).toMatchObject({ outcome: 'refused', code: 'Stopped', ...stopped });
    expect(await mayReboot('a')).toMatchObject({ clear: false, ...stopped });
    await stop(null);
    expect(await started()).toEqual(['a']);
    expect(await ask('a')).toMatchObject({ outcome: 'granted', target: TARGET });
    expect(await mayReboot('a')).toEqual({ clear: true });
  });

  it('wakes those that wait before their reboot, once, when it is lifted', async () => {
    addNode('a');
    await ask('a');
    await annotate('a', { [DRYDOCK_ANNOTATIONS.applying]: TARGET });
    expect((await turn('a')).reconsider).toEqual([]);
    await stop('wait');
    expect((await turn('a')).reconsider).toEqual([]);
    await stop(null);
    expect((await turn('a')).reconsider).toEqual(['a']);
    expect((await turn('a')).reconsider).toEqual([]);
  });

  it('tells those that drain once, so that they give back what they have not begun', async () => {
    addNode('a');
    await ask('a');
    expect((await turn('a')).reconsider).toEqual([]);
    await stop('wait');
    expect((await turn('a')).reconsider).toEqual(['a']);
    expect((await turn('a')).reconsider).toEqual([]);
  });

  it('is on when nobody can tell: the turn fails and is taken again', async () => {
    addNode('a');
    control.cluster.failNext({ verb: 'get', kind: 'MachineConfiguration' });
    await expect(turn()).rejects.toThrow('injected fault');
    expect(await started()).toEqual(['a']);
  });
});

describe('gates', () => {
  const available = { name: 'shop-is-up', available: { selector: { matchLabels: { app: 'shop' } } } };
  const deploy = (availableReplicas: number) =>
    control.cluster.add(KINDS.deployment, {
      metadata: { name: 'cart', namespace: 'shop', labels: { app: 'shop' } },
      spec: { replicas: 2 },
      status: { availableReplicas, observedGeneration: 1 },
    } as KubernetesObject);

  it('between nodes keep the next one waiting, with the reason', async () => {
    setUp({ gates: { betweenNodes: [available] } });
    addNode('a');
    deploy(1);
    const waiting = await turn();
    expect(waiting).toMatchObject({ start: [], waiting: { code: 'GateClosed' } });
    expect(waiting.waiting?.sentence).toMatch(/Gate shop-is-up .*shop\/cart has 1 of 2 replicas available/);
    expect(waiting.waiting?.until).toBeGreaterThan(time);
    deploy(2);
    expect(await started()).toEqual(['a']);
  });

  it('are not asked while nothing could start', async () => {
    setUp({ gates: { betweenNodes: [available] } });
    addNode('a');
    await stop('wait');
    const asked: string[] = [];
    control.cluster.intercept(({ verb, resource }) => void asked.push(`${verb} ${resource.kind}`));
    await turn();
    expect(asked).not.toContain('list Deployment');
  });

  it('after a node keep its slot until they are passed, which is then said on the Node', async () => {
    setUp({ gates: { afterNode: [available] } });
    addUpdated('a');
    addNode('b');
    deploy(1);
    expect(await turn()).toMatchObject({ start: [], waiting: { code: 'GateClosed' } });
    expect(await ask('b')).toMatchObject({ outcome: 'refused', code: 'NoSlot' });
    deploy(2);
    expect(await started()).toEqual(['b']);
    expect(control.node('a').metadata.annotations).toMatchObject({ [DRYDOCK_ANNOTATIONS.gatesPassed]: TARGET });
    expect(await ask('b')).toMatchObject({ outcome: 'granted' });
  });
});

describe('the control plane', () => {
  const NAMES = ['cp-1', 'cp-2', 'cp-3'];
  const setPod = (node: string, component: string, ready = true) =>
    control.cluster.add(KINDS.pod, {
      metadata: { name: `${component}-${node}`, namespace: 'kube-system', labels: { component } },
      spec: { nodeName: node },
      status: { conditions: [{ type: 'Ready', status: ready ? 'True' : 'False' }] },
    } as KubernetesObject);
  async function addControlPlane(...names: string[]): Promise<void> {
    for (const name of names) {
      addNode(name);
      await change(name, { metadata: { labels: { [CONTROL_PLANE]: '' } } });
      setPod(name, 'kube-apiserver');
      setPod(name, 'etcd');
    }
  }

  it('of three goes one at a time, and only while the other two are well', async () => {
    await addControlPlane(...NAMES);
    await control.cluster.patch(control.flavour.machineConfigPool, { name: POOL }, { spec: { maxUnavailable: 3 } });
    expect(await started()).toEqual(['cp-1']);
    setPod('cp-3', 'etcd', false);
    const sentence = expect.stringContaining('the etcd of cp-3 is not Ready') as string;
    expect(await turn()).toMatchObject({
      start: [],
      waiting: { code: 'ControlPlane', sentence, until: time + 15_000 },
    });
    expect(await ask('cp-1')).toMatchObject({ outcome: 'refused', code: 'ControlPlane', sentence });
    expect(await mayReboot('cp-1')).toMatchObject({ clear: false, sentence });
    expect(await mayReboot('cp-3')).toEqual({ clear: true });
    setPod('cp-3', 'etcd');
    expect(await ask('cp-1')).toMatchObject({ outcome: 'granted' });
    expect(await mayReboot('cp-1')).toEqual({ clear: true });
  });

  it('is asked past the watches before a reboot', async () => {
    await addControlPlane(...NAMES);
    const seen = control.dependencies.nodes.list();
    const stale = { list: () => seen, get: (name: string) => seen.find(({ metadata }) => metadata.name === name) };
    const away = { status: { conditions: [{ type: 'Ready', status: 'Unknown' }] } };
    await control.cluster.patch(KINDS.node, { name: 'cp-2' }, away, 'status');
    const input = { cluster: CLUSTER, pool: POOL, node: 'cp-1', nodeUid: uid('cp-1'), target: TARGET };
    expect(await clearReboot({ ...control.dependencies, nodes: stale }, input)).toMatchObject({
      clear: false,
      sentence: expect.stringContaining('cp-2 is not ready') as string,
    });
  });

  it('whose etcd is not well waits, and wakes who waits for it', async () => {
    await addControlPlane(...NAMES);
    await ask('cp-1');
    await annotate('cp-1', { [DRYDOCK_ANNOTATIONS.applying]: TARGET });
    control.cluster.etcdIs = '[-]etcd failed: no leader';
    expect(await mayReboot('cp-1')).toMatchObject({ clear: false });
    expect((await turn('cp-1')).reconsider).toEqual([]);
    control.cluster.etcdIs = undefined;
    expect((await turn('cp-1')).reconsider).toEqual(['cp-1']);
    expect(await mayReboot('cp-1')).toEqual({ clear: true });
  });

  it('that cannot be asked waits, and the turn goes on', async () => {
    await addControlPlane(...NAMES);
    control.cluster.failNext({ verb: 'list', kind: 'Pod' });
    expect(await turn()).toMatchObject({
      start: [],
      waiting: { code: 'ControlPlane', sentence: expect.stringContaining('could not be asked') as string },
    });
  });

  it('of one has nobody to wait for', async () => {
    await addControlPlane('cp-1');
    setPod('cp-1', 'etcd', false);
    expect(await started()).toEqual(['cp-1']);
    expect(await ask('cp-1')).toMatchObject({ outcome: 'granted' });
    expect(await mayReboot('cp-1')).toEqual({ clear: true });
  });

  it('leaves the node of the control worker that decides for last', async () => {
    await addControlPlane(...NAMES);
    planner = new TurnPlanner({ ...control.dependencies, ownNode: 'cp-1' });
    expect(await started()).toEqual(['cp-2']);
  });
});

describe('the taint of nodes that wait', () => {
  const FOREIGN = { key: 'dedicated', value: 'shop', effect: 'NoSchedule' };
  const taintsOf = (name: string) => (control.node(name).spec?.taints ?? []).map(({ key }) => key);

  it('is put on beside other taints, and taken off again, in two writes a node', async () => {
    setUp();
    addUpdated('a');
    for (const name of ['b', 'c']) addNode(name);
    await change('c', { spec: { taints: [FOREIGN] } });
    const writes: string[] = [];
    control.cluster.observe<NodeResource>(KINDS.node, (_, { metadata }) => void writes.push(metadata.name));
    await turn('b');
    expect(taintsOf('c')).toEqual(['dedicated', 'UpdateInProgress']);
    await turn('b');
    const { currentConfig, desiredConfig } = control.flavour.annotations;
    await annotate('c', { [currentConfig]: TARGET, [desiredConfig]: TARGET });
    await turn('b');
    expect(control.node('c').spec?.taints).toEqual([FOREIGN]);
    expect(writes.filter((name) => name === 'c')).toHaveLength(3);
  });

  it('does not undo what somebody writes at the same time, and no failed write fails the turn', async () => {
    addUpdated('a');
    for (const name of ['b', 'c']) addNode(name);
    let raced = false;
    control.cluster.intercept(async ({ verb, name }) => {
      if (verb !== 'patch' || name !== 'c' || raced) return;
      raced = true;
      await change('c', { spec: { taints: [FOREIGN] } });
    });
    await turn('b');
    expect(taintsOf('c')).toEqual(['dedicated']);
    await turn('b');
    expect(taintsOf('c')).toEqual(['dedicated', 'UpdateInProgress']);
  });

  it('changes at most fifty nodes a turn', async () => {
    addUpdated('a');
    const names = Array.from({ length: 70 }, (_, index) => `n${index}`);
    for (const name of ['b', ...names]) addNode(name);
    await turn('b');
    expect(names.filter((name) => taintsOf(name).length > 0)).toHaveLength(50);
    await turn('b');
    expect(names.filter((name) => taintsOf(name).length > 0)).toHaveLength(70);
  });

  it('is taken off a node that has left its pool, by the next turn or by itself', async () => {
    addUpdated('a');
    for (const name of ['b', 'c', 'd']) addNode(name);
    await turn('b');
    for (const name of ['c', 'd']) await change(name, { metadata: { labels: { role: 'none' } } });
    await turn('b');
    expect([...taintsOf('c'), ...taintsOf('d')]).toEqual([]);
    await change('c', { spec: { taints: [{ key: 'UpdateInProgress', effect: 'PreferNoSchedule' }] } });
    await removeLeftTaints(control.dependencies);
    expect(taintsOf('c')).toEqual([]);
  });
});
