import { describe, expect, it } from 'vitest';
import type { ApplicationFailure } from '@temporalio/common';
import { createNodeActivities } from '../../../activities/node/activities.js';
import { NodeMemory } from '../../../activities/node/node-memory.js';
import { registerNode } from '../../../activities/node/register.js';
import { KINDS, type KubernetesObject } from '../../../activities/kubernetes/client.js';
import { DRYDOCK_ANNOTATIONS, EMPTY_CONFIG_NAME } from '../../../machine-config/api/flavour.js';
import { PROTECTING_ANNOTATIONS } from '../../../machine-config/drain/cordon-change.js';
import type { RolloutPolicy } from '../../../machine-config/api/rollout-policy.js';
import type { DrainInput } from '../../../workflows/contract/activities.js';
import { file } from '../../support/fake-host.js';
import { setUpNode } from '../../support/node-under-test.js';

const CHRONY = { storage: { files: [file('/etc/chrony.conf', 'ours')] } };
const code = (type: string) => expect.objectContaining({ type }) as ApplicationFailure;

/** A node that is granted an update and cordoned for it, with the pods of the test. */
async function setUpDrain(rollout?: RolloutPolicy) {
  const node = await setUpNode();
  if (rollout !== undefined) await node.policy(rollout);
  const input: DrainInput = { ...node.step, target: node.store(CHRONY), sliceSeconds: 3600 };
  await node.grant(input.target);
  await node.run('cordon', input);
  return {
    ...node,
    input,
    blocked: () => JSON.parse(node.annotations()[DRYDOCK_ANNOTATIONS.drainBlocked] ?? 'null') as unknown,
    drain: (more: Partial<DrainInput> = {}) => node.run('drain', { ...input, ...more }),
    /** At each heartbeat of the drain the next of these happens, and so many seconds go by. */
    meanwhile(...steps: [seconds: number, act?: () => unknown][]) {
      node.environment.removeAllListeners('heartbeat');
      node.environment.on('heartbeat', () => {
        const [seconds = 3600, act] = steps.shift() ?? [];
        node.advance(seconds);
        void act?.();
      });
    },
    toldReasons: () => node.told.map(({ reason }) => reason),
  };
}

