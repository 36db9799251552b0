import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { NotPossibleHere } from '../../../activities/host/entry.js';
import { planUpdate } from '../../../activities/host/plan.js';
import { serviceActionsOf } from '../../../activities/host/simulated-host.js';
import { recover } from '../../../activities/host/undo.js';
import { DRYDOCK_ANNOTATIONS } from '../../../machine-config/api/flavour.js';
import type { NodeDisruptionPolicy } from '../../../machine-config/api/node-disruption-policy.js';
import {
  applyTo,
  bring,
  fakeHost,
  file,
  losePowerAt,
  planTo,
  reload,
  rendered,
  replaceSystemctl,
  restart,
  withPolicies,
  type FakeHost,
} from '../../support/fake-host.js';

const NONE = { type: 'None' as const };
const UNIT = '[Service]\nExecStart=/bin/true\n[Install]\nWantedBy=multi-user.target\n';

const withFiles = (name: string, ...paths: string[]) =>
  rendered(name, { storage: { files: paths.map((path) => file(path, `of ${name}`)) } });

/** A policy of somebody for one file. */
const forFile = (path: string, ...actions: NonNullable<NodeDisruptionPolicy['files']>[number]['actions']) => ({
  files: [{ path, actions }],
});

/** What was asked of services since the last call, as `restart chronyd.service`. */
function asked(fake: FakeHost) {
  let seen = 0;
  return async () => {
    const actions = (await serviceActionsOf(fake.root)).map(({ action, unit }) => `${action} ${unit}`);
    return actions.slice(seen, (seen = actions.length));
  };
}

/** A systemd that refuses to start what was started so often since it was last told to forget. */
function limitStarts(fake: FakeHost, burst: number): void {
  const starts = new Map<string, number>();
  replaceSystemctl(fake, (real) => {
    const limited = (job: (unit: string) => Promise<void>) => async (unit: string) => {
      const count = (starts.get(unit) ?? 0) + 1;
      starts.set(unit, count);
      if (count > burst) {
        await real.stop(unit);
        throw new Error(`Job for ${unit} failed (result start-limit-hit)`);
      }
      await job(unit);
    };
    return {
      start: limited((unit) => real.start(unit)),
      restart: limited((unit) => real.restart(unit)),
      resetFailed: (unit) => Promise.resolve(void starts.delete(unit)),
    };
  });
}

async function running(...units: string[]) {
  const fake = await fakeHost();
  for (const unit of units) await fake.host.systemctl.start(unit);
  const hear = asked(fake);
  await hear();
  return { fake, hear };
}

