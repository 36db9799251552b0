import { lstat, mkdir, writeFile } from 'node:fs/promises';
import type { ApplicationFailure } from '@temporalio/common';
import { describe, expect, it } from 'vitest';
import { FORCE_FILE } from '../../../activities/host/force.js';
import { serviceActionsOf } from '../../../activities/host/simulated-host.js';
import { KINDS } from '../../../activities/kubernetes/client.js';
import { createNodeActivities } from '../../../activities/node/activities.js';
import { apiFlavour, DRYDOCK_ANNOTATIONS, EMPTY_CONFIG_NAME } from '../../../machine-config/api/flavour.js';
import type { NodeDisruptionPolicy } from '../../../machine-config/api/node-disruption-policy.js';
import { freezePolicies } from '../../../machine-config/change/frozen-policies.js';
import { mergePolicies } from '../../../machine-config/change/policies.js';
import { file, imageBackend, reload, restart, treeOf } from '../../support/fake-host.js';
import { setUpNode, type NodeObject } from '../../support/node-under-test.js';

const flavour = apiFlavour('openshift');
const KEYS = flavour.annotations;
const NONE = { type: 'None' as const };
const UNIT = '[Service]\nExecStart=/bin/true\n[Install]\nWantedBy=multi-user.target\n';
const code = (type: string) => expect.objectContaining({ type }) as ApplicationFailure;
/** The host, without what is Drydock's own and the lab's. */
const EXCEPT = ['/var/lib/drydock', '/proc', '/run'];

type UnderTest = Awaited<ReturnType<typeof setUpNode>>;

/** Stores a config with policies, as a pool's render does, and grants it. */
async function granted(
  test: UnderTest,
  ignition: object,
  { policy = {}, spec = {} }: { policy?: NodeDisruptionPolicy; spec?: object } = {},
) {
  const target = test.store(ignition, spec);
  const annotations = { [DRYDOCK_ANNOTATIONS.disruptionPolicies]: freezePolicies(mergePolicies(policy), 1) };
  await test.cluster.patch(flavour.machineConfig, { name: target }, { metadata: { annotations } });
  await test.grant(target);
  return { ...test.step, target };
}

const annotate = (test: UnderTest, annotations: Record<string, string | null>) =>
  test.cluster.patch(KINDS.node, { name: 'n1' }, { metadata: { annotations } });

/** Whether the Node was ever unschedulable from now on. */
function watchCordons(test: UnderTest): () => boolean {
  let cordoned = false;
  test.cluster.observe<NodeObject>(KINDS.node, (_, { spec }) => {
    cordoned ||= spec?.unschedulable === true;
  });
  return () => cordoned;
}