describe('past the limit of a drain', () => {
  it('a node waits on, and says for what', async () => {
    const test = await setUpDrain({ drain: { timeout: '10m' } });
    test.pod('cart');
    test.budget('cart');
    test.meanwhile([3000], [3600]);
    const result = await test.drain();
    expect(result).toMatchObject({ drained: false, remaining: 1, budgets: ['shop/cart'] });
    expect(result.sentence).toMatch(
      /^Waiting: PDB shop\/cart allows 0 disruptions \(pod shop\/cart\); drain of n1 since /,
    );
    expect(result.giveBack).toBeUndefined();
    expect(await test.pods()).toEqual(['cart']);
  });

  it('a node is given back, with the reason and when it is tried again, and is then as it was', async () => {
    const test = await setUpDrain({ drain: { timeout: '10m', onTimeout: 'GiveBack', retryAfter: '20m' } });
    test.pod('cart');
    test.budget('cart');
    test.meanwhile([599], [2]);
    const { giveBack } = await test.drain();
    expect(giveBack).toEqual({
      reason: 'drain of n1: pod shop/cart not gone after 10m (spec.rollout.drain.timeout)',
      retryAfterSeconds: 1200,
    });
    expect(test.toldReasons()).toContain('DrainGivenUp');
    await test.grant(EMPTY_CONFIG_NAME);
    expect(await test.run('release', test.step)).toEqual({ uncordoned: true });
    const ours = Object.values(DRYDOCK_ANNOTATIONS) as string[];
    const left = Object.keys(test.annotations()).filter((key) => ours.includes(key));
    // Besides what it always says, only why it was given back.
    const { drainBlocked, host, worker } = DRYDOCK_ANNOTATIONS;
    expect(left.sort()).toEqual([drainBlocked, host, worker]);
    expect(test.blocked()).toMatchObject({ sentence: giveBack?.reason, budgets: ['shop/cart'] });
    await test.grant(test.input.target);
    await test.run('cordon', test.input);
    expect(test.blocked()).toBeNull();
    await test.run('release', test.step);
    for (const key of PROTECTING_ANNOTATIONS) expect(test.annotations()).not.toHaveProperty([key]);
    expect(test.node().spec?.unschedulable).toBeUndefined();
  });

  it('a running drain forces once the pool is switched to that, and not a moment before its limit', async () => {
    const test = await setUpDrain();
    test.pod('cart');
    test.budget('cart');
    const force = () => test.policy({ drain: { timeout: '30m', onTimeout: 'Force' } });
    const left: string[][] = [];
    test.meanwhile([600, force], [1199, async () => left.push(await test.pods())], [1]);
    expect(await test.drain()).toMatchObject({ drained: true, evicted: 1 });
    expect(left).toEqual([['cart']]);
    expect(test.told).toContainEqual({
      reason: 'DrainForced',
      message: 'after 30m of its drain deleted 1 pod past their budgets, shop/cart',
    });
  });

  it('a forced pod that a finalizer holds is told and not waited for without end', async () => {
    const test = await setUpDrain({ drain: { timeout: '10m', onTimeout: 'Force' } });
    test.pod('held', { finalizers: ['shop.example/books'] });
    test.meanwhile([120]);
    const waits = await test.drain({ sliceSeconds: 120 });
    expect(waits.blockers[0]?.why).toMatch(
      /^should have been gone at .*, and finalizer shop\.example\/books holds it$/,
    );
    expect(waits.sentence).toContain('remove what holds the pod');
    test.advance(600);
    const forced = await test.drain();
    expect(forced).toMatchObject({ drained: true });
    expect(forced.warnings).toEqual(['pod shop/held was deleted, does not go and was not waited for any longer']);
  });

  it('the clock counts from the cordon, through a restart of the worker', async () => {
    const test = await setUpDrain({ drain: { timeout: '10m', onTimeout: 'GiveBack' } });
    test.pod('cart');
    test.budget('cart');
    test.advance(601);
    const restarted = createNodeActivities(test.deps);
    await test.runWith(restarted, 'cordon', test.input);
    expect(await test.runWith(restarted, 'drain', test.input)).toMatchObject({ drained: false, evicted: 0 });
    expect((await test.runWith(restarted, 'drain', test.input)).giveBack?.reason).toContain('not gone after 10m');
  });
});

