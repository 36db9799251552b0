import { writeFile } from 'node:fs/promises';
import type { ApplicationFailure } from '@temporalio/common';
import { describe, expect, it } from 'vitest';
import { createNodeActivities } from '../../../activities/node/activities.js';
import { registerNode } from '../../../activities/node/register.js';
import { describeHost } from '../../../activities/host/describe-host.js';
import { KINDS, type KubernetesObject } from '../../../activities/kubernetes/client.js';
import { apiFlavour, DRYDOCK_ANNOTATIONS, EMPTY_CONFIG_NAME } from '../../../machine-config/api/flavour.js';
import type { NodeActivities } from '../../../workflows/contract/activities.js';
import { file, treeOf, type FakeHost } from '../../support/fake-host.js';
import { setUpNode, type NodeObject } from '../../support/node-under-test.js';

const flavour = apiFlavour('openshift');
const KEYS = flavour.annotations;

const CHRONY = { storage: { files: [file('/etc/chrony.conf', 'ours')] } };
const code = (type: string) => expect.objectContaining({ type }) as ApplicationFailure;

describe('a whole update', () => {
  it('ends Done, uncordoned, on the target, with one reboot and nothing of ours left on the Node', async () => {
    const test = await setUpNode();
    const target = test.store(CHRONY);
    await test.update(target);
    expect(test.annotations()).toEqual({
      [DRYDOCK_ANNOTATIONS.worker]: '0.1.0',
      [KEYS.currentConfig]: target,
      [KEYS.desiredConfig]: target,
      [KEYS.state]: 'Done',
      [KEYS.reason]: '',
      [DRYDOCK_ANNOTATIONS.host]: JSON.stringify(describeHost(test.fake.host)),
      [DRYDOCK_ANNOTATIONS.lastUpdate]: expect.stringContaining(`{"target":"${target}"`) as string,
    });
    expect(test.node().spec?.unschedulable).toBeUndefined();
    expect(await test.fake.text('/etc/chrony.conf')).toBe('ours');
    expect(test.fake.reboots).toHaveLength(1);
    expect(await test.fake.store.journal()).toBeUndefined();
  });

  it('runs every step a second time without doing anything twice', async () => {
    const test = await setUpNode();
    const { run } = test;
    const input = { ...test.step, target: test.store(CHRONY) };
    await test.grant(input.target);
    const twice = async (activity: Exclude<keyof NodeActivities, 'drain'>) => {
      const first = await run(activity, input);
      const tree = await treeOf(test.fake.root);
      const node = test.node();
      expect(await run(activity, input)).toEqual(first);
      expect(await treeOf(test.fake.root)).toEqual(tree);
      expect(test.node()).toEqual(node);
      return first;
    };
    expect(await twice('prepare')).toMatchObject({
      from: EMPTY_CONFIG_NAME,
      disruption: 'reboot',
      changes: { files: 1 },
    });
    expect(await twice('cordon')).toEqual({ ours: true });
    expect(await twice('apply')).toMatchObject({ reboot: true });
    expect(await twice('reboot')).toMatchObject({ requested: true });
    expect(test.fake.reboots).toHaveLength(1);
    await expect(run('confirm', input)).rejects.toEqual(code('NotRebootedYet'));
    await test.fake.boot();
    await expect(run('confirm', input)).rejects.toEqual(code('NodeNotReady'));
    await test.reportBoot();
    expect(await twice('reboot')).toMatchObject({ requested: false });
    expect(test.fake.reboots).toHaveLength(1);
    expect(await twice('apply')).toMatchObject({ reboot: false });
    expect(await twice('confirm')).toMatchObject({ rebooted: true });
    expect(await twice('uncordon')).toEqual({ uncordoned: true });
    expect(await twice('confirm')).toMatchObject({ rebooted: false });
  });

  it('changes SSH keys without drain and reboot', async () => {
    const test = await setUpNode();
    const target = test.store({ passwd: { users: [{ name: 'core', sshAuthorizedKeys: ['ssh-ed25519 A'] }] } });
    await test.grant(target);
    expect(await test.run('prepare', { ...test.step, target })).toMatchObject({
      disruption: 'none',
      summary: 'SSH keys; no reboot',
    });
    await test.update(target);
    expect(test.fake.reboots).toEqual([]);
  });

  it('is finished by another run when the first one ended after apply', async () => {
    const test = await setUpNode();
    const input = { ...test.step, target: test.store(CHRONY) };
    await test.grant(input.target);
    await test.run('cordon', input);
    await test.run('apply', input);
    expect(await test.run('release', test.step)).toEqual({ uncordoned: false });
    expect(await test.run('prepare', input)).toMatchObject({ disruption: 'reboot' });
    await test.update(input.target);
    expect(test.annotations()[KEYS.state]).toBe('Done');
    expect(test.fake.reboots).toHaveLength(1);
  });
});

