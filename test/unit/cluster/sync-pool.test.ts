import { describe, expect, it } from 'vitest';
import { PoolEvents } from '../../../activities/cluster/pool-events.js';
import { renderPool } from '../../../activities/cluster/render-pool.js';
import { syncPool } from '../../../activities/cluster/sync-pool.js';
import type { NodeResource, PoolResource } from '../../../activities/cluster/control-dependencies.js';
import { KINDS, type KubernetesObject } from '../../../activities/kubernetes/client.js';
import { DRYDOCK_ANNOTATIONS } from '../../../machine-config/api/flavour.js';
import type { MachineConfigPoolSpec, PoolConditionType } from '../../../machine-config/api/machine-config-pool.js';
import type { SyncPoolInput } from '../../../workflows/contract/activities.js';
import { CLUSTER, FakeControl, POOL } from './fake-control.js';

const [OLD, NEW] = ['rendered-worker-old', 'rendered-worker-new'] as const;

type EventObject = KubernetesObject & {
  type: string;
  reason: string;
  message: string;
  count: number;
  involvedObject: { apiVersion: string; kind: string; name: string; uid: string };
};

function setUp(spec: Partial<MachineConfigPoolSpec> = {}) {
  const control = new FakeControl();
  const { cluster, flavour } = control;
  const { currentConfig, desiredConfig, state, reason } = flavour.annotations;
  let now = Date.parse('2026-03-01T12:00:00Z');
  const openEvents = (instance: string) => new PoolEvents({ client: cluster, flavour, instance, now: () => now });
  const workers = ['control-1', 'control-2'].map((instance) => {
    const events = openEvents(instance);
    return { events, dependencies: { ...control.dependencies, now: () => now, events } };
  });
  control.addPool({ configuration: { name: NEW }, ...spec });
  let statusWrites = 0;
  cluster.intercept(({ verb, resource, subresource }) => {
    if (verb === 'update' && resource.kind === 'MachineConfigPool' && subresource === 'status') statusWrites += 1;
  });
  return {
    control,
    cluster,
    workers,
    pass: (seconds: number) => (now += seconds * 1_000),
    now: () => new Date(now).toISOString(),
    statusWrites: () => statusWrites,
    addNodes(...names: string[]) {
      for (const name of names) control.addNode(name, { [currentConfig]: OLD, [desiredConfig]: OLD, [state]: 'Done' });
    },
    say: (name: string, annotations: Record<string, string | null>) =>
      cluster.patch<NodeResource>(KINDS.node, { name }, { metadata: { annotations } }),
    updated(name: string, config: string = NEW) {
      return this.say(name, { [currentConfig]: config, [desiredConfig]: config, [state]: 'Done', [reason]: null });
    },
    failed(name: string, at: string) {
      const failure = JSON.stringify({ target: NEW, attempts: 3, at, code: 'ApplyFailed' });
      const annotations = { [desiredConfig]: NEW, [state]: 'Degraded', [reason]: 'disk full' };
      return this.say(name, { ...annotations, [DRYDOCK_ANNOTATIONS.failure]: failure });
    },
    annotate: (annotations: Record<string, string | null>) =>
      cluster.patch<PoolResource>(flavour.machineConfigPool, { name: POOL }, { metadata: { annotations } }),
    async sync(input: Omit<SyncPoolInput, 'cluster' | 'pool'> = {}, worker = 0) {
      await syncPool(workers[worker]!.dependencies, { cluster: CLUSTER, pool: POOL, ...input });
    },
    async events() {
      for (const { events } of workers) await events.flushed();
      return cluster.list<EventObject>(KINDS.event, { namespace: 'default' });
    },
    async reasons() {
      return (await this.events()).map((event) => event.reason).sort();
    },
    condition: (type: PoolConditionType) => control.pool().status?.conditions?.find((each) => each.type === type),
    rollouts: () => control.pool().status?.rollouts ?? [],
  };
}