describe('what a change costs', () => {
  it('is a reboot where no policy says otherwise, and then no service is touched', async () => {
    const { fake, hear } = await running('chronyd.service');
    const { plan, journal } = await bring(fake, withFiles('r1', '/etc/other'));
    expect(plan).toMatchObject({ cost: 'reboot', actions: [{ type: 'Reboot' }], stop: [] });
    expect(journal.needsReboot).toBe(true);
    expect(await hear()).toEqual([]);
  });

  it('is what the policies say that the target carries', async () => {
    const { fake, hear } = await running('chronyd.service', 'rpcbind.service');
    const policy: NodeDisruptionPolicy = {
      files: [
        { path: '/etc/a', actions: [reload('rpcbind.service'), restart('chronyd.service')] },
        { path: '/etc/b', actions: [{ type: 'DaemonReload' }, reload('chronyd.service')] },
      ],
    };
    const reloads: number[] = [];
    replaceSystemctl(fake, (real) => ({
      async reload() {
        reloads.push((await serviceActionsOf(fake.root)).length);
        await real.reload();
      },
    }));
    const { plan, journal } = await bring(fake, withPolicies(withFiles('r1', '/etc/a', '/etc/b'), policy));
    expect(plan.cost).toBe('services');
    expect(journal.needsReboot).toBe(false);
    expect(await hear()).toEqual(['reload rpcbind.service', 'restart chronyd.service']);
    // Before the services, which were started twice at the beginning.
    expect(reloads).toEqual([2]);
  });

  it('reads unit files again only where one has changed or a policy says so', async () => {
    const fake = await fakeHost();
    let reloads = 0;
    replaceSystemctl(fake, () => ({
      reload() {
        reloads++;
        return Promise.resolve();
      },
    }));
    await bring(fake, withPolicies(withFiles('r1', '/etc/a'), forFile('/etc/a', NONE)));
    expect(reloads).toBe(0);
    const path = '/etc/systemd/system/chronyd.service.d/a.conf';
    await bring(fake, withPolicies(withFiles('r2', '/etc/a', path), { files: [{ path: '/etc', actions: [NONE] }] }));
    expect(reloads).toBe(1);
  });

  it('drains without a reboot where the policy says so', async () => {
    const { fake, hear } = await running('chronyd.service');
    const policy = forFile('/etc/a', { type: 'Drain' }, restart('chronyd.service'));
    const { plan, journal } = await bring(fake, withPolicies(withFiles('r1', '/etc/a'), policy));
    expect(plan.cost).toBe('drain');
    expect(journal.needsReboot).toBe(false);
    expect(await hear()).toEqual(['restart chronyd.service']);
  });

  it('is judged by what differs on the disk, not between the configs', async () => {
    const fake = await fakeHost();
    await writeFile(fake.path('/etc/here'), 'of r1');
    const policy = forFile('/etc/new', NONE);
    const target = withPolicies(withFiles('r1', '/etc/here', '/etc/new'), policy);
    expect((await planTo(fake, target)).cost).toBe('none');
    await writeFile(fake.path('/etc/here'), 'something else');
    expect((await planTo(fake, target)).cost).toBe('reboot');
  });

  it('is nothing for a node that has all of the target already', async () => {
    const fake = await fakeHost();
    const target = rendered('r1', {
      storage: { files: [file('/etc/here', 'x')] },
      systemd: { units: [{ name: 'foo.service', enabled: true, contents: UNIT }, { name: 'chronyd.service' }] },
    });
    await writeFile(fake.path('/etc/here'), 'x');
    await writeFile(fake.path('/etc/systemd/system/foo.service'), UNIT);
    await fake.host.systemctl.enable(['foo.service']);
    expect(await planTo(fake, target)).toMatchObject({ cost: 'none', changes: [], actions: [], units: [] });
  });

  it('judges registries.conf by the file that is on the disk when no config wrote it', async () => {
    const { fake } = await running('crio.service');
    await writeFile(fake.path('/usr/lib/systemd/system/crio.service'), UNIT);
    await mkdir(fake.path('/etc/containers'));
    await writeFile(fake.path('/etc/containers/registries.conf'), 'unqualified-search-registries = ["a.example"]\n');
    const target = (registries: string) => {
      const text = `unqualified-search-registries = [${registries}]\n`;
      return rendered('r1', { storage: { files: [file('/etc/containers/registries.conf', text)] } });
    };
    const reloads = [reload('crio.service')];
    const added = await planTo(fake, target('"a.example", "b.example"'));
    expect(added).toMatchObject({ cost: 'services', actions: reloads });
    const replaced = await planTo(fake, target('"b.example"'));
    expect(replaced).toMatchObject({ cost: 'drain', actions: [{ type: 'Drain' }, ...reloads] });
  });

  it('finds a policy by the path that the config writes, also where links lead elsewhere', async () => {
    const fake = await fakeHost();
    await mkdir(fake.path('/var/opt'), { recursive: true });
    await symlink('/var/opt', fake.path('/opt'));
    const target = withPolicies(withFiles('r1', '/opt/a'), forFile('/opt', NONE));
    expect((await planTo(fake, target)).cost).toBe('none');
  });

  it('counts a path as the file and as the drop-in that it turns into', async () => {
    const fake = await fakeHost();
    const path = '/etc/systemd/system/chronyd.service.d/20-x.conf';
    const units = [{ name: 'chronyd.service', dropins: [{ name: '20-x.conf', contents: '[Unit]\n' }] }];
    await bring(fake, rendered('r1', { storage: { files: [file(path, 'x')] } }));
    await fake.boot();
    const next = rendered('r2', { systemd: { units } });
    const forUnit = { units: [{ name: 'chronyd.service', actions: [NONE] }] };
    expect((await planTo(fake, withPolicies(next, forUnit))).cost).toBe('reboot');
    const both = { ...forUnit, ...forFile(path, NONE) };
    expect((await planTo(fake, withPolicies(next, both))).cost).toBe('none');
  });

  it('stays a reboot while an earlier update waits for one', async () => {
    const fake = await fakeHost();
    await applyTo(fake, await planTo(fake, withFiles('r1', '/etc/a')));
    const next = withPolicies(withFiles('r2', '/etc/a'), forFile('/etc/a', restart('chronyd.service')));
    const plan = await planTo(fake, next);
    expect(plan).toMatchObject({ cost: 'reboot', actions: [{ type: 'Reboot' }] });
    expect(await applyTo(fake, plan)).toMatchObject({ needsReboot: true, previous: { target: 'r1' } });
    await fake.boot();
    expect((await planTo(fake, { ...next, metadata: { ...next.metadata, name: 'r3' } })).cost).toBe('none');
  });

  it('is a reboot for a forced update, whatever changes', async () => {
    const fake = await fakeHost();
    const { host, store } = fake;
    const target = rendered('r1', {});
    const input = { host, store, current: target, target, sshUser: 'core' };
    expect((await planTo(fake, target)).cost).toBe('none');
    expect(await planUpdate({ ...input, forced: true })).toMatchObject({ cost: 'reboot', changes: [] });
  });

  it('refuses a target whose policies cannot be read', async () => {
    const fake = await fakeHost();
    const target = withPolicies(withFiles('r1', '/etc/a'), {});
    const annotations = { [DRYDOCK_ANNOTATIONS.disruptionPolicies]: '{"files": 1}' };
    const damaged = { ...target, metadata: { ...target.metadata, annotations } };
    await expect(planTo(fake, damaged)).rejects.toThrow(NotPossibleHere);
    await expect(planTo(fake, damaged)).rejects.toThrow(DRYDOCK_ANNOTATIONS.disruptionPolicies);
  });
});