describe('what Kubernetes did not grant is refused', () => {
  const STEPS = ['prepare', 'cordon', 'drain', 'apply', 'reboot'] as const;

  it('every step that touches the node while desired equals current, or is another config', async () => {
    const test = await setUpNode();
    const target = test.store(CHRONY);
    const other = test.store({ storage: { files: [file('/etc/other', 'x')] } });
    const before = await treeOf(test.fake.root);
    for (const desired of [EMPTY_CONFIG_NAME, other]) {
      await test.grant(desired);
      for (const name of STEPS) {
        const input = { ...test.step, target, sliceSeconds: 1 };
        await expect(test.run(name, input), `${name}, desired ${desired}`).rejects.toEqual(code('NotGranted'));
      }
    }
    expect(await treeOf(test.fake.root)).toEqual(before);
    expect(test.node().spec?.unschedulable).toBeUndefined();
  });

  it('every step for another cluster, another node, or an earlier node of that name', async () => {
    const test = await setUpNode();
    const target = test.store(CHRONY);
    await test.grant(target);
    const input = { ...test.step, target, sliceSeconds: 1 };
    for (const name of [...STEPS, 'confirm', 'uncordon', 'release'] as const) {
      await expect(test.run(name, { ...input, cluster: 'cluster-2' }), name).rejects.toEqual(code('WrongCluster'));
      await expect(test.run(name, { ...input, node: 'n2' }), name).rejects.toEqual(code('WrongNode'));
      await expect(test.run(name, { ...input, nodeUid: 'uid-0' }), name).rejects.toEqual(code('WrongNode'));
    }
  });

  it('a config that no pool owns, whose contents were changed, or that is missing, and the Node says so', async () => {
    const test = await setUpNode();
    const target = test.store(CHRONY);
    const config = test.cluster.peek<KubernetesObject & { spec: object }>(flavour.machineConfig, target)!;
    const changed = {
      ...config,
      spec: { config: { ignition: { version: '3.4.0' }, storage: { files: [file('/etc/x', 'evil')] } } },
    };
    await test.cluster.replace(flavour.machineConfig, changed);
    await test.grant(target);
    await expect(test.run('prepare', { ...test.step, target })).rejects.toEqual(code('UntrustedConfig'));
    expect(test.annotations()).toMatchObject({
      [KEYS.state]: 'Degraded',
      [KEYS.reason]: expect.stringContaining('changed after it was rendered') as string,
    });
    await test.cluster.patch(
      flavour.machineConfig,
      { name: target },
      { spec: config.spec, metadata: { ownerReferences: null } },
    );
    await expect(test.run('apply', { ...test.step, target })).rejects.toEqual(code('UntrustedConfig'));
    await test.grant('rendered-worker-none');
    await expect(test.run('prepare', { ...test.step, target: 'rendered-worker-none' })).rejects.toEqual(
      code('UntrustedConfig'),
    );
    expect(JSON.parse(test.annotations()[DRYDOCK_ANNOTATIONS.failure]!)).toMatchObject({
      target: 'rendered-worker-none',
      attempts: 1,
    });
  });

  it('an uncordon before the target has arrived', async () => {
    const test = await setUpNode();
    const input = { ...test.step, target: test.store(CHRONY) };
    await test.grant(input.target);
    await test.run('cordon', input);
    await expect(test.run('uncordon', input)).rejects.toEqual(code('NotGranted'));
    await test.run('apply', input);
    await expect(test.run('uncordon', input)).rejects.toEqual(code('NotGranted'));
    expect(test.node().spec?.unschedulable).toBe(true);
    expect(test.annotations()[KEYS.currentConfig]).toBe(EMPTY_CONFIG_NAME);
  });
});

