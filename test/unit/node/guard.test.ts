import { describe, expect, it } from 'vitest';
import { DEFAULT_GUARD_TIMES, guardOnce, type Probes } from '../../../activities/node/guard.js';
import { hostStopwatch } from '../../../activities/node/stopwatch.js';
import { registerNode } from '../../../activities/node/register.js';
import { DRYDOCK_ANNOTATIONS } from '../../../machine-config/api/flavour.js';
import { KINDS } from '../../../activities/kubernetes/client.js';
import { file, treeOf } from '../../support/fake-host.js';
import { setUpNode, type NodeObject } from '../../support/node-under-test.js';

const MINUTES = 60;
/** What changes by itself on every host. */
const VOLATILE = ['/proc', '/run', '/var/lib/drydock', '/var/lib/drydock-lab', '/lab-faults.json'];

/** A node on which an update is applied and booted, and a guard that can be told what still works. */
async function setUpGuarded(path = '/etc/nftables.conf') {
  const node = await setUpNode();
  await registerNode(node.deps);
  const before = await treeOf(node.fake.root, VOLATILE);
  const target = node.store({ storage: { files: [file(path, 'new\n')] } });
  const works: Record<keyof Probes, boolean> = { kubelet: true, apiServer: true, network: true, temporal: true };
  let clock = 1_000;
  const input = {
    deps: node.deps,
    times: DEFAULT_GUARD_TIMES,
    stopwatch: hostStopwatch(node.fake.host, () => clock),
    probes: {
      kubelet: () => Promise.resolve(works.kubelet),
      apiServer: () => Promise.resolve(works.apiServer),
      network: () => Promise.resolve(works.network),
      temporal: () => Promise.resolve(works.temporal),
    },
  };
  return {
    ...node,
    before,
    target,
    works,
    input,
    look: () => guardOnce(input),
    /** Looks now, and again so much later. */
    async lookFor(seconds: number) {
      const first = await guardOnce(input);
      clock += seconds;
      const second = await guardOnce(input);
      return second === 'nothing' ? first : second;
    },
    async cordonAndApply() {
      await node.grant(target);
      for (const name of ['prepare', 'cordon', 'apply', 'reboot'] as const) {
        await node.run(name, { ...node.step, target });
      }
    },
    async boot() {
      await node.fake.boot();
      await node.reportBoot();
    },
  };
}