describe('syncPool', () => {
  it('writes what the turn waits for, and nothing when nothing has changed', async () => {
    const test = setUp();
    test.addNodes('n1');
    const waiting = { code: 'WindowClosed', sentence: 'The next window begins at 22:00' } as const;
    await test.sync({ waiting });
    expect(test.condition('Waiting')).toMatchObject({ status: 'True', reason: 'WindowClosed' });
    test.pass(60);
    await test.sync({ waiting });
    await test.sync();
    expect(test.statusWrites()).toBe(1);
    await test.sync({ waiting: null });
    expect(test.condition('Waiting')).toMatchObject({
      status: 'False',
      lastTransitionTime: '2026-03-01T12:01:00.000Z',
    });
  });

  it('reads the pool after a turn only where somebody else has written it meanwhile', async () => {
    const test = setUp();
    test.addNodes('n1');
    const calls: string[] = [];
    let raced = true;
    test.cluster.intercept(async ({ verb, resource }) => {
      if (resource.kind !== 'MachineConfigPool') return;
      calls.push(verb);
      if (verb !== 'update' || raced) return;
      raced = true;
      await test.annotate({ note: 'written meanwhile' });
    });
    await test.sync({ waiting: null });
    expect(calls).toEqual(['update']);
    calls.length = 0;
    raced = false;
    await test.sync({ waiting: { code: 'WindowClosed', sentence: 'The next window begins at 22:00' } });
    expect(calls).toEqual(['update', 'patch', 'get', 'update']);
    expect(test.condition('Waiting')).toMatchObject({ status: 'True' });
  });

  it('remembers the rollout, tells its begin and its end at the pool, by whichever worker wrote it', async () => {
    const test = setUp();
    test.addNodes('n1', 'n2');
    await test.sync();
    await test.updated('n1');
    await test.sync({}, 1);
    test.pass(720);
    await test.updated('n2');
    await Promise.all([test.sync(), test.sync({}, 1).catch(() => undefined)]);
    await test.sync({}, 1);
    expect(test.rollouts()).toMatchObject([{ target: NEW, outcome: 'Completed', updated: 2 }]);
    expect(await test.reasons()).toEqual(['Completed', 'RolloutStarted']);
    const [event] = await test.events();
    expect(event?.involvedObject).toEqual({
      apiVersion: 'machineconfiguration.openshift.io/v1',
      kind: 'MachineConfigPool',
      name: POOL,
      uid: test.control.pool().metadata.uid,
    });
  });

  it('tells of a new rendered config, once', async () => {
    const test = setUp();
    test.control.addConfig('50-worker', {});
    const { dependencies } = test.workers[0]!;
    await renderPool(dependencies, { cluster: CLUSTER, pool: POOL });
    await renderPool(dependencies, { cluster: CLUSTER, pool: POOL });
    const generated = (await test.events()).filter(({ reason }) => reason === 'RenderedConfigGenerated');
    expect(generated).toMatchObject([
      { count: 1, message: expect.stringMatching(/^rendered-worker-.* from 1 MachineConfig$/) as string },
    ]);
  });

  it('keeps an hour in which fifty nodes wait to a handful of Events and status writes', async () => {
    const test = setUp();
    test.addNodes(...Array.from({ length: 50 }, (_, index) => `n${index}`));
    const waiting = { code: 'ApprovalMissing', sentence: 'Stage rest waits for an approval' } as const;
    for (let turn = 0; turn < 360; turn++) {
      await test.sync({ waiting }, turn % 2);
      test.pass(10);
    }
    const events = await test.events();
    expect(events.map(({ reason }) => reason).sort()).toEqual(['RolloutStarted', 'Waiting', 'Waiting']);
    expect(events.every(({ count }) => count === 1)).toBe(true);
    expect(test.statusWrites()).toBe(1);
  });

  it('tells a standstill when it has lasted a minute and again when it is for something else, not with every node', async () => {
    const test = setUp();
    test.addNodes('n1', 'n2');
    const turns = async (waiting: SyncPoolInput['waiting'], seconds: number) => {
      for (let passed = 0; passed < seconds; passed += 10) {
        await test.sync({ waiting: waiting ?? null });
        test.pass(10);
      }
    };
    const slots = { code: 'SlotsTaken', sentence: 'one of one slots is taken' } as const;
    await turns(slots, 60);
    expect(await test.reasons()).toEqual(['RolloutStarted']);
    for (let node = 0; node < 5; node++) {
      await turns(slots, 100);
      await turns(null, 20);
    }
    expect(await test.reasons()).toEqual(['RolloutStarted', 'Waiting']);
    await turns({ code: 'WindowClosed', sentence: 'tomorrow' }, 90);
    const waits = (await test.events()).filter(({ reason }) => reason === 'Waiting').map(({ message }) => message);
    expect(waits.sort()).toEqual(['one of one slots is taken', 'tomorrow']);
  });

  it('goes back from a config that failed where the pool asks for it, and forgets that with the next config', async () => {
    const test = setUp({ maxUnavailable: 1, rollout: { onFailure: 'Rollback' } });
    test.addNodes('n1', 'n2');
    const kind = test.control.flavour.machineConfigPool;
    await test.cluster.patch(kind, { name: POOL }, { status: { configuration: { name: OLD } } }, 'status');
    await test.sync();
    await test.failed('n1', test.now());
    test.pass(60);
    await test.sync();
    expect(test.control.pool().metadata.annotations).toMatchObject({ [DRYDOCK_ANNOTATIONS.rolledBackFrom]: NEW });
    expect(test.condition('Degraded')).toMatchObject({ status: 'True', reason: 'RolledBack' });
    expect(test.rollouts().map(({ target, outcome }) => `${target} ${outcome}`)).toEqual([
      `${NEW} RolledBack`,
      `${OLD} Running`,
    ]);
    await test.say('n1', { [DRYDOCK_ANNOTATIONS.failure]: null });
    await test.updated('n1', OLD);
    await test.sync();
    expect(test.rollouts().at(-1)).toMatchObject({ target: OLD, outcome: 'Completed' });
    expect(test.condition('Updated')).toMatchObject({ status: 'False', reason: 'RolledBack' });
    expect(test.control.pool().status?.configuration).toEqual({ name: OLD });
    expect(await test.reasons()).toEqual(['Completed', 'RolledBack', 'RolloutStarted', 'RolloutStarted']);

    await test.cluster.patch(kind, { name: POOL }, { spec: { configuration: { name: 'rendered-worker-next' } } });
    await test.sync();
    expect(test.control.pool().metadata.annotations?.[DRYDOCK_ANNOTATIONS.rolledBackFrom]).toBeUndefined();
    expect(test.condition('Degraded')).toMatchObject({ status: 'False' });
    expect(test.rollouts().at(-1)).toMatchObject({ target: 'rendered-worker-next', from: OLD, outcome: 'Running' });
  });

  it('stays with a config that failed where nobody asked for another, Halted and Degraded', async () => {
    const test = setUp({ maxUnavailable: 1 });
    test.addNodes('n1');
    await test.sync();
    await test.failed('n1', test.now());
    await test.sync();
    expect(test.condition('Halted')).toMatchObject({ status: 'True' });
    expect(test.condition('Degraded')).toMatchObject({ status: 'True', reason: 'FailureBudgetUsedUp' });
    expect(test.control.pool().metadata.annotations?.[DRYDOCK_ANNOTATIONS.rolledBackFrom]).toBeUndefined();
    expect(await test.reasons()).toEqual(['Halted', 'RolloutStarted']);
  });

  it('shows who approved which stage, in the history and as an Event', async () => {
    const test = setUp();
    test.addNodes('n1');
    await test.sync();
    const approval = JSON.stringify({ config: NEW, stages: ['rest'] });
    await test.annotate({ [DRYDOCK_ANNOTATIONS.approval]: approval, [DRYDOCK_ANNOTATIONS.approvedBy]: 'alice' });
    await test.sync();
    expect(test.rollouts()[0]?.approvals).toEqual([{ stage: 'rest', by: 'alice', at: test.now() }]);
    expect((await test.events()).map(({ message }) => message)).toContain(`Stage rest of ${NEW} was approved by alice`);
  });

  it('says of a node that two custom pools select: on both pools, and once on the Node', async () => {
    const test = setUp();
    const { flavour } = test.control;
    for (const name of ['infra', 'gpu']) {
      test.cluster.add<PoolResource>(flavour.machineConfigPool, {
        metadata: { name },
        spec: { nodeSelector: { matchLabels: { [name]: '' } } },
      });
    }
    const labels = { infra: '', gpu: '' };
    test.addNodes('n1');
    await test.cluster.patch(KINDS.node, { name: 'n1' }, { metadata: { labels } });
    const { dependencies } = test.workers[0]!;
    const look = async () => {
      for (const pool of ['gpu', 'infra', POOL]) await syncPool(dependencies, { cluster: CLUSTER, pool });
    };
    await look();
    await look();
    const statusOf = (pool: string, type: string) =>
      dependencies.pools.get(pool)?.status?.conditions?.find((each) => each.type === type);
    for (const pool of ['gpu', 'infra']) {
      expect(statusOf(pool, 'MembershipConflict')).toMatchObject({ status: 'True' });
      expect(statusOf(pool, 'Degraded')).toMatchObject({ status: 'True', reason: 'SelectedTwice' });
      expect(statusOf(pool, 'Degraded')?.message).toContain('Node n1 is selected by 2 custom pools, gpu and infra');
    }
    expect(statusOf(POOL, 'MembershipConflict')).toMatchObject({ status: 'False' });
    const told = (await test.events()).map(({ involvedObject: { kind, name }, count }) => `${kind} ${name} ${count}`);
    expect(told.sort()).toEqual(['MachineConfigPool gpu 1', 'MachineConfigPool infra 1', 'Node n1 1']);

    await test.cluster.patch(KINDS.node, { name: 'n1' }, { metadata: { labels: { gpu: null } } });
    await look();
    expect(statusOf('infra', 'MembershipConflict')).toMatchObject({ status: 'False' });
    expect(dependencies.pools.get('infra')?.status?.machineCount).toBe(1);
  });
});