it('an uncordon after an earlier update does not end the one that it was granted since', async () => {
  const test = await setUpNode();
  const first = test.store(CHRONY);
  await test.update(first);
  await test.grant(test.store({ storage: { files: [file('/etc/other', 'x')] } }));
  await expect(test.run('uncordon', { ...test.step, target: first })).rejects.toEqual(code('NotGranted'));
});

describe('cordons', () => {
  it('writes owner and cordon in one go and never takes over, or lifts, that of somebody else', async () => {
    const test = await setUpNode();
    const input = { ...test.step, target: test.store(CHRONY) };
    await test.grant(input.target);
    const unowned: boolean[] = [];
    test.cluster.observe<NodeObject>(KINDS.node, (_, { spec, metadata }) => {
      unowned.push(
        (spec?.unschedulable === true) !== (metadata.annotations?.[DRYDOCK_ANNOTATIONS.cordonedFor] !== undefined),
      );
    });
    expect(await test.run('cordon', input)).toEqual({ ours: true });
    expect(await test.run('release', test.step)).toEqual({ uncordoned: true });
    expect(unowned).not.toContain(true);

    await test.cluster.patch(KINDS.node, { name: 'n1' }, { spec: { unschedulable: true } });
    expect(await test.run('cordon', input)).toEqual({ ours: false });
    await test.update(input.target);
    expect(test.node().spec?.unschedulable).toBe(true);
    expect(test.annotations()[KEYS.state]).toBe('Done');
  });

  it('is decided again when somebody else writes the Node in between', async () => {
    const test = await setUpNode();
    const input = { ...test.step, target: test.store(CHRONY) };
    await test.grant(input.target);
    let raced = false;
    test.cluster.intercept(async ({ verb, identity }) => {
      if (verb !== 'patch' || identity === 'admin' || raced) return;
      raced = true;
      await test.grant(EMPTY_CONFIG_NAME);
    });
    await expect(test.run('cordon', input)).rejects.toEqual(code('NotGranted'));
    expect(test.node().spec?.unschedulable).toBeUndefined();
  });
});

describe('drain', () => {
  it('evicts what has to move and leaves DaemonSet, mirror and finished pods', async () => {
    const test = await setUpNode();
    const input = { ...test.step, target: test.store(CHRONY), sliceSeconds: 30 };
    await test.grant(input.target);
    test.pod('web', { kind: 'ReplicaSet' });
    test.pod('bare');
    test.pod('agent', { kind: 'DaemonSet' });
    test.pod('mirror', { annotations: { 'kubernetes.io/config.mirror': 'x' } });
    test.pod('done', { kind: 'Job', phase: 'Succeeded' });
    await test.run('prepare', input);
    expect(await test.run('drain', input)).toEqual({ drained: true, evicted: 2, remaining: 0, blockers: [] });
    const left = await test.cluster.list(KINDS.pod);
    expect(left.map(({ metadata }) => metadata.name).sort()).toEqual(['agent', 'done', 'mirror']);
  });

  it('reports the budget that blocks at the end of its slice, and heartbeats meanwhile', async () => {
    const test = await setUpNode();
    const input = { ...test.step, target: test.store(CHRONY), sliceSeconds: 2 };
    await test.grant(input.target);
    test.pod('cart');
    test.budget('cart');
    const beats: unknown[] = [];
    test.environment.on('heartbeat', (details) => {
      beats.push(details);
      test.advance(1);
    });
    const result = await test.run('drain', input);
    expect(result).toMatchObject({ drained: false, evicted: 0, remaining: 1 });
    expect(result.blockers).toEqual([{ pod: 'shop/cart', why: expect.stringContaining('shop/cart') as string }]);
    expect(beats).toContainEqual({ evicted: 0, remaining: 1 });
  });

  it('ends at once when it is cancelled', async () => {
    const test = await setUpNode();
    const input = { ...test.step, target: test.store(CHRONY), sliceSeconds: 3600 };
    await test.grant(input.target);
    test.pod('cart');
    test.budget('cart');
    test.environment.once('heartbeat', () => test.environment.cancel());
    await expect(test.run('drain', input)).rejects.toThrow(/cancel/i);
    expect(await test.cluster.list(KINDS.pod)).toHaveLength(1);
  });
});