describe('the guard of a node after the reboot into an update', () => {
  it('takes the update back when the kubelet stays away for the probation, and reboots once more', async () => {
    const node = await setUpGuarded('/etc/motd-new');
    await node.cordonAndApply();
    await node.boot();
    node.works.kubelet = false;
    expect(await node.lookFor(19 * MINUTES)).toBe('nothing');
    expect(await node.lookFor(2 * MINUTES)).toBe('rolledBack');
    expect(await treeOf(node.fake.root, VOLATILE)).toEqual(node.before);
    expect(node.fake.reboots).toHaveLength(2);
    expect(await node.look()).toBe('nothing');
    await node.boot();
    expect(await node.look()).toBe('nothing');
    expect(node.fake.reboots).toHaveLength(2);
  });

  it('tells the cluster, by registration and by the step that waits, that the update was taken back', async () => {
    const node = await setUpGuarded();
    await node.cordonAndApply();
    await node.boot();
    node.works.kubelet = false;
    await node.lookFor(21 * MINUTES);
    await expect(node.run('confirm', { ...node.step, target: node.target })).rejects.toMatchObject({
      type: 'HostBusy',
    });
    await node.boot();
    await expect(node.run('confirm', { ...node.step, target: node.target })).rejects.toMatchObject({
      type: 'RolledBackAfterBoot',
    });
    const told = node.annotations();
    expect(told[node.flavour.annotations.state]).toBe('Degraded');
    expect(told[node.flavour.annotations.reason]).toContain('the kubelet was not healthy for 21 minutes');
    expect(JSON.parse(told[DRYDOCK_ANNOTATIONS.failure] ?? '')).toMatchObject({
      target: node.target,
      attempts: 1,
      code: 'RolledBackAfterBoot',
    });
    await registerNode(node.deps);
    expect(node.annotations()).toEqual(told);
  });

  it('reports a roll-back at registration where no step is there to hear of it', async () => {
    const node = await setUpGuarded();
    await node.cordonAndApply();
    await node.boot();
    node.works.kubelet = false;
    await node.lookFor(21 * MINUTES);
    await node.boot();
    await registerNode(node.deps);
    const told = node.annotations();
    expect(told[node.flavour.annotations.state]).toBe('Degraded');
    expect(told[DRYDOCK_ANNOTATIONS.applying]).toBeUndefined();
    expect(told[node.flavour.annotations.currentConfig]).not.toBe(node.target);
  });

  it('lets a later attempt at the same config through, on its own merits', async () => {
    const node = await setUpGuarded();
    await node.cordonAndApply();
    await node.boot();
    node.works.kubelet = false;
    await node.lookFor(21 * MINUTES);
    await node.boot();
    await registerNode(node.deps);
    node.works.kubelet = true;
    await node.cordonAndApply();
    await node.boot();
    expect(await node.look()).toBe('nothing');
    await expect(node.run('confirm', { ...node.step, target: node.target })).resolves.toMatchObject({ rebooted: true });
  });

  it('does not count a time in which the kubelet was well between two in which it was not', async () => {
    const node = await setUpGuarded();
    await node.cordonAndApply();
    await node.boot();
    node.works.kubelet = false;
    await node.lookFor(19 * MINUTES);
    node.works.kubelet = true;
    await node.look();
    node.works.kubelet = false;
    expect(await node.lookFor(19 * MINUTES)).toBe('nothing');
  });

  it.each([
    ['the API server alone is away', '/etc/nftables.conf', { apiServer: false, network: true }],
    [
      'nothing answers, but the update touched neither network nor kubelet',
      '/etc/motd-new',
      {
        apiServer: false,
        network: false,
      },
    ],
  ])('undoes nothing when %s', async (_, path, away) => {
    const node = await setUpGuarded(path);
    await node.cordonAndApply();
    await node.boot();
    Object.assign(node.works, away);
    expect(await node.lookFor(24 * 60 * MINUTES)).toBe('nothing');
    expect((await node.fake.store.journal())?.target).toBe(node.target);
  });

  it('takes an update of the network back after which nothing answers', async () => {
    const node = await setUpGuarded();
    await node.cordonAndApply();
    await node.boot();
    Object.assign(node.works, { apiServer: false, network: false, temporal: false });
    expect(await node.lookFor(21 * MINUTES)).toBe('rolledBack');
    expect(await treeOf(node.fake.root, VOLATILE)).toEqual(node.before);
  });

  it('takes nothing back before the reboot, nor when the probation is turned off', async () => {
    const node = await setUpGuarded();
    await node.cordonAndApply();
    node.works.kubelet = false;
    expect(await node.lookFor(60 * MINUTES)).toBe('nothing');
    await node.boot();
    const input = { ...node.input, times: { ...DEFAULT_GUARD_TIMES, probationSeconds: 0 } };
    await node.lookFor(0);
    expect(await guardOnce(input)).toBe('nothing');
  });

  it('ends a roll-back that was cut off after any step', async () => {
    const steps = await countUndoSteps();
    expect(steps).toBeGreaterThan(2);
    for (let cut = 0; cut < steps; cut += 1) {
      const node = await setUpGuarded();
      await node.cordonAndApply();
      await node.boot();
      node.works.kubelet = false;
      const from = node.fake.steps.length;
      node.fake.onStep = (_, index) => {
        if (index - from >= cut) throw new Error('power lost');
      };
      await node.look();
      await expect(node.lookFor(21 * MINUTES)).rejects.toThrow('power lost');
      node.fake.onStep = () => undefined;
      await node.look();
      expect(await treeOf(node.fake.root, VOLATILE)).toEqual(node.before);
      expect(node.fake.reboots).toHaveLength(2);
    }
  });
});