describe('what prepare tells of a plan', () => {
  const policy: NodeDisruptionPolicy = {
    files: [{ path: '/etc', actions: [restart('chronyd.service')] }],
    units: [{ name: 'rpcbind.service', actions: [NONE] }],
  };

  it('names files, units and actions, counts them, and never tells contents', async () => {
    const test = await setUpNode();
    await test.fake.host.systemctl.start('rpcbind.service');
    const ignition = {
      storage: { files: [file('/etc/a', 'secret'), file('/etc/b/c', 'secret')] },
      systemd: { units: [{ name: 'rpcbind.service', mask: true }] },
    };
    const result = await test.run('prepare', await granted(test, ignition, { policy }));
    expect(result).toMatchObject({
      disruption: 'services',
      changes: { files: 2, units: 1, sshKeys: 0, kernelArguments: 0 },
      summary: '2 files, 1 unit; restart chronyd.service',
      files: ['/etc/a', '/etc/b/c'],
      units: ['rpcbind.service'],
      actions: ['restart chronyd.service'],
      warnings: ['rpcbind.service is masked and goes on running: stop it, or it ends with the next reboot'],
    });
    expect(JSON.stringify(result)).not.toMatch(/secret|c2VjcmV0/);
  });

  it.each([
    ['reboot', '1 file; reboot', {}],
    [
      'drain',
      '1 file; drain, daemon-reload, reload chronyd.service and 1 more',
      {
        files: [
          {
            path: '/etc/a',
            actions: [
              { type: 'Drain' as const },
              { type: 'DaemonReload' as const },
              reload('chronyd.service'),
              restart('kubelet.service'),
            ],
          },
        ],
      },
    ],
    ['none', '1 file; no reboot', { files: [{ path: '/etc/a', actions: [NONE] }] }],
  ])('says that it costs %s', async (disruption, summary, policies) => {
    const test = await setUpNode();
    const input = await granted(test, { storage: { files: [file('/etc/a', 'x')] } }, { policy: policies });
    expect(await test.run('prepare', input)).toMatchObject({ disruption, summary });
  });

  it('stays short, whatever the config', async () => {
    const test = await setUpNode();
    const files = Array.from({ length: 30 }, (_, index) => file(`/etc/many/${'n'.repeat(200)}${index}`, 'x'));
    const units = Array.from({ length: 30 }, (_, index) => ({
      name: `${'u'.repeat(240)}${index}.service`,
      enabled: true,
    }));
    const services = Array.from({ length: 10 }, (_, index) => `s${index}.service`);
    for (const name of services) await writeFile(test.fake.path(`/usr/lib/systemd/system/${name}`), UNIT);
    const policies = { files: [{ path: '/etc', actions: services.map((name) => restart(name)) }] };
    const input = await granted(test, { storage: { files }, systemd: { units } }, { policy: policies });
    const result = await test.run('prepare', input);
    expect(result.files).toHaveLength(20);
    expect(result.warnings).toHaveLength(10);
    expect(result.actions).toHaveLength(10);
    expect(result.summary).toBe('30 files; restart s0.service, restart s1.service, restart s2.service and 7 more');
    expect(JSON.stringify(result).length).toBeLessThan(10_000);
  });
});

describe('an update that services carry out', () => {
  it('ends Done with neither cordon nor reboot', async () => {
    const test = await setUpNode();
    const wasCordoned = watchCordons(test);
    const policy = { files: [{ path: '/etc/chrony.conf', actions: [restart('chronyd.service')] }] };
    const { target } = await granted(test, { storage: { files: [file('/etc/chrony.conf', 'ours')] } }, { policy });
    await test.update(target);
    expect(test.annotations()).toMatchObject({ [KEYS.state]: 'Done', [KEYS.currentConfig]: target });
    expect(wasCordoned()).toBe(false);
    expect(test.fake.reboots).toEqual([]);
    const actions = (await serviceActionsOf(test.fake.root)).map(({ action, unit }) => `${action} ${unit}`);
    expect(actions).toEqual(['restart chronyd.service']);
  });

  it('restarts nothing a second time when apply is asked again', async () => {
    const test = await setUpNode();
    const policy = { files: [{ path: '/etc/chrony.conf', actions: [restart('chronyd.service')] }] };
    const input = await granted(test, { storage: { files: [file('/etc/chrony.conf', 'ours')] } }, { policy });
    const first = await test.run('apply', input);
    expect(await test.run('apply', input)).toEqual(first);
    expect(await serviceActionsOf(test.fake.root)).toHaveLength(1);
  });
});

describe('apply on a node that is not cordoned', () => {
  it.each([
    ['a reboot', {}],
    ['a drain', { files: [{ path: '/etc/a', actions: [{ type: 'Drain' as const }] }] }],
  ])('is refused before anything happens if it costs %s, and the node is not to blame', async (_, policy) => {
    const test = await setUpNode();
    const input = await granted(test, { storage: { files: [file('/etc/a', 'x')] } }, { policy });
    const before = await treeOf(test.fake.root);
    await expect(test.run('apply', input)).rejects.toEqual(code('NotDrained'));
    expect(await treeOf(test.fake.root)).toEqual(before);
    expect(test.annotations()).toMatchObject({ [KEYS.state]: 'Done' });
    expect(test.annotations()[DRYDOCK_ANNOTATIONS.applying]).toBeUndefined();
    await test.run('cordon', input);
    expect(await test.run('apply', input)).toMatchObject({ filesWritten: 1 });
  });

  it('goes on where somebody else holds the cordon', async () => {
    const test = await setUpNode();
    const input = await granted(test, { storage: { files: [file('/etc/a', 'x')] } });
    await test.cluster.patch(KINDS.node, { name: 'n1' }, { spec: { unschedulable: true } });
    expect(await test.run('apply', input)).toMatchObject({ reboot: true });
  });
});

