import { chmod, mkdir, symlink, writeFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import type { Host, Systemctl } from '../../../activities/host/host.js';
import { serviceActionsOf } from '../../../activities/host/simulated-host.js';
import { recover } from '../../../activities/host/undo.js';
import { verifyHost } from '../../../activities/host/verify.js';
import type { MachineConfig } from '../../../machine-config/api/machine-config.js';
import {
  applyTo,
  bring,
  fakeHost,
  file,
  imageBackend,
  losePowerAt,
  planTo,
  rendered,
  restart,
  reload,
  treeOf,
  withPolicies,
  type FakeHost,
} from '../../support/fake-host.js';

const UNIT = '[Service]\nExecStart=/bin/true\n[Install]\nWantedBy=multi-user.target\n';
/** Contents of the originals are kept by hash, leftovers of them are no change; what was asked of services is a log. */
const EXCEPT = ['/var/lib/drydock/blobs', '/var/lib/drydock-lab/services.jsonl'];

const OLD_IGNITION = {
  storage: {
    files: [
      file('/etc/chrony.conf', 'one'),
      file('/etc/gone/soon', 'x'),
      file('/etc/both', '1', { mode: 0o600 }),
      file('/etc/systemd/system/chronyd.service.d/20-x.conf', '[Unit]\n'),
    ],
  },
  systemd: {
    units: [
      { name: 'foo.service', enabled: true, contents: UNIT },
      { name: 'old.service', enabled: true, contents: UNIT },
      { name: 'tunnel@.service', contents: UNIT },
      { name: 'tunnel@a.service', enabled: true },
      { name: 'rpcbind.service', mask: true },
    ],
  },
};
const NEXT_IGNITION = {
  storage: {
    files: [file('/etc/motd', 'two'), file('/etc/new/deep/file', 'y'), file('/etc/both', '2', { mode: 0o640 })],
  },
  systemd: {
    units: [
      {
        name: 'foo.service',
        enabled: true,
        contents: `${UNIT}# changed\n[Install]\nAlso=foo.socket\n`,
        dropins: [{ name: 'a.conf', contents: '[Unit]\n' }],
      },
      { name: 'foo.socket', contents: '[Install]\nWantedBy=sockets.target\n' },
      { name: 'chronyd.service', enabled: true, dropins: [{ name: '20-x.conf', contents: '[Unit]\n#\n' }] },
      { name: 'tunnel@.service', contents: UNIT.replace('multi-user', 'other') },
      { name: 'tunnel@a.service', enabled: true },
      { name: 'rpcbind.service', mask: false },
    ],
  },
  passwd: { users: [{ name: 'core', sshAuthorizedKeys: ['ssh-ed25519 A'] }] },
};

/** Nothing of it costs more than services. */
const BY_SERVICES = {
  files: [
    { path: '/', actions: [{ type: 'None' as const }] },
    { path: '/etc/both', actions: [{ type: 'DaemonReload' as const }, restart('foo.service')] },
    { path: '/etc/motd', actions: [reload('chronyd.service'), restart('kubelet.service')] },
  ],
  units: ['foo.service', 'foo.socket', 'old.service', 'chronyd.service', 'rpcbind.service', 'tunnel@.service'].map(
    (name) => ({ name, actions: [{ type: 'None' as const }] }),
  ),
};

const REBOOTING: [MachineConfig, MachineConfig] = [
  rendered('r1', OLD_IGNITION, { kernelArguments: ['a=1'], osImageURL: 'registry.example.com/os@sha256:1' }),
  rendered('r2', NEXT_IGNITION, {
    kernelArguments: ['b=2'],
    osImageURL: 'registry.example.com/os@sha256:2',
    kernelType: 'realtime',
    extensions: ['usbguard'],
  }),
];
const BY_SERVICES_ONLY: [MachineConfig, MachineConfig] = [
  rendered('r1', OLD_IGNITION),
  withPolicies(rendered('r2', NEXT_IGNITION), BY_SERVICES),
];

/** Does what it is given, and fails the first time when that is done. */
type FailOnce = (work: () => Promise<void>) => Promise<void>;

interface Fault {
  /** Updates of the other cost have no such step. */
  readonly only?: string;
  readonly inject: (host: Host, fail: FailOnce) => Host;
}

const inSystemctl = (change: (real: Systemctl, fail: FailOnce) => Partial<Systemctl>): Fault['inject'] => {
  return (host, fail) => ({ ...host, systemctl: { ...host.systemctl, ...change(host.systemctl, fail) } });
};

const FAULTS: Record<string, Fault> = {
  'disabling foo.service': {
    inject: inSystemctl((real, fail) => ({ disable: (units) => fail(() => real.disable(units)) })),
  },
  'enabling foo.service': {
    inject: inSystemctl((real, fail) => ({ enable: (units) => fail(() => real.enable(units)) })),
  },
  'reloading systemd': { inject: inSystemctl((real, fail) => ({ reload: () => fail(() => real.reload()) })) },
  'writing /etc/motd': {
    inject: (host, fail) => ({
      ...host,
      label: (written, path) => (path === '/etc/motd' ? fail(() => host.label(written, path)) : Promise.resolve()),
    }),
  },
  'staging the operating system': {
    only: 'reboot',
    inject: (host, fail) => ({ ...host, os: { ...host.os, stage: (wanted) => fail(() => host.os.stage(wanted)) } }),
  },
  'stopping old.service': {
    only: 'services',
    inject: inSystemctl((real, fail) => ({ stop: (unit) => fail(() => real.stop(unit)) })),
  },
  'restarting foo.service': {
    only: 'services',
    inject: inSystemctl((real, fail) => ({ restart: (unit) => fail(() => real.restart(unit)) })),
  },
  'reloading chronyd.service': {
    only: 'services',
    inject: inSystemctl((real, fail) => ({ reloadUnit: (unit) => fail(() => real.reloadUnit(unit)) })),
  },
};

const RUNNING = ['foo.service', 'old.service', 'chronyd.service'];

describe.each([
  ['an update with another image and a reboot', REBOOTING, 'reboot'],
  ['an update that stops, reloads and restarts services', BY_SERVICES_ONLY, 'services'],
])('all or nothing: %s', { timeout: 120_000 }, (_, [old, next], cost) => {
  async function machine(copyOf?: FakeHost): Promise<FakeHost> {
    const fake = await fakeHost(copyOf);
    fake.host = { ...fake.host, os: imageBackend(fake.root) };
    return fake;
  }

  /** A machine on the old config with running services, and how it looks. */
  async function onOld() {
    const first = await machine();
    await chmod(first.path('/etc/motd'), 0o640);
    await mkdir(first.path('/etc/systemd/system/multi-user.target.wants'), { recursive: true });
    await symlink('/nowhere', first.path('/etc/systemd/system/multi-user.target.wants/theirs.service'));
    await bring(first, old);
    await first.boot();
    for (const unit of RUNNING) await first.host.systemctl.start(unit);
    return { first, before: await treeOf(first.root, EXCEPT) };
  }

  async function stepsOf(first: FakeHost): Promise<string[]> {
    const fake = await machine(first);
    const { plan } = await bring(fake, next);
    expect(plan.cost).toBe(cost);
    return [...fake.steps];
  }

  /** Runs what ran before, and what was acted upon heard of it again after the files were back. */
  async function expectServicesAsBefore(fake: FakeHost, what: string): Promise<void> {
    const { systemctl } = fake.host;
    const running = [];
    for (const unit of [...RUNNING, 'kubelet.service']) if (await systemctl.isActive(unit)) running.push(unit);
    expect(running, what).toEqual(RUNNING);
  }

  it('fails at any step with a reason that names it, and has everything put back', async () => {
    const { first, before } = await onOld();
    const steps = await stepsOf(first);
    expect(steps.length).toBeGreaterThan(20);
    for (const [failing, step] of steps.entries()) {
      const fake = await machine(first);
      const plan = await planTo(fake, next);
      fake.onStep = (_step, index) => {
        if (index === failing) throw new Error('injected\ncause');
      };
      await expect(applyTo(fake, plan), step).rejects.toThrow(`${step}: injected cause; everything was put back`);
      expect(await treeOf(fake.root, EXCEPT), `failed at ${step}`).toEqual(before);
      await expectServicesAsBefore(fake, `failed at ${step}`);
    }
  });

  it.each(Object.entries(FAULTS).filter(([, { only = cost }]) => only === cost))(
    'fails at %s with the work done, or half of it, and has that put back, too',
    async (words, { inject }) => {
      const { first, before } = await onOld();
      const fake = await machine(first);
      const plan = await planTo(fake, next);
      let calls = 0;
      fake.host = inject(fake.host, async (work) => {
        await work();
        if (calls++ === 0) throw new Error('injected');
      });
      const injected = new RegExp(`^${words}.*: injected; everything was put back as it was$`);
      await expect(applyTo(fake, plan)).rejects.toThrow(injected);
      expect(await treeOf(fake.root, EXCEPT)).toEqual(before);
      await expectServicesAsBefore(fake, words);
    },
  );

  it('loses the power, or its process, before any step and again while it recovers, and ends in the whole old state', async () => {
    const { first, before } = await onOld();
    const steps = await stepsOf(first);
    for (const [crash, step] of steps.entries()) {
      const fake = await machine(first);
      const plan = await planTo(fake, next);
      await losePowerAt(
        fake,
        (_step, index) => index === crash,
        () => applyTo(fake, plan),
      );
      await losePowerAt(
        fake,
        (_step, index) => index === crash % 7,
        () => recover(fake.host, fake.store),
      );
      await recover(fake.host, fake.store);
      expect(await treeOf(fake.root, EXCEPT), `lost before ${step}`).toEqual(before);
      await expectServicesAsBefore(fake, `lost before ${step}`);
      const { host } = fake;
      expect(await verifyHost(old, { host, sshUser: 'core', booted: false })).toEqual([]);
    }
  });

  it('loses the power at any step of undoing, and ends in the whole old state', async () => {
    const { first, before } = await onOld();
    const last = (await stepsOf(first)).length - 1;
    const begun = await machine(first);
    const plan = await planTo(begun, next);
    await losePowerAt(
      begun,
      (_step, index) => index === last,
      () => applyTo(begun, plan),
    );
    const whole = await machine(begun);
    await recover(whole.host, whole.store);
    for (const [crash, step] of whole.steps.entries()) {
      const fake = await machine(begun);
      await losePowerAt(
        fake,
        (_step, index) => index === crash,
        () => recover(fake.host, fake.store),
      );
      expect(await recover(fake.host, fake.store), step).toBe('undone');
      expect(await treeOf(fake.root, EXCEPT), `lost at ${step}`).toEqual(before);
      await expectServicesAsBefore(fake, `lost at ${step}`);
    }
  });

  it('removes what a write that was cut off left beside its place', async () => {
    const { first, before } = await onOld();
    const fake = await machine(first);
    const plan = await planTo(fake, next);
    await losePowerAt(
      fake,
      (step) => step.includes('/etc/motd'),
      () => applyTo(fake, plan),
    );
    await writeFile(fake.path('/etc/.motd.drydock-new'), 'half of it');
    await recover(fake.host, fake.store);
    expect(await treeOf(fake.root, EXCEPT)).toEqual(before);
  });

  it('is at the whole new state once the journal says so, and stays there', async () => {
    const { first } = await onOld();
    const fake = await machine(first);
    const journal = await applyTo(fake, await planTo(fake, next));
    expect(journal).toMatchObject({ phase: 'applied', target: 'r2', needsReboot: cost === 'reboot' });
    expect(await recover(fake.host, fake.store)).toBe('nothing');
    expect(await verifyHost(next, { host: fake.host, sshUser: 'core', booted: false })).toEqual([]);
    expect((await fake.store.currentConfig())?.metadata.name).toBe('r2');
    expect(await fake.text('/etc/chrony.conf')).toMatch(/^pool /);
    const before = await treeOf(fake.root);
    const again = await planTo(fake, { ...next, metadata: { ...next.metadata, name: 'r3' } });
    expect(again.changes).toEqual([]);
    expect(await treeOf(fake.root)).toEqual(before);
  });

  it('frees room before it needs some, so that a full disk can be undone', async () => {
    const { first } = await onOld();
    const fake = await machine(first);
    fake.onStep = (step) => {
      if (step === 'closing the change') throw new Error('ENOSPC');
    };
    await expect(applyTo(fake, await planTo(fake, next))).rejects.toThrow('ENOSPC');
    const put = fake.steps.filter((step) => step.startsWith('undo: putting back /')).map((step) => step.slice(19));
    expect(put.indexOf('/etc/new/deep/file')).toBeLessThan(put.indexOf('/etc/gone/soon'));
    expect(put.indexOf('/etc/new/deep/file')).toBeLessThan(put.indexOf('/etc/motd'));
  });

  it('leaves services alone in a later boot, which started them with the old files', async () => {
    const { first, before } = await onOld();
    const fake = await machine(first);
    const plan = await planTo(fake, next);
    await losePowerAt(
      fake,
      (step) => step === 'closing the change',
      () => applyTo(fake, plan),
    );
    await fake.boot();
    const asked = (await serviceActionsOf(fake.root)).length;
    await recover(fake.host, fake.store);
    expect(await serviceActionsOf(fake.root)).toHaveLength(asked);
    const rebooted = ['/proc', '/var/lib/drydock-lab/boots.jsonl', '/var/lib/drydock-lab/services.jsonl'];
    const but = (tree: Record<string, string>) =>
      Object.entries(tree).filter(([path]) => !rebooted.some((prefix) => path.startsWith(prefix)));
    expect(but(await treeOf(fake.root, EXCEPT))).toEqual(but(before));
  });
});