describe('failures', () => {
  it('puts a failed apply back, says why on the Node, counts, and lets a later config through', async () => {
    const test = await setUpNode();
    const input = { ...test.step, target: test.store(CHRONY) };
    await test.grant(input.target);
    const before = await treeOf(test.fake.root, ['/var/lib/drydock']);
    test.fake.onStep = (step) => {
      if (step.startsWith('writing /etc/chrony.conf')) throw new Error('EIO: the disk is bad');
    };
    for (const attempts of [1, 2]) {
      await test.run('cordon', input);
      await expect(test.run('apply', input)).rejects.toEqual(code('ApplyFailed'));
      expect(test.annotations()).toMatchObject({ [KEYS.state]: 'Degraded', [KEYS.currentConfig]: EMPTY_CONFIG_NAME });
      expect(test.annotations()[KEYS.reason]).toMatch(
        /writing \/etc\/chrony.conf of storage.files\[0\].*EIO: the disk is bad/,
      );
      expect(JSON.parse(test.annotations()[DRYDOCK_ANNOTATIONS.failure]!)).toMatchObject({
        target: input.target,
        attempts,
      });
      expect(test.annotations()[DRYDOCK_ANNOTATIONS.applying]).toBeUndefined();
      await test.run('release', test.step);
    }
    expect(await treeOf(test.fake.root, ['/var/lib/drydock'])).toEqual(before);
    expect(test.node().spec?.unschedulable).toBeUndefined();

    test.fake.onStep = () => undefined;
    const good = test.store({ storage: { files: [file('/etc/good', 'x')] } });
    await test.grant(good);
    await test.run('prepare', { ...test.step, target: good });
    expect(test.annotations()[KEYS.state]).toBe('Degraded');
    await test.update(good);
    expect(test.annotations()).toMatchObject({ [KEYS.state]: 'Done', [KEYS.reason]: '' });
    expect(test.annotations()[DRYDOCK_ANNOTATIONS.failure]).toBeUndefined();
  });

  it('does not overwrite what an administrator changed', async () => {
    const test = await setUpNode();
    await test.update(test.store(CHRONY));
    await writeFile(test.fake.path('/etc/chrony.conf'), 'by hand');
    const target = test.store({ storage: { files: [file('/etc/chrony.conf', 'newer')] } });
    await test.grant(target);
    await expect(test.run('prepare', { ...test.step, target })).rejects.toEqual(code('Drifted'));
    await expect(test.run('apply', { ...test.step, target })).rejects.toEqual(code('Drifted'));
    expect(test.annotations()[KEYS.reason]).toContain('/etc/chrony.conf: other contents');
    expect(await test.fake.text('/etc/chrony.conf')).toBe('by hand');
  });

  it('is Unreconcilable where a running node cannot get there, and Degraded where this host cannot', async () => {
    const test = await setUpNode();
    const target = test.store({}, { fips: true });
    await test.grant(target);
    await expect(test.run('prepare', { ...test.step, target })).rejects.toEqual(code('Unplannable'));
    expect(test.annotations()[KEYS.state]).toBe('Degraded');
    const strict = createNodeActivities({ ...test.deps, irreconcilable: () => ['fips changes'] });
    await expect(test.runWith(strict, 'prepare', { ...test.step, target })).rejects.toEqual(code('Unreconcilable'));
    expect(test.annotations()).toMatchObject({
      [KEYS.state]: 'Unreconcilable',
      [KEYS.reason]: expect.stringContaining('fips changes') as string,
    });
  });

  it('finds after the reboot that the disk is not as the target says', async () => {
    const test = await setUpNode();
    const input = { ...test.step, target: test.store(CHRONY) };
    await test.grant(input.target);
    await test.run('cordon', input);
    await test.run('apply', input);
    await test.fake.boot();
    await test.reportBoot();
    await writeFile(test.fake.path('/etc/chrony.conf'), 'generated at boot');
    await expect(test.run('confirm', input)).rejects.toEqual(code('NotAsTarget'));
    expect(test.annotations()).toMatchObject({ [KEYS.state]: 'Degraded' });
  });
});