describe('a node that is adopted', () => {
  const ignition = {
    storage: { files: [file('/etc/here', 'x'), file('/etc/sub/too', 'y', { mode: 0o600 })] },
    systemd: {
      units: [
        { name: 'foo.service', enabled: true, contents: UNIT },
        { name: 'rpcbind.service', mask: false },
      ],
    },
  };

  /** A node that was set up by other means, as the config says. */
  async function setUpByOthers() {
    const test = await setUpNode();
    const { fake } = test;
    await mkdir(fake.path('/etc/sub'));
    await writeFile(fake.path('/etc/here'), 'x');
    await writeFile(fake.path('/etc/sub/too'), 'y', { mode: 0o600 });
    await writeFile(fake.path('/etc/systemd/system/foo.service'), UNIT);
    await fake.host.systemctl.enable(['foo.service']);
    return test;
  }

  it('and has all of the target already is Done without a cordon, and nothing was touched', async () => {
    const test = await setUpByOthers();
    const wasCordoned = watchCordons(test);
    const before = await treeOf(test.fake.root, ['/var/lib/drydock']);
    const { target } = await granted(test, ignition);
    expect(test.annotations()[KEYS.currentConfig]).toBe(EMPTY_CONFIG_NAME);
    expect(await test.run('prepare', { ...test.step, target })).toMatchObject({
      disruption: 'none',
      summary: 'nothing to change; no reboot',
    });
    await test.update(target);
    expect(test.annotations()).toMatchObject({ [KEYS.state]: 'Done', [KEYS.currentConfig]: target });
    expect(wasCordoned()).toBe(false);
    expect(test.fake.reboots).toEqual([]);
    expect(await treeOf(test.fake.root, ['/var/lib/drydock'])).toEqual(before);
  });

  it('and lacks something pays for that only, and keeps what it had when no config wants it any more', async () => {
    const test = await setUpByOthers();
    const before = await treeOf(test.fake.root, ['/var/lib/drydock', '/proc', '/var/lib/drydock-lab']);
    const more = { ...ignition, storage: { files: [...ignition.storage.files, file('/etc/new', 'z')] } };
    const policy = { files: [{ path: '/etc/new', actions: [NONE] }] };
    const input = await granted(test, more, { policy });
    expect(await test.run('prepare', input)).toMatchObject({
      disruption: 'none',
      changes: { files: 1, units: 0 },
      files: ['/etc/new'],
    });
    await test.update(input.target);
    const last = await granted(test, {});
    await test.update(last.target);
    const after = await treeOf(test.fake.root, ['/var/lib/drydock', '/proc', '/var/lib/drydock-lab']);
    expect(after).toEqual(before);
  });

  it('with kernel arguments that it runs with already is not rebooted for them', async () => {
    const test = await setUpNode();
    const running = (await test.fake.text('/proc/cmdline')).trim();
    await writeFile(test.fake.path('/proc/cmdline'), `${running} hugepagesz=2M hugepages=512 quiet\n`);
    const has = await granted(test, {}, { spec: { kernelArguments: ['hugepagesz=2M', 'hugepages=512'] } });
    expect(await test.run('prepare', has)).toMatchObject({ disruption: 'none', changes: { kernelArguments: 2 } });
    const lacks = await granted(test, {}, { spec: { kernelArguments: ['hugepages=512', 'hugepagesz=2M'] } });
    expect(await test.run('prepare', lacks)).toMatchObject({ disruption: 'reboot' });
    await test.grant(has.target);
    await test.update(has.target);
    expect(test.annotations()).toMatchObject({ [KEYS.state]: 'Done' });
    expect(test.fake.reboots).toEqual([]);
  });
});