describe('the policy of a drain', () => {
  it('is that of the pool that made the granted config, whatever pool the task names', async () => {
    const test = await setUpDrain();
    const { flavour, cluster } = test;
    cluster.add(flavour.machineConfigPool, {
      metadata: { name: 'rogue' },
      spec: { rollout: { drain: { timeout: '0s', onTimeout: 'Force' } } },
    } as KubernetesObject);
    const resourceNames = ['worker', 'rogue'];
    const rules = [
      { apiGroups: [flavour.group], resources: ['machineconfigs'], verbs: ['get'] },
      { apiGroups: [flavour.group], resources: ['machineconfigpools'], resourceNames, verbs: ['get'] },
    ];
    await cluster.patch(KINDS.clusterRole, { name: 'configs' }, { rules });
    test.pod('cart');
    test.budget('cart');
    expect(await test.drain({ pool: 'rogue', sliceSeconds: 0 })).toMatchObject({ drained: false });
    expect(await test.pods()).toEqual(['cart']);
  });

  it('waits where the pool is gone', async () => {
    const test = await setUpDrain({ drain: { timeout: '1s', onTimeout: 'Force' } });
    test.pod('cart');
    test.budget('cart');
    test.advance(60);
    test.cluster.failNext({ verb: 'get', kind: 'MachineConfigPool' }, { code: 'NotFound' });
    const result = await test.drain({ sliceSeconds: 0 });
    expect(result).toMatchObject({ drained: false, remaining: 1 });
    expect(result.warnings).toEqual([expect.stringMatching(/^the drain policy of pool worker cannot be read \(/)]);
    expect(await test.drain()).toMatchObject({ drained: true });
  });
});

it('nothing is evicted before the pool was asked, since it may name pods to be waited for', async () => {
  const test = await setUpDrain({ waitForPods: { selector: { matchLabels: { job: 'long' } } } });
  test.pod('job', { labels: { job: 'long' } });
  for (const failing of [{}, { code: 'Forbidden' }] as const) {
    test.cluster.failNext({ verb: 'get', kind: 'MachineConfigPool' }, failing);
    await expect(test.drain({ sliceSeconds: 0 })).rejects.toEqual(code('ApiUnavailable'));
  }
  // Neither when it does not answer in the middle of the drain.
  test.meanwhile([61, () => test.cluster.failNext({ verb: 'get', kind: 'MachineConfigPool' }, { times: 3 })], [1], [1]);
  expect(await test.drain({ sliceSeconds: 120 })).toMatchObject({ drained: false, evicted: 0 });
  expect(await test.pods()).toEqual(['job']);
});

it('a failed update ends the clock of its drain: the next attempt has the whole time again', async () => {
  const test = await setUpDrain();
  await test.drain();
  test.fake.onStep = (step) => {
    if (step.startsWith('writing /etc/chrony.conf')) throw new Error('EIO');
  };
  await expect(test.run('apply', test.input)).rejects.toEqual(code('ApplyFailed'));
  test.advance(3600);
  await test.run('cordon', test.input);
  expect(test.annotations()[DRYDOCK_ANNOTATIONS.drainSince]).toBe(test.deps.now().toISOString());
});

describe('pods that a drain leaves alone, or takes last', () => {
  it('Temporal goes when nothing else is left', async () => {
    const test = await setUpDrain();
    const gone: string[] = [];
    test.cluster.observe(KINDS.pod, (type, { metadata }) => type === 'DELETED' && gone.push(metadata.name));
    test.pod('a-temporal', { labels: { 'app.kubernetes.io/name': 'temporal' } });
    test.pod('cart');
    test.pod('web');
    test.budget('cart');
    test.meanwhile(
      [1, () => test.cluster.delete(KINDS.podDisruptionBudget, { name: 'cart', namespace: 'shop' })],
      [31],
      [1],
    );
    expect(await test.drain()).toMatchObject({ drained: true, evicted: 3 });
    expect(gone).toEqual(['web', 'cart', 'a-temporal']);
  });

  it('the pod in which the worker runs stays', async () => {
    const test = await setUpDrain();
    test.pod('worker', { namespace: 'drydock' });
    test.pod('web');
    const own = createNodeActivities({ ...test.deps, ownPod: { name: 'worker', namespace: 'drydock' } });
    await test.runWith(own, 'prepare', test.input);
    expect(await test.runWith(own, 'drain', test.input)).toMatchObject({ drained: true, evicted: 1 });
    expect(await test.pods()).toEqual(['worker']);
  });

  it('pods to be waited for are not evicted, and are gone when they end', async () => {
    const test = await setUpDrain({ waitForPods: { selector: { matchLabels: { job: 'long' } } } });
    test.pod('job', { labels: { job: 'long' } });
    const end = () =>
      test.cluster.patch(KINDS.pod, { name: 'job', namespace: 'shop' }, { status: { phase: 'Succeeded' } }, 'status');
    const waiting = await test.drain({ sliceSeconds: 0 });
    expect(waiting).toMatchObject({ drained: false, evicted: 0 });
    expect(waiting.sentence).toContain('is waited for until it ends (pod shop/job)');
    test.meanwhile([1, end]);
    expect(await test.drain()).toMatchObject({ drained: true, evicted: 0 });
    expect(await test.pods()).toEqual(['job']);
  });

  it('or are evicted at their limit, or the node is given back', async () => {
    const waitForPods = { selector: { matchLabels: { job: 'long' } }, limit: '2h' };
    const test = await setUpDrain({ waitForPods });
    test.pod('job', { labels: { job: 'long' } });
    test.advance(2 * 3600);
    expect((await test.drain()).giveBack?.reason).toContain('pod shop/job not ended after 2h');
    await test.policy({ waitForPods: { ...waitForPods, onLimit: 'Evict' } });
    expect(await test.drain()).toMatchObject({ drained: true, evicted: 1 });
  });

  it('two budgets on one pod are told, with what would help', async () => {
    const test = await setUpDrain();
    test.pod('cart');
    test.budget('cart');
    test.budget('cart', 'cart-too');
    const result = await test.drain({ sliceSeconds: 0 });
    expect(result.blockers).toEqual([
      {
        pod: 'shop/cart',
        why: 'more than one PodDisruptionBudget selects pod shop/cart, which eviction does not support',
      },
    ]);
    expect(test.blocked()).toMatchObject({ pods: ['shop/cart'], budgets: [] });
  });
});

describe('while a node is drained', () => {
  it('a cordon that somebody lifts is there again, and told', async () => {
    const test = await setUpDrain();
    test.pod('cart');
    test.budget('cart');
    const uncordon = () => test.cluster.patch(KINDS.node, { name: 'n1' }, { spec: { unschedulable: null } });
    const seen: unknown[] = [];
    const look = () => void seen.push(test.node().spec?.unschedulable);
    test.meanwhile([9, uncordon], [2, look], [0, look]);
    await test.drain();
    expect(seen).toEqual([undefined, true]);
    expect(test.toldReasons()).toContain('CordonedAgain');
  });

  it('a grant that is taken back ends the drain', async () => {
    const test = await setUpDrain();
    test.pod('cart');
    test.budget('cart');
    test.meanwhile([11, () => test.grant(EMPTY_CONFIG_NAME)], [11]);
    await expect(test.drain()).rejects.toEqual(code('NotGranted'));
  });

  it('an API server that does not answer is waited for', async () => {
    const test = await setUpDrain();
    test.pod('web');
    test.cluster.failNext({ verb: 'list', kind: 'Pod' }, { times: 2 });
    test.meanwhile([1], [1], [1]);
    expect(await test.drain()).toMatchObject({ drained: true, evicted: 1 });
    test.cluster.failNext({ verb: 'list', kind: 'Pod' });
    await expect(test.drain({ sliceSeconds: 0 })).rejects.toEqual(code('ApiUnavailable'));
  });

  it('a cancellation keeps it from evicting the rest', async () => {
    const test = await setUpDrain();
    const evicted: string[] = [];
    for (let count = 1; count <= 20; count++) test.pod(`web-${count}`);
    test.cluster.observe(KINDS.pod, (type, { metadata }) => {
      if (type !== 'DELETED') return;
      evicted.push(metadata.name);
      if (evicted.length === 1) test.environment.cancel();
    });
    await expect(test.drain()).rejects.toThrow(/cancel/i);
    // Those that were asked for already.
    expect(evicted.length).toBeLessThanOrEqual(5);
  });

  it('asks again when the API server says that it may, not before', async () => {
    const test = await setUpDrain();
    const asked: number[] = [];
    const started = test.deps.now().getTime();
    test.pod('web');
    const client = {
      ...test.deps.client,
      get: test.deps.client.get.bind(test.deps.client),
      list: test.deps.client.list.bind(test.deps.client),
      patch: test.deps.client.patch.bind(test.deps.client),
      evict: () => {
        asked.push((test.deps.now().getTime() - started) / 1000);
        return Promise.resolve({
          outcome: 'refused',
          why: 'PDB shop/web is not processed yet',
          retryAfterSeconds: 90,
        } as const);
      },
    };
    test.meanwhile([89], [2], [100]);
    await test.runWith(createNodeActivities({ ...test.deps, client }), 'drain', { ...test.input, sliceSeconds: 150 });
    expect(asked).toEqual([0, 91, 191]);
  });
});

describe('what is told of a drain', () => {
  it('stands on the Node after a minute of waiting, is written again only when it changes, and goes with the cordon', async () => {
    const test = await setUpDrain();
    test.pod('cart');
    test.budget('cart');
    let writes = 0;
    test.cluster.intercept(({ verb, identity }) => {
      if (verb === 'patch' && identity !== 'admin') writes += 1;
    });
    const seen: unknown[] = [];
    const look = () => void seen.push(test.blocked());
    test.meanwhile([30, look], [31, look], [61, look], [61, look]);
    await test.drain();
    const blocked = {
      sentence: expect.stringContaining('PDB shop/cart') as string,
      pods: ['shop/cart'],
      budgets: ['shop/cart'],
    };
    expect(seen).toEqual([null, null, blocked, blocked]);
    await test.drain({ sliceSeconds: 0 });
    expect(writes).toBe(1);
    expect(test.toldReasons().filter((reason) => reason === 'DrainBlocked')).toHaveLength(1);
    await test.run('release', test.step);
    expect(test.blocked()).toBeNull();
  });

  it('is no more than one Event in ten minutes, however often it changes', async () => {
    const test = await setUpDrain();
    for (let count = 1; count <= 12; count++) {
      test.pod(`cart-${count}`);
      test.budget(`cart-${count}`);
      await test.drain({ sliceSeconds: 0 });
      test.advance(120);
    }
    expect(test.toldReasons().filter((reason) => reason === 'DrainBlocked')).toHaveLength(3);
  });

  it('is taken back when the drain is over, with what owned the evicted pods if a gate asks for that', async () => {
    const test = await setUpDrain({ gates: { afterNode: [{ name: 'back', podsRescheduled: {} }] } });
    test.pod('cart', { kind: 'ReplicaSet' });
    test.pod('bare');
    test.budget('cart');
    await test.drain({ sliceSeconds: 0 });
    expect(test.blocked()).toMatchObject({ pods: ['shop/cart'] });
    await test.cluster.delete(KINDS.podDisruptionBudget, { name: 'cart', namespace: 'shop' });
    test.advance(31);
    expect(await test.drain()).toMatchObject({ drained: true });
    expect(test.blocked()).toBeNull();
    expect(test.annotations()[DRYDOCK_ANNOTATIONS.evictedOwners]).toBe('["shop/ReplicaSet/o"]');
  });

  it('is not whose pods were evicted where no gate asks', async () => {
    const test = await setUpDrain();
    test.pod('cart', { kind: 'ReplicaSet' });
    await test.drain();
    expect(test.annotations()).not.toHaveProperty([DRYDOCK_ANNOTATIONS.evictedOwners]);
  });

  it('is measured', async () => {
    const test = await setUpDrain();
    const drains: unknown[] = [];
    const metrics = {
      drift: () => undefined,
      written: () => undefined,
      looked: () => undefined,
      updateFailed: () => undefined,
      rebootFailed: () => undefined,
      drain: (drain: unknown) => void drains.push(drain),
      certificateProblems: () => undefined,
    };
    test.pod('cart');
    test.budget('cart');
    test.advance(100);
    const measured = createNodeActivities({ ...test.deps, metrics });
    await test.runWith(measured, 'drain', { ...test.input, sliceSeconds: 0 });
    await test.runWith(measured, 'release', test.step);
    expect(drains).toEqual([
      { blocked: 1, seconds: 100 },
      { blocked: 0, seconds: 0 },
    ]);
  });
});

describe('volumes of evicted pods', () => {
  const VOLUME = 'kubernetes.io/csi/disk.example^vol-1';

  async function setUpVolumes() {
    const test = await setUpDrain();
    const { cluster } = test;
    cluster.add(KINDS.persistentVolumeClaim, {
      metadata: { name: 'data-1', namespace: 'shop' },
      spec: { volumeName: 'pv-1' },
    } as KubernetesObject);
    cluster.add(KINDS.persistentVolume, {
      metadata: { name: 'pv-1' },
      spec: { csi: { driver: 'disk.example', volumeHandle: 'vol-1' } },
    } as KubernetesObject);
    const inUse = (volumesInUse: string[]) =>
      cluster.patch(KINDS.node, { name: 'n1' }, { status: { volumesInUse } }, 'status');
    await inUse([VOLUME, 'kubernetes.io/csi/disk.example^somebody-elses']);
    test.pod('db', { claim: 'data-1' });
    return { ...test, inUse };
  }

  it('hold the drain until the node has given them back', async () => {
    const test = await setUpVolumes();
    const evicting = await test.drain({ sliceSeconds: 0 });
    expect(evicting).toMatchObject({ drained: false, evicted: 1, remaining: 1 });
    const held = await test.drain({ sliceSeconds: 0 });
    expect(held).toMatchObject({ drained: false, remaining: 0 });
    expect(held.sentence).toContain(`volume ${VOLUME} is still in use (pod shop/db)`);
    test.meanwhile([1, () => test.inUse([])]);
    expect(await test.drain()).toMatchObject({ drained: true });
  });

  it('are not waited for past the limit of the drain', async () => {
    const test = await setUpVolumes();
    test.meanwhile([1], [3600]);
    const result = await test.drain({ sliceSeconds: 7200 });
    expect(result).toMatchObject({ drained: true });
    expect(result.warnings).toEqual([
      `volume ${VOLUME} is still in use (pod shop/db) and was not waited for any longer`,
    ]);
  });

  it('that cannot be read are not waited for', async () => {
    const test = await setUpVolumes();
    test.cluster.failNext({ verb: 'get', kind: 'PersistentVolume' }, { code: 'Forbidden' });
    expect(await test.drain()).toMatchObject({ drained: true, evicted: 1 });
  });
});

describe('the only node that takes pods', () => {
  it('is cordoned and not drained, and the plan says so', async () => {
    const test = await setUpDrain();
    test.pod('web');
    const { target } = test.input;
    const annotations = { [DRYDOCK_ANNOTATIONS.noDrain]: target };
    await test.cluster.patch(KINDS.node, { name: 'n1' }, { metadata: { annotations } });
    const plan = await test.run('prepare', test.input);
    expect(plan).toMatchObject({ noDrain: true, summary: '1 file; reboot; cordon, no drain' });
    expect(plan.warnings?.[0]).toMatch(/^n1 is the only node that takes pods/);
    expect(await test.drain()).toMatchObject({ drained: true, evicted: 0 });
    expect(await test.run('apply', test.input)).toMatchObject({ reboot: true });
    expect(await test.pods()).toEqual(['web']);
  });

  it('is drained after all for another config than the one that this was granted with', async () => {
    const test = await setUpDrain();
    test.pod('web');
    const annotations = { [DRYDOCK_ANNOTATIONS.noDrain]: 'rendered-worker-earlier' };
    await test.cluster.patch(KINDS.node, { name: 'n1' }, { metadata: { annotations } });
    expect(await test.run('prepare', test.input)).not.toHaveProperty('noDrain');
    expect(await test.drain()).toMatchObject({ drained: true, evicted: 1 });
  });
});

describe('an apply that costs a reboot', () => {
  it('believes nobody that the node is empty: with pods on it it is refused', async () => {
    const test = await setUpDrain();
    test.pod('web');
    await expect(test.run('apply', test.input)).rejects.toEqual(code('NotDrained'));
    expect(await test.fake.store.journal()).toBeUndefined();
    await test.drain();
    expect(await test.run('apply', test.input)).toMatchObject({ reboot: true });
  });

  it('looks again when the node was schedulable after its drain', async () => {
    const test = await setUpDrain();
    await test.drain();
    await test.cluster.patch(KINDS.node, { name: 'n1' }, { spec: { unschedulable: null } });
    test.advance(11);
    await expect(test.run('apply', test.input)).rejects.toEqual(code('NotDrained'));
    test.pod('web');
    await test.run('cordon', test.input);
    await expect(test.run('apply', test.input)).rejects.toEqual(code('NotDrained'));
  });
});

describe('the end of an update', () => {
  it('leaves a held node cordoned, says so, and clears what people asked for once', async () => {
    const test = await setUpDrain();
    const { target } = test.input;
    const annotations = {
      [DRYDOCK_ANNOTATIONS.hold]: 'disk is being replaced',
      [DRYDOCK_ANNOTATIONS.release]: target,
      [DRYDOCK_ANNOTATIONS.retry]: '2026-11-30T11:00:00Z',
    };
    await test.cluster.patch(KINDS.node, { name: 'n1' }, { metadata: { annotations } });
    await test.update(target);
    expect(test.node().spec?.unschedulable).toBe(true);
    expect(test.annotations()).toMatchObject({
      [DRYDOCK_ANNOTATIONS.heldCordon]: 'true',
      [DRYDOCK_ANNOTATIONS.hold]: 'disk is being replaced',
    });
    for (const key of ['cordonedFor', 'release', 'retry', 'drainSince', 'replaced'] as const) {
      expect(test.annotations(), key).not.toHaveProperty([DRYDOCK_ANNOTATIONS[key]]);
    }
    expect(test.told.at(-1)?.message).toBe(`runs ${target}; stays cordoned, held: disk is being replaced`);
  });

  it('records how long its steps took', async () => {
    const test = await setUpDrain();
    const { target } = test.input;
    test.advance(90);
    await test.drain();
    await test.run('apply', test.input);
    await test.fake.boot();
    await test.reportBoot();
    test.advance(45);
    await test.run('confirm', test.input);
    await test.run('uncordon', test.input);
    const record = JSON.parse(test.annotations()[DRYDOCK_ANNOTATIONS.lastUpdate] ?? '') as unknown;
    const seconds = { drain: 90, apply: 0, reboot: 45, total: 135 };
    expect(record).toEqual({ target, at: test.deps.now().toISOString(), seconds });
  });
});

it('sees a grant that is newer than what it remembers of its Node', async () => {
  const test = await setUpDrain();
  const newer = test.store({ storage: { files: [file('/etc/newer', 'x')] } });
  await test.grant(newer);
  expect(await test.run('cordon', { ...test.input, target: newer })).toEqual({ ours: true });
  expect(test.annotations()[DRYDOCK_ANNOTATIONS.cordonedFor]).toBe(newer);
  await test.grant(EMPTY_CONFIG_NAME);
  await expect(test.run('cordon', { ...test.input, target: newer })).rejects.toEqual(code('NotGranted'));
});

it('asks the API server no more often than an update needs', async () => {
  const test = await setUpNode();
  const input = { ...test.step, target: test.store(CHRONY), sliceSeconds: 60 };
  await test.grant(input.target);
  const calls: string[] = [];
  test.cluster.intercept(({ verb, resource, identity }) => {
    if (identity !== 'admin') calls.push(`${verb} ${resource.kind}`);
  });
  const callsOf = async (step: 'prepare' | 'cordon' | 'drain' | 'apply' | 'reboot' | 'confirm' | 'uncordon') => {
    calls.length = 0;
    await test.run(step, input);
    return [...calls];
  };
  expect(await callsOf('prepare')).toEqual(['get Node', 'get MachineConfig']);
  expect(await callsOf('cordon')).toEqual(['patch Node']);
  // As Kubernetes answers a cordon; what was remembered of the Node is over with that.
  const taint = { key: 'node.kubernetes.io/unschedulable', effect: 'NoSchedule' };
  await test.cluster.patch(KINDS.node, { name: test.step.node }, { spec: { taints: [taint] } });
  // With nothing to move it needs no policy.
  expect(await callsOf('drain')).toEqual(['list Pod']);
  expect(await callsOf('apply')).toEqual(['get Node', 'patch Node']);
  expect(await callsOf('reboot')).toEqual([]);
  await test.fake.boot();
  await test.reportBoot();
  // The worker of the new boot.
  const deps = { ...test.deps, memory: new NodeMemory() };
  calls.length = 0;
  await registerNode(deps);
  const booted = createNodeActivities(deps);
  await test.runWith(booted, 'confirm', input);
  await test.runWith(booted, 'uncordon', input);
  expect(calls).toEqual(['get Node', 'patch Node']);
});