async function countUndoSteps(): Promise<number> {
  const node = await setUpGuarded();
  await node.cordonAndApply();
  await node.boot();
  node.works.kubelet = false;
  const from = node.fake.steps.length;
  await node.lookFor(21 * MINUTES);
  return node.fake.steps.length - from;
}

describe('the guard of a node while Temporal stays away', () => {
  it('lifts its own cordon five minutes after the update is complete, and the engine finds it done', async () => {
    const node = await setUpGuarded();
    await node.cordonAndApply();
    await node.boot();
    node.works.temporal = false;
    expect(await node.lookFor(4 * MINUTES)).toBe('nothing');
    expect(node.node().spec?.unschedulable).toBe(true);
    expect(await node.lookFor(2 * MINUTES)).toBe('uncordoned');
    expect(node.node().spec?.unschedulable).not.toBe(true);
    expect(node.annotations()[node.flavour.annotations.currentConfig]).toBe(node.target);
    expect(node.annotations()[node.flavour.annotations.state]).toBe('Done');
    const step = { ...node.step, target: node.target };
    await expect(node.run('confirm', step)).resolves.toMatchObject({ rebooted: false });
    await expect(node.run('uncordon', step)).resolves.toEqual({ uncordoned: true });
  });

  it('keeps its cordon while its disk is not as the target says', async () => {
    const node = await setUpGuarded();
    await node.cordonAndApply();
    await node.boot();
    await node.change('/etc/nftables.conf', 'changed by hand\n');
    node.works.temporal = false;
    await expect(node.lookFor(6 * MINUTES)).rejects.toMatchObject({ type: 'NotAsTarget' });
    expect(node.node().spec?.unschedulable).toBe(true);
  });

  it('lifts its own cordon after fifteen minutes in which nothing was applied, and says no more than that', async () => {
    const node = await setUpGuarded();
    await node.grant(node.target);
    for (const name of ['prepare', 'cordon'] as const) await node.run(name, { ...node.step, target: node.target });
    node.works.temporal = false;
    expect(await node.lookFor(14 * MINUTES)).toBe('nothing');
    expect(await node.lookFor(2 * MINUTES)).toBe('released');
    expect(node.node().spec?.unschedulable).not.toBe(true);
    expect(node.annotations()[node.flavour.annotations.currentConfig]).not.toBe(node.target);
  });

  it("leaves somebody else's cordon alone", async () => {
    const node = await setUpGuarded();
    await node.deps.client.patch<NodeObject>(KINDS.node, { name: 'n1' }, { spec: { unschedulable: true } });
    node.works.temporal = false;
    expect(await node.lookFor(60 * MINUTES)).toBe('nothing');
    expect(node.node().spec?.unschedulable).toBe(true);
  });

  it('leaves its cordon to the engine as long as that is there', async () => {
    const node = await setUpGuarded();
    await node.cordonAndApply();
    await node.boot();
    expect(await node.lookFor(60 * MINUTES)).toBe('nothing');
    expect(node.node().spec?.unschedulable).toBe(true);
  });
});

describe('the stopwatch of a host', () => {
  it('goes on over a restart of the worker, and starts anew with a boot', async () => {
    const { fake } = await setUpNode();
    expect(await hostStopwatch(fake.host, () => 100).seconds('it', true)).toBe(0);
    expect(await hostStopwatch(fake.host, () => 160).seconds('it', true)).toBe(60);
    expect(await hostStopwatch(fake.host, () => 160).seconds('other', true)).toBe(0);
    await fake.boot();
    expect(await hostStopwatch(fake.host, () => 200).seconds('it', true)).toBe(0);
  });
});
