import { describe, expect, it, vi } from 'vitest';
import { MachineConfigNodes } from '../../../activities/cluster/machine-config-nodes.js';
import type { MachineConfigNodeResource } from '../../../activities/cluster/machine-config-node-write.js';
import type { NodeResource } from '../../../activities/cluster/control-dependencies.js';
import { memberFacts } from '../../../activities/cluster/pool-view.js';
import { KINDS } from '../../../activities/kubernetes/client.js';
import { DRYDOCK_ANNOTATIONS } from '../../../machine-config/api/flavour.js';
import { Gate } from '../../support/gate.js';
import { FakeControl, POOL } from './fake-control.js';
import { PATIENCE } from '../../support/patience.js';

const [OLD, NEW] = ['rendered-worker-old', 'rendered-worker-new'] as const;

function setUp(...names: string[]) {
  const control = new FakeControl();
  const { cluster, flavour, dependencies } = control;
  const kind = flavour.machineConfigNode;
  const { currentConfig, desiredConfig, state } = flavour.annotations;
  control.addPool();
  for (const name of names) {
    control.addNode(name, { [currentConfig]: OLD, [desiredConfig]: OLD, [state]: 'Done' });
  }
  const calls: string[] = [];
  cluster.intercept(({ verb, resource, subresource }) => {
    if (resource.plural === kind.plural) calls.push(subresource === undefined ? verb : `${verb} ${subresource}`);
  });
  const onError = vi.fn();
  let later = 0;
  const open = () =>
    new MachineConfigNodes({
      client: cluster,
      flavour,
      nodes: dependencies.nodes,
      pools: dependencies.pools,
      now: () => dependencies.now() + later,
      onError,
    });
  const first = open();
  return {
    control,
    cluster,
    kind,
    calls,
    onError,
    open,
    pass: (minutes: number) => (later += minutes * 60_000),
    async look(by: MachineConfigNodes = first, pool = POOL) {
      by.look(pool, memberFacts(pool, dependencies.nodes.list(), dependencies.pools.list(), flavour));
      await by.flushed();
    },
    /** Looks, and returns the calls that this took. */
    async callsOf(by: MachineConfigNodes = first) {
      calls.length = 0;
      await this.look(by);
      return [...calls];
    },
    object: (name: string) => cluster.peek<MachineConfigNodeResource>(kind, name),
    condition(name: string, type: string) {
      return this.object(name)?.status?.conditions?.find((one) => one.type === type)?.status;
    },
    async say(name: string, annotations: Record<string, string | null>, more: object = {}) {
      await cluster.patch<NodeResource>(KINDS.node, { name }, { metadata: { annotations }, ...more });
    },
    keys: { currentConfig, desiredConfig, state },
  };
}