describe('a disk that is not as the current config says', () => {
  const first = { storage: { files: [file('/etc/a', '1'), file('/etc/b', '1')] } };

  async function drifted() {
    const test = await setUpNode();
    await test.update(test.store(first));
    await writeFile(test.fake.path('/etc/a'), '2');
    return test;
  }

  it('is in nobody’s way if the target is exactly what is there', async () => {
    const test = await drifted();
    const wasCordoned = watchCordons(test);
    const before = await treeOf(test.fake.root, EXCEPT);
    const { target } = await granted(test, { storage: { files: [file('/etc/a', '2'), file('/etc/b', '1')] } });
    await test.update(target);
    expect(test.annotations()).toMatchObject({ [KEYS.state]: 'Done', [KEYS.currentConfig]: target });
    expect(wasCordoned()).toBe(false);
    expect(await treeOf(test.fake.root, EXCEPT)).toEqual(before);
  });

  it.each([
    ['changes something else', [file('/etc/a', '2'), file('/etc/b', '2')]],
    ['removes something', [file('/etc/a', '2')]],
    ['would overwrite it', [file('/etc/a', '3'), file('/etc/b', '1')]],
    ['cannot be carried out here', [file('/etc/a', '2'), file('/swapfile', '1')]],
  ])('stays in the way of a target that %s', async (_, files) => {
    const test = await drifted();
    const input = await granted(test, { storage: { files } });
    await expect(test.run('prepare', input)).rejects.toEqual(code('Drifted'));
    await expect(test.run('cordon', input)).rejects.toEqual(code('Drifted'));
    await expect(test.run('apply', input)).rejects.toEqual(code('Drifted'));
    expect(await test.fake.text('/etc/a')).toBe('2');
  });

  it('is overwritten when forced: all of the config, with a reboot, and the force file is used up', async () => {
    const test = await drifted();
    const current = test.annotations()[KEYS.currentConfig] ?? '';
    const bootId = await test.fake.host.bootId();
    await writeFile(test.fake.path(FORCE_FILE), '');
    await annotate(test, { [DRYDOCK_ANNOTATIONS.force]: bootId, [KEYS.state]: 'Degraded' });
    const input = { ...test.step, target: current };
    await expect(test.run('prepare', input)).rejects.toEqual(code('NotGranted'));
    await annotate(test, { [DRYDOCK_ANNOTATIONS.forceGranted]: 'an earlier boot' });
    await expect(test.run('apply', input)).rejects.toEqual(code('NotGranted'));

    await annotate(test, { [DRYDOCK_ANNOTATIONS.forceGranted]: bootId });
    expect(await test.run('prepare', input)).toMatchObject({ disruption: 'reboot', files: ['/etc/a'] });
    await test.run('cordon', input);
    expect(await test.run('apply', input)).toMatchObject({ reboot: true, filesWritten: 1 });
    expect(await test.fake.text('/etc/a')).toBe('1');
    await expect(lstat(test.fake.path(FORCE_FILE))).rejects.toThrow('ENOENT');
  });

  it('keeps the force file when the forced update fails, and says so on the Node', async () => {
    const test = await drifted();
    const current = test.annotations()[KEYS.currentConfig] ?? '';
    const bootId = await test.fake.host.bootId();
    await writeFile(test.fake.path(FORCE_FILE), '');
    await annotate(test, { [DRYDOCK_ANNOTATIONS.force]: bootId, [DRYDOCK_ANNOTATIONS.forceGranted]: bootId });
    const input = { ...test.step, target: current };
    await test.run('cordon', input);
    test.fake.onStep = (step) => {
      if (step.startsWith('writing /etc/a')) throw new Error('EIO');
    };
    await expect(test.run('apply', input)).rejects.toEqual(code('ApplyFailed'));
    expect(test.annotations()).toMatchObject({
      [KEYS.state]: 'Degraded',
      [KEYS.reason]: expect.stringContaining('EIO') as string,
    });
    await lstat(test.fake.path(FORCE_FILE));
  });
});