describe('crashes and duplicates', () => {
  /** Runs an activity until the power goes before a step; it never ends. */
  async function losePowerAt(fake: FakeHost, part: string, start: () => Promise<unknown>): Promise<void> {
    await new Promise<void>((resolve) => {
      fake.onStep = (step) => {
        if (!step.includes(part)) return;
        resolve();
        return new Promise<never>(() => undefined);
      };
      void start();
    });
    fake.onStep = () => undefined;
  }

  it('keeps a second attempt out while the first is at work, and lets it in after a reboot', async () => {
    const test = await setUpNode();
    const input = { ...test.step, target: test.store(CHRONY) };
    await test.grant(input.target);
    await test.run('cordon', input);
    await losePowerAt(test.fake, '/etc/chrony.conf', () => test.run('apply', input));
    await expect(test.run('apply', input)).rejects.toEqual(code('HostBusy'));
    await expect(test.run('prepare', input)).rejects.toEqual(code('HostBusy'));
    await test.fake.boot();
    expect(await test.run('apply', input)).toMatchObject({ reboot: true, filesWritten: 1 });
  });

  it('puts back a half-done apply when the worker starts again, and may then be retargeted', async () => {
    const test = await setUpNode();
    await test.update(test.store({ storage: { files: [file('/etc/a', '1'), file('/etc/b', '1')] } }));
    const old = await treeOf(test.fake.root, [
      '/var/lib/drydock/blobs',
      '/proc',
      '/var/lib/drydock-lab',
      '/var/lib/drydock/lock',
    ]);
    const target = test.store({ storage: { files: [file('/etc/a', '2'), file('/etc/b', '2')] } });
    await test.grant(target);
    await test.run('cordon', { ...test.step, target });
    await losePowerAt(test.fake, '/etc/b', () => test.run('apply', { ...test.step, target }));
    expect(await test.fake.text('/etc/a')).toBe('2');
    await test.fake.boot();
    await registerNode(test.deps);
    expect(
      await treeOf(test.fake.root, [
        '/var/lib/drydock/blobs',
        '/proc',
        '/var/lib/drydock-lab',
        '/var/lib/drydock/lock',
      ]),
    ).toEqual(old);
    expect(test.annotations()[DRYDOCK_ANNOTATIONS.applying]).toBeUndefined();
  });

  it('registers what the disk says after the annotations were lost, and keeps an open update', async () => {
    const test = await setUpNode();
    const first = test.store(CHRONY);
    await test.update(first);
    await test.cluster.patch(
      KINDS.node,
      { name: 'n1' },
      { metadata: { annotations: { [KEYS.currentConfig]: null, [KEYS.state]: null } } },
    );
    await registerNode(test.deps);
    expect(test.annotations()).toMatchObject({ [KEYS.currentConfig]: first, [KEYS.state]: 'Done' });
    const input = { ...test.step, target: test.store({ storage: { files: [file('/etc/b', '2')] } }) };
    await test.grant(input.target);
    await test.run('cordon', input);
    await test.run('apply', input);
    await test.fake.boot();
    await registerNode(test.deps);
    expect(test.annotations()).toMatchObject({
      [KEYS.currentConfig]: first,
      [DRYDOCK_ANNOTATIONS.applying]: input.target,
    });
  });

  it('lifts the cordon although the answers of the API server are lost', async () => {
    const test = await setUpNode();
    const input = { ...test.step, target: test.store(CHRONY) };
    await test.grant(input.target);
    await test.run('cordon', input);
    await test.run('apply', input);
    await test.fake.boot();
    await test.reportBoot();
    await test.run('confirm', input);
    test.cluster.failNext({ verb: 'patch', kind: 'Node' }, { afterEffect: true });
    await expect(test.run('uncordon', input)).rejects.toEqual(code('ApiUnavailable'));
    await test.run('uncordon', input);
    expect(test.annotations()).toMatchObject({ [KEYS.state]: 'Done', [KEYS.currentConfig]: input.target });
    expect(await test.fake.store.journal()).toBeUndefined();
  });

  it('waits for a Node that does not exist yet', async () => {
    const test = await setUpNode();
    await test.cluster.delete(KINDS.node, { name: 'n1' });
    const retries: number[] = [];
    await registerNode(test.deps, {
      onRetry: (_, delayMs) => {
        retries.push(delayMs);
        test.cluster.add(KINDS.node, { metadata: { name: 'n1', uid: 'uid-2' } });
      },
    });
    expect(retries).toHaveLength(1);
    expect(test.annotations()).toMatchObject({ [KEYS.currentConfig]: EMPTY_CONFIG_NAME, [KEYS.state]: 'Done' });
  });
});