describe('services that are not as a policy thinks', () => {
  it('leaves out, with a warning, what only a built-in policy names and the host does not have', async () => {
    const { fake, hear } = await running();
    const target = withFiles('r1', '/etc/containers/policy.json', '/etc/containers/registries.conf');
    const { plan } = await bring(fake, target);
    expect(plan).toMatchObject({ cost: 'none', actions: [] });
    expect(plan.warnings).toEqual(['crio.service is not reloaded: this host does not have it']);
    expect(await hear()).toEqual([]);
  });

  it('refuses what somebody asked for and neither the host nor the target has, naming policy, path and unit', async () => {
    const fake = await fakeHost();
    const target = withPolicies(withFiles('r1', '/etc/a/b'), forFile('/etc/a', restart('none.service')));
    await expect(planTo(fake, target)).rejects.toThrow(
      'nodeDisruptionPolicy for /etc/a (file /etc/a/b): Restart of none.service cannot be done: this host does not have it',
    );
    const brought = rendered('r1', {
      storage: { files: [file('/etc/a/b', 'x')] },
      systemd: { units: [{ name: 'none.service', contents: UNIT }] },
    });
    const policy: NodeDisruptionPolicy = {
      ...forFile('/etc/a', restart('none.service')),
      units: [{ name: 'none.service', actions: [NONE] }],
    };
    expect((await planTo(fake, withPolicies(brought, policy))).actions).toEqual([restart('none.service')]);
  });

  it('refuses to restart a unit that is masked on the host, and the node worker itself', async () => {
    const fake = await fakeHost();
    await symlink('/dev/null', fake.path('/etc/systemd/system/chronyd.service'));
    await writeFile(fake.path('/etc/systemd/system/drydock-node.service'), UNIT);
    for (const unit of ['chronyd.service', 'drydock-node.service']) {
      const target = withPolicies(withFiles('r1', '/etc/a'), forFile('/etc/a', restart(unit)));
      await expect(planTo(fake, target), unit).rejects.toThrow(`Restart of ${unit} cannot be done`);
    }
  });

  it('does not reload what does not run, and says so', async () => {
    const { fake, hear } = await running();
    const target = withPolicies(withFiles('r1', '/etc/a'), forFile('/etc/a', reload('chronyd.service')));
    const { plan } = await bring(fake, target);
    expect(plan.warnings).toEqual(['chronyd.service is not reloaded: it does not run']);
    expect(await hear()).toEqual([]);
  });

  it('knows units without a file of their own: generated, transient, or by another name', async () => {
    const fake = await fakeHost();
    replaceSystemctl(fake, (real) => ({
      enablement: (unit) => (unit === 'data.mount' ? Promise.resolve('generated') : real.enablement(unit)),
    }));
    const target = withPolicies(withFiles('r1', '/etc/a'), forFile('/etc/a', restart('data.mount')));
    expect((await planTo(fake, target)).actions).toEqual([restart('data.mount')]);
  });
});