describe('the MachineConfigNodes of a pool', () => {
  it('are made one for each member, owned by its Node, and not written again while nothing changes', async () => {
    const test = setUp('n1', 'n2');
    await test.look();
    expect(test.object('n1')).toMatchObject({
      metadata: {
        ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name: 'n1', uid: test.control.node('n1').metadata.uid }],
      },
      spec: { node: { name: 'n1' }, pool: { name: POOL }, configVersion: { desired: OLD } },
      status: { observedGeneration: 1, configVersion: { current: OLD, desired: OLD } },
    });
    expect(test.condition('n2', 'Updated')).toBe('True');
    expect(await test.callsOf()).toEqual([]);
    expect(await test.callsOf(test.open())).toEqual(['list']);
  });

  it('cost six calls for an update, whoever made them before', async () => {
    const test = setUp('n1');
    await test.look();
    const worker = test.open();
    await test.look(worker);
    const calls: string[] = [];
    const { keys } = test;
    const steps: [Record<string, string | null>, object?][] = [
      [{ [keys.desiredConfig]: NEW }],
      [{ [keys.state]: 'Working' }],
      [{ [DRYDOCK_ANNOTATIONS.cordonedFor]: NEW }, { spec: { unschedulable: true } }],
      [{ [DRYDOCK_ANNOTATIONS.drainBlocked]: '{"sentence":"PDB shop/cart","pods":[],"budgets":[]}' }],
      [{ [DRYDOCK_ANNOTATIONS.applying]: NEW }],
    ];
    for (const [annotations, more] of steps) {
      await test.say('n1', annotations, more);
      calls.push(...(await test.callsOf(worker)));
    }
    const status = { conditions: [{ type: 'Ready', status: 'True' }], nodeInfo: { bootID: 'boot-2' } };
    await test.cluster.patch(KINDS.node, { name: 'n1' }, { status }, 'status');
    calls.push(...(await test.callsOf(worker)));
    expect(test.condition('n1', 'RebootedNode')).toBe('True');
    const done = { [keys.currentConfig]: NEW, [keys.state]: 'Done' };
    await test.say(
      'n1',
      { ...done, [DRYDOCK_ANNOTATIONS.applying]: null, [DRYDOCK_ANNOTATIONS.cordonedFor]: null },
      { spec: { unschedulable: null } },
    );
    calls.push(...(await test.callsOf(worker)));
    expect(calls).toEqual(['patch', ...Array<string>(5).fill('update status')]);
    expect(test.object('n1')).toMatchObject({
      spec: { configVersion: { desired: NEW } },
      status: { observedGeneration: 2, configVersion: { current: NEW, desired: NEW } },
    });
    expect(test.condition('n1', 'Updated')).toBe('True');
  });

  it('do not follow what a kubelet reports every few seconds', async () => {
    const test = setUp('n1');
    await test.look();
    await test.cluster.patch(
      KINDS.node,
      { name: 'n1' },
      { status: { conditions: [{ type: 'Ready', status: 'Unknown' }] } },
      'status',
    );
    expect(await test.callsOf()).toEqual([]);
  });

  it('end as they should with two control workers that write at once', async () => {
    const test = setUp('n1');
    await test.look();
    const other = test.open();
    await test.look(other);
    await test.say('n1', { [test.keys.desiredConfig]: NEW });
    await Promise.all([test.look(), test.look(other)]);
    await test.say('n1', { [DRYDOCK_ANNOTATIONS.cordonedFor]: NEW });
    await Promise.all([test.look(other), test.look()]);
    await test.say('n1', { [DRYDOCK_ANNOTATIONS.applying]: NEW });
    await Promise.all([test.look(), test.look(other)]);
    expect(test.condition('n1', 'Drained')).toBe('True');
    expect(test.onError).not.toHaveBeenCalled();
    expect(await test.callsOf(other)).toEqual([]);
  });

  it('show what changed while an object was being written', async () => {
    const test = setUp('n1');
    const gate = new Gate();
    const stop = test.cluster.intercept(({ verb }) => (verb === 'create' ? gate.wait() : undefined));
    const looking = test.look();
    await gate.reached;
    await test.say('n1', { [test.keys.state]: 'Degraded', [test.control.flavour.annotations.reason]: 'disk full' });
    const again = test.look();
    gate.open();
    stop();
    await Promise.all([looking, again]);
    expect(test.condition('n1', 'NodeDegraded')).toBe('True');
    expect(test.onError).not.toHaveBeenCalled();
  });

  it('are never written twice at once', async () => {
    const test = setUp('n1', 'n2');
    const gates = { n1: new Gate(), n2: new Gate() };
    const creates: string[] = [];
    test.cluster.intercept(({ verb, name, resource }) => {
      if (verb !== 'create' || resource.plural !== test.kind.plural) return;
      creates.push(name ?? '');
      return gates[name as 'n1' | 'n2'].wait();
    });
    const looking = test.look();
    await Promise.all([gates.n1.reached, gates.n2.reached]);
    await test.say('n1', { [test.keys.desiredConfig]: NEW });
    const again = test.look();
    gates.n2.open();
    // Its writer has nothing to do then but the node that another writer is at.
    await vi.waitFor(() => expect(test.condition('n2', 'Updated')).toBe('True'), PATIENCE);
    await new Promise(setImmediate);
    expect(creates.sort()).toEqual(['n1', 'n2']);
    gates.n1.open();
    await Promise.all([looking, again]);
    expect(test.object('n1')?.spec.configVersion.desired).toBe(NEW);
  });

  it('name no pool for a node that has left all pools, and are made anew for another machine of the name', async () => {
    const test = setUp('n1');
    await test.look();
    await test.cluster.patch(KINDS.node, { name: 'n1' }, { metadata: { labels: { role: null } } });
    await test.look();
    expect(test.object('n1')?.spec.pool.name).toBe('not-yet-set');
    const { uid } = test.object('n1')!.metadata;
    await test.cluster.delete(KINDS.node, { name: 'n1' });
    test.control.addNode('n1');
    await test.look();
    expect(test.object('n1')).toMatchObject({
      metadata: { ownerReferences: [{ uid: test.control.node('n1').metadata.uid }] },
      spec: { pool: { name: POOL }, configVersion: { desired: 'not-yet-set' } },
    });
    expect(test.object('n1')?.metadata.uid).not.toBe(uid);
  });

  it('are made good within ten minutes when somebody deletes one', async () => {
    const test = setUp('n1', 'n2');
    await test.look();
    await test.cluster.delete(test.kind, { name: 'n1' });
    await test.look();
    expect(test.object('n1')).toBeUndefined();
    test.pass(10);
    await test.look();
    expect(test.object('n1')).toBeDefined();
  });

  it('are tried again at the next look after a failure, which is told', async () => {
    const test = setUp('n1');
    test.cluster.failNext({ verb: 'create', kind: 'MachineConfigNode' });
    await test.look();
    expect(test.onError).toHaveBeenCalledTimes(1);
    expect(test.object('n1')).toBeUndefined();
    await test.look();
    expect(test.condition('n1', 'Updated')).toBe('True');
    test.cluster.failNext({ verb: 'list', kind: 'MachineConfigNode' });
    const other = test.open();
    await test.look(other);
    expect(test.onError).toHaveBeenCalledTimes(2);
    expect(await test.callsOf(other)).toEqual(['list']);
  });

  it.each([
    { code: 'NotFound', minutes: 10 },
    // As an API server answers that has just started.
    { code: 'Forbidden', minutes: 0.5 },
  ] as const)(
    'are left alone where the kind answers $code, and asked for again after $minutes minutes',
    async ({ code, minutes }) => {
      const test = setUp('n1');
      test.cluster.failNext({ verb: 'list', kind: 'MachineConfigNode' }, { code });
      expect(await test.callsOf()).toEqual(['list']);
      expect(await test.callsOf()).toEqual([]);
      expect(test.onError).toHaveBeenCalledTimes(code === 'Forbidden' ? 1 : 0);
      test.pass(minutes - 0.1);
      expect(await test.callsOf()).toEqual([]);
      test.pass(0.1);
      await test.look();
      expect(test.condition('n1', 'Updated')).toBe('True');
    },
  );
});