describe('the reason on the Node', () => {
  const ignition = {
    storage: { files: [file('/etc/chrony.conf', 'ours'), file('/etc/new/file', 'x')] },
    systemd: {
      units: [
        { name: 'foo.service', enabled: true, contents: UNIT, dropins: [{ name: 'a.conf', contents: '[Unit]\n' }] },
        { name: 'chronyd.service', enabled: false },
      ],
    },
    passwd: { users: [{ name: 'core', sshAuthorizedKeys: ['ssh-ed25519 AAAA secret'] }] },
  };
  const policy: NodeDisruptionPolicy = {
    files: [{ path: '/etc', actions: [reload('rpcbind.service'), restart('chronyd.service')] }],
    units: ['foo.service', 'chronyd.service', 'gone.service'].map((name) => ({ name, actions: [NONE] })),
  };

  it.each([
    ['services', {}],
    ['reboot', { osImageURL: 'registry.example.com/os@sha256:1', kernelArguments: ['a=1'] }],
  ])(
    'names step, object and cause in 2,000 characters, whichever step of an update with %s fails',
    async (cost, spec) => {
      const test = await setUpNode();
      const { fake } = test;
      const host = { ...fake.host, os: imageBackend(fake.root) };
      const activities = createNodeActivities({ ...test.deps, host });
      await host.os.stage(await host.os.staged());
      for (const unit of ['rpcbind.service', 'chronyd.service', 'gone.service']) await host.systemctl.start(unit);
      await host.systemctl.enable(['chronyd.service']);
      const gone = await granted(test, { systemd: { units: [{ name: 'gone.service', contents: UNIT }] } }, { policy });
      for (const step of ['prepare', 'apply', 'confirm', 'uncordon'] as const)
        await test.runWith(activities, step, gone);
      const input = await granted(test, ignition, { policy, spec });
      expect(await test.runWith(activities, 'prepare', input)).toMatchObject({ disruption: cost });
      if (cost === 'reboot') await test.runWith(activities, 'cordon', input);
      const except = ['/var/lib/drydock/blobs', '/var/lib/drydock/lock', '/var/lib/drydock-lab/services.jsonl'];
      const before = await treeOf(fake.root, except);

      const failed: string[] = [];
      for (let failing = 0; ; failing++) {
        fake.steps.length = 0;
        fake.onStep = (_step, index) => {
          if (index === failing) throw new Error(`the disk is bad\n${'and worse '.repeat(500)}`);
        };
        try {
          await test.runWith(activities, 'apply', input);
          break;
        } catch (error) {
          expect(error).toEqual(code('ApplyFailed'));
        }
        const step = fake.steps[failing] ?? '';
        failed.push(step);
        const reason = test.annotations()[KEYS.reason] ?? '';
        expect(reason.startsWith(`${step}: the disk is bad and worse`), reason).toBe(true);
        expect(reason).toContain('everything was put back as it was');
        expect(reason.length).toBeLessThanOrEqual(2_000);
        expect(reason).not.toMatch(/\n|secret/);
        expect(await treeOf(fake.root, except), step).toEqual(before);
      }
      const expected = [
        'opening the journal',
        'disabling chronyd.service',
        'writing /etc/chrony.conf of storage.files[0] (/etc/chrony.conf)',
        'writing /etc/new/file of storage.files[1] (/etc/new/file)',
        'writing /etc/systemd/system/foo.service of systemd.units[0] (foo.service)',
        'writing /etc/systemd/system/foo.service.d/a.conf of systemd.units[0] (foo.service) drop-in a.conf',
        'removing /etc/systemd/system/gone.service of systemd.units[0] (gone.service)',
        'reloading systemd',
        'enabling foo.service',
        'closing the change',
        ...(cost === 'reboot'
          ? ['staging the operating system']
          : ['stopping gone.service', 'reloading rpcbind.service', 'restarting chronyd.service']),
      ];
      expect(failed).toEqual(expect.arrayContaining(expected));
    },
  );
});