describe('units that go', () => {
  const foo = (name: string) => rendered(name, { systemd: { units: [{ name: 'foo.service', contents: UNIT }] } });
  const restartsFoo: NodeDisruptionPolicy = { units: [{ name: 'foo.service', actions: [restart('foo.service')] }] };

  it('stops a unit that runs and whose file goes for good, before the file goes', async () => {
    const { fake, hear } = await running();
    await bring(fake, foo('r1'));
    await fake.boot();
    await fake.host.systemctl.start('foo.service');
    await hear();
    const { plan } = await bring(fake, withPolicies(rendered('r2', {}), restartsFoo));
    expect(plan.warnings).toEqual(['foo.service is not restarted: it goes with this update']);
    expect(await hear()).toEqual(['stop foo.service']);
    expect(fake.steps.indexOf('stopping foo.service')).toBeLessThan(
      fake.steps.findIndex((step) => step.startsWith('removing /etc/systemd/system/foo.service')),
    );
  });

  it('does not stop it where a reboot follows, where it does not run, or where the distribution has one', async () => {
    const { fake, hear } = await running();
    await bring(fake, foo('r1'));
    await fake.boot();
    expect(await planTo(fake, withPolicies(rendered('r2', {}), restartsFoo))).toMatchObject({ stop: [] });
    await fake.host.systemctl.start('foo.service');
    expect(await planTo(fake, rendered('r2', {}))).toMatchObject({ cost: 'reboot', stop: [] });
    await writeFile(fake.path('/usr/lib/systemd/system/foo.service'), UNIT);
    await hear();
    await bring(fake, withPolicies(rendered('r2', {}), restartsFoo));
    expect(await hear()).toEqual(['restart foo.service']);
  });

  it('stops the instances that a config named when their template goes', async () => {
    const { fake, hear } = await running();
    const units = [
      { name: 'tunnel@.service', contents: UNIT },
      { name: 'tunnel@a.service', enabled: true },
    ];
    await bring(fake, rendered('r1', { systemd: { units } }));
    await fake.boot();
    await fake.host.systemctl.start('tunnel@a.service');
    await hear();
    const none = units.map(({ name }) => ({ name, actions: [NONE] }));
    await bring(fake, withPolicies(rendered('r2', {}), { units: none }));
    expect(await hear()).toEqual(['stop tunnel@a.service']);
  });

  it('starts it again when the update fails, with its file back', async () => {
    const { fake, hear } = await running();
    await bring(fake, foo('r1'));
    await fake.boot();
    await fake.host.systemctl.start('foo.service');
    await hear();
    fake.onStep = (step) => {
      if (step === 'closing the change') throw new Error('injected');
    };
    await expect(bring(fake, withPolicies(rendered('r2', {}), restartsFoo))).rejects.toThrow('injected');
    expect(await hear()).toEqual(['stop foo.service', 'start foo.service']);
    expect(fake.steps.indexOf('undo: starting foo.service')).toBeGreaterThan(
      fake.steps.indexOf('undo: putting back /etc/systemd/system/foo.service'),
    );
  });

  it('lets a unit run on that is only masked, and says so', async () => {
    const { fake, hear } = await running('rpcbind.service');
    const target = rendered('r1', { systemd: { units: [{ name: 'rpcbind.service', mask: true }] } });
    const policy = { units: [{ name: 'rpcbind.service', actions: [restart('rpcbind.service')] }] };
    const { plan } = await bring(fake, withPolicies(target, policy));
    expect(plan.warnings).toEqual([
      'rpcbind.service is not restarted: it is masked by this update',
      'rpcbind.service is masked and goes on running: stop it, or it ends with the next reboot',
    ]);
    expect(await hear()).toEqual([]);
  });

  it('says that the running value of a sysctl stays when its file goes without a reboot', async () => {
    const fake = await fakeHost();
    const path = '/etc/sysctl.d/50-x.conf';
    await bring(fake, withFiles('r1', path));
    await fake.boot();
    expect((await planTo(fake, rendered('r2', {}))).warnings).toEqual([]);
    const { warnings } = await planTo(fake, withPolicies(rendered('r2', {}), forFile(path, NONE)));
    expect(warnings).toEqual([`${path} goes, and the running value stays until the next reboot`]);
  });
});

describe('a service that fails', () => {
  const policy = {
    files: [
      { path: '/etc/a', actions: [reload('rpcbind.service'), restart('kubelet.service'), restart('chronyd.service')] },
    ],
  };
  const target = withPolicies(withFiles('r1', '/etc/a'), policy);
  const fails = (fake: FakeHost, isBad: (text: string) => boolean) => {
    replaceSystemctl(fake, (real) => ({
      async restart(unit) {
        await real.restart(unit);
        const text = await fake.text('/etc/a').catch(() => 'old');
        if (unit === 'chronyd.service' && isBad(text)) throw new Error('exit status 1');
      },
    }));
  };

  it('undoes the update, and the services before it get their old files, last one first', async () => {
    const { fake, hear } = await running('rpcbind.service', 'chronyd.service');
    fails(fake, (text) => text !== 'old');
    await expect(bring(fake, target)).rejects.toThrow(
      'restarting chronyd.service: exit status 1; everything was put back as it was',
    );
    expect(await hear()).toEqual([
      'reload rpcbind.service',
      'restart kubelet.service',
      'restart chronyd.service',
      'restart chronyd.service',
      // It did not run before.
      'stop kubelet.service',
      'reload rpcbind.service',
    ]);
    expect(await fake.store.journal()).toBeUndefined();
    await expect(fake.text('/etc/a')).rejects.toThrow('ENOENT');
  });

  it('that does not come back either is told, and keeps nothing open', async () => {
    const { fake } = await running('chronyd.service');
    fails(fake, () => true);
    await expect(bring(fake, target)).rejects.toThrow(
      'restarting chronyd.service: exit status 1; everything was put back as it was, but chronyd.service could not get its old files into effect: exit status 1',
    );
    expect(await fake.store.journal()).toBeUndefined();
  });

  it('only after it was restarted is seen, too', async () => {
    const { fake } = await running('chronyd.service');
    let isDown = false;
    replaceSystemctl(fake, (real) => ({
      async restart(unit) {
        await real.restart(unit);
        isDown = unit === 'chronyd.service' && !fake.steps.some((step) => step.startsWith('undo'));
      },
      isActive: async (unit) => !(isDown && unit === 'chronyd.service') && real.isActive(unit),
    }));
    await expect(bring(fake, target)).rejects.toThrow('chronyd.service ended right after it had the new files');
  });

  it('is started with other files however often it was started before', async () => {
    const { fake } = await running('chronyd.service');
    limitStarts(fake, 2);
    for (let round = 0; round < 3; round++) {
      await bring(fake, withPolicies(withFiles(`r${round}`, '/etc/a'), forFile('/etc/a', restart('chronyd.service'))));
    }
    expect(await fake.host.systemctl.isActive('chronyd.service')).toBe(true);
  });

  it('gets its old files back however often it was started before', async () => {
    const { fake } = await running('chronyd.service', 'foo.service');
    limitStarts(fake, 2);
    await bring(fake, rendered('r1', { systemd: { units: [{ name: 'foo.service', contents: UNIT }] } }));
    await fake.boot();
    const going = { ...policy, units: [{ name: 'foo.service', actions: [NONE] }] };
    const next = withPolicies(withFiles('r2', '/etc/a'), going);
    fake.onStep = (step) => {
      if (step === 'closing the change') throw new Error('injected');
    };
    for (let round = 0; round < 3; round++) {
      await expect(bring(fake, next)).rejects.toThrow(/everything was put back as it was$/);
      for (const unit of ['chronyd.service', 'foo.service']) {
        expect(await fake.host.systemctl.isActive(unit), unit).toBe(true);
      }
    }
  });

  it.each([
    ['comes back when it is started once more', 1, /everything was put back as it was$/],
    ['that ends again is told', 2, /but chronyd.service could not get its old files .*: it ended right after it was/],
  ])('although it was restarted with its old files, and %s', async (_, ends, message) => {
    const { fake } = await running('chronyd.service');
    let left = ends;
    replaceSystemctl(fake, (real) => {
      // Started, and gone a moment later.
      const dying = (job: (unit: string) => Promise<void>) => async (unit: string) => {
        await job(unit);
        const isUndo = fake.steps.some((step) => step.startsWith('undo'));
        if (isUndo && unit === 'chronyd.service' && left-- > 0) await real.stop(unit);
      };
      return { start: dying((unit) => real.start(unit)), restart: dying((unit) => real.restart(unit)) };
    });
    fake.onStep = (step) => {
      if (step === 'closing the change') throw new Error('injected');
    };
    await expect(bring(fake, target)).rejects.toThrow(message);
    expect(await fake.host.systemctl.isActive('chronyd.service')).toBe(ends === 1);
    expect(await fake.store.journal()).toBeUndefined();
  });

  it('does its work again with the old files if doing its work is all it does', async () => {
    const { fake, hear } = await running();
    const unit = '[Service]\nType=oneshot\nExecStart=/bin/update-ca-trust\n';
    await writeFile(fake.path('/etc/systemd/system/trust.service'), unit);
    replaceSystemctl(fake, (real) => ({ isActive: async (name) => name !== 'trust.service' && real.isActive(name) }));
    const oneshot = withPolicies(withFiles('r1', '/etc/a'), forFile('/etc/a', restart('trust.service')));
    fake.onStep = (step) => {
      if (step === 'closing the change') throw new Error('injected');
    };
    await expect(bring(fake, oneshot)).rejects.toThrow('injected');
    expect(await hear()).toEqual(['restart trust.service', 'restart trust.service']);
  });

  it('writes down what it begins before it does', async () => {
    const { fake } = await running('rpcbind.service', 'chronyd.service');
    const written: unknown[] = [];
    replaceSystemctl(fake, (real) => ({
      async restart(unit) {
        written.push(
          (await fake.store.journal())?.undo.services?.map((service) => `${service.action} ${service.unit}`),
        );
        await real.restart(unit);
      },
    }));
    await bring(fake, target);
    expect(written).toEqual([
      ['reload rpcbind.service', 'restart kubelet.service'],
      ['reload rpcbind.service', 'restart kubelet.service', 'restart chronyd.service'],
    ]);
  });

  it('is told of by the recovery after a crash, too', async () => {
    const { fake } = await running('chronyd.service');
    await losePowerAt(
      fake,
      (step) => step === 'closing the change',
      () => bring(fake, target),
    );
    fails(fake, () => true);
    const told: string[] = [];
    expect(await recover(fake.host, fake.store, (sentence) => told.push(sentence))).toBe('undone');
    expect(told).toEqual(['chronyd.service could not get its old files into effect: exit status 1']);
  });
});
