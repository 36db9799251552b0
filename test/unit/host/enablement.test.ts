import { lstat, mkdir, readlink, rm, symlink, writeFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import type { UpdatePlan } from '../../../activities/host/plan.js';
import { verifyHost } from '../../../activities/host/verify.js';
import type { MachineConfig } from '../../../machine-config/api/machine-config.js';
import {
  applyTo,
  bring,
  fakeHost,
  planTo,
  rendered,
  replaceSystemctl,
  treeOf,
  type FakeHost,
} from '../../support/fake-host.js';

const UNIT = '[Service]\nExecStart=/bin/true\n[Install]\nWantedBy=multi-user.target\n';
const FOLDER = '/etc/systemd/system';
const WANTS = `${FOLDER}/multi-user.target.wants`;
const VENDOR = '/usr/lib/systemd/system';

const withUnits = (name: string, ...units: object[]): MachineConfig => rendered(name, { systemd: { units } });
const acts = ({ enablement }: UpdatePlan) => ({ enable: enablement.enable, disable: enablement.disable });
const isThere = (fake: FakeHost, path: string) =>
  lstat(fake.path(path)).then(
    () => true,
    () => false,
  );
const hostTree = (fake: FakeHost) => treeOf(fake.root, ['/var/lib/drydock']);

describe('enabled: true, false and nothing at all', () => {
  /** The answer of systemctl, whether a config wants it enabled, and what is done. */
  const CASES: [state: string, wish: boolean, done: 'enable' | 'disable' | 'nothing' | 'refused'][] = [
    ['enabled', true, 'nothing'],
    ['disabled', true, 'enable'],
    ['static', true, 'nothing'],
    ['generated', true, 'nothing'],
    ['transient', true, 'nothing'],
    ['alias', true, 'nothing'],
    ['indirect', true, 'enable'],
    ['enabled-runtime', true, 'enable'],
    ['linked', true, 'enable'],
    ['masked-runtime', true, 'refused'],
    ['enabled', false, 'disable'],
    ['disabled', false, 'nothing'],
    ['static', false, 'nothing'],
    ['masked', false, 'nothing'],
    ['generated', false, 'nothing'],
    ['indirect', false, 'nothing'],
    ['enabled-runtime', false, 'nothing'],
    ['linked', false, 'nothing'],
  ];
  it.each(CASES)('a unit that is %s, wish %s: %s', async (state, wish, done) => {
    const fake = await fakeHost();
    replaceSystemctl(fake, () => ({ enablement: () => Promise.resolve(state) }));
    const target = withUnits('r1', { name: 'chronyd.service', enabled: wish });
    if (done === 'refused') {
      await expect(planTo(fake, target)).rejects.toThrow(/chronyd\.service.*unmask --runtime/);
      return;
    }
    const plan = await planTo(fake, target);
    expect(acts(plan)).toEqual({
      enable: done === 'enable' ? ['chronyd.service'] : [],
      disable: done === 'disable' ? ['chronyd.service'] : [],
    });
    // What is done for is what drift looks for, and nothing else.
    const { host } = fake;
    const drift = await verifyHost(target, { host, sshUser: 'core', booted: false });
    if (state !== 'indirect' && state !== 'linked') expect(drift.length > 0).toBe(done !== 'nothing');
  });

  it('does nothing about a unit that is as wished, at however many updates', async () => {
    const fake = await fakeHost();
    const units = [
      { name: 'a.service', enabled: false, contents: UNIT },
      { name: 'b.service', enabled: true, contents: UNIT },
    ];
    await bring(fake, withUnits('r1', ...units));
    expect(acts(await planTo(fake, withUnits('r2', ...units)))).toEqual({ enable: [], disable: [] });
  });

  it('enables an indirect unit once, since it stays indirect', async () => {
    const fake = await fakeHost();
    replaceSystemctl(fake, (real) => ({
      enablement: async (unit) => (unit === 'chronyd.service' ? 'indirect' : real.enablement(unit)),
    }));
    await bring(fake, withUnits('r1', { name: 'chronyd.service', enabled: true }));
    expect(acts(await planTo(fake, withUnits('r2', { name: 'chronyd.service', enabled: true })))).toEqual({
      enable: [],
      disable: [],
    });
  });

  it('leaves the state of a unit alone of which a config says nothing, whatever its body', async () => {
    const fake = await fakeHost();
    await fake.host.systemctl.enable(['chronyd.service']);
    await bring(
      fake,
      withUnits('r1', { name: 'chronyd.service', contents: UNIT }, { name: 'new.service', contents: UNIT }),
    );
    expect(await isThere(fake, `${WANTS}/chronyd.service`)).toBe(true);
    expect(await isThere(fake, `${WANTS}/new.service`)).toBe(false);
  });

  it('gives a unit that no config enables any more the links that it had before the first one did', async () => {
    const fake = await fakeHost();
    await mkdir(fake.path(`${FOLDER}/theirs.target.wants`));
    await symlink(`${VENDOR}/chronyd.service`, fake.path(`${FOLDER}/theirs.target.wants/chronyd.service`));
    const before = await hostTree(fake);
    await bring(fake, withUnits('r1', { name: 'chronyd.service', enabled: false }));
    expect(await isThere(fake, `${FOLDER}/theirs.target.wants`)).toBe(false);
    await bring(fake, withUnits('r2', { name: 'chronyd.service', enabled: true }));
    await bring(fake, withUnits('r3', { name: 'chronyd.service' }));
    expect(await hostTree(fake)).toEqual(before);
  });

  it('warns of a wish that nothing can be done about', async () => {
    const fake = await fakeHost();
    await writeFile(fake.path(`${VENDOR}/bare.service`), '[Service]\nExecStart=/bin/true\n');
    const { warnings } = await planTo(fake, withUnits('r1', { name: 'bare.service', enabled: true }));
    expect(warnings).toEqual(['bare.service shall be enabled, but is static: its file does not say by what']);
  });
});

describe('masks', () => {
  const path = `${FOLDER}/rpcbind.service`;
  const mask = (name: string, value?: boolean) =>
    withUnits(name, { name: 'rpcbind.service', ...(value === undefined ? {} : { mask: value }) });

  it('go with mask: false, and with no word of a mask any more where it was ours', async () => {
    for (const next of [mask('r2', false), mask('r2')]) {
      const fake = await fakeHost();
      await bring(fake, mask('r1', true));
      expect(await readlink(fake.path(path))).toBe('/dev/null');
      await bring(fake, next);
      expect(await isThere(fake, path)).toBe(false);
    }
  });

  it('of an administrator stay where a config says nothing of one', async () => {
    const fake = await fakeHost();
    await symlink('/dev/null', fake.path(path));
    await bring(fake, mask('r1'));
    expect(await readlink(fake.path(path))).toBe('/dev/null');
  });

  it('leave the links of an enabled unit, which is enabled again without the mask', async () => {
    const fake = await fakeHost();
    await fake.host.systemctl.enable(['rpcbind.service']);
    const before = await hostTree(fake);
    await bring(fake, mask('r1', true));
    expect(await fake.host.systemctl.enablement('rpcbind.service')).toBe('masked');
    await bring(fake, rendered('r2', {}));
    expect(await hostTree(fake)).toEqual(before);
  });
});

describe('bodies and drop-ins', () => {
  it('without contents mean: no file of that name', async () => {
    const fake = await fakeHost();
    await mkdir(fake.path(`${FOLDER}/chronyd.service.d`));
    await writeFile(fake.path(`${FOLDER}/chronyd.service.d/10-a.conf`), '[Service]\nNice=1\n');
    const before = await hostTree(fake);
    const dropins = [{ name: '10-a.conf', contents: '' }, { name: '20-b.conf' }];
    const target = withUnits('r1', { name: 'chronyd.service', contents: '', dropins });
    await bring(fake, target);
    expect(await isThere(fake, `${FOLDER}/chronyd.service.d/10-a.conf`)).toBe(false);
    expect(await isThere(fake, `${FOLDER}/chronyd.service`)).toBe(false);
    const { host } = fake;
    expect(await verifyHost(target, { host, sshUser: 'core', booted: false })).toEqual([]);
    await bring(fake, rendered('r2', {}));
    expect(await hostTree(fake)).toEqual(before);
  });
});

describe('templates', () => {
  const template = (wantedBy: string) => ({ name: 'tunnel@.service', contents: `[Install]\nWantedBy=${wantedBy}\n` });
  const instance = { name: 'tunnel@a.service', enabled: true };

  it('give their instances links, which follow when the template changes and go with it', async () => {
    const fake = await fakeHost();
    const before = await hostTree(fake);
    await bring(fake, withUnits('r1', template('multi-user.target'), instance));
    expect(await readlink(fake.path(`${WANTS}/tunnel@a.service`))).toBe(`${FOLDER}/tunnel@.service`);
    await bring(fake, withUnits('r2', template('other.target'), instance));
    expect(await isThere(fake, WANTS)).toBe(false);
    expect(await readlink(fake.path(`${FOLDER}/other.target.wants/tunnel@a.service`))).toBe(
      `${FOLDER}/tunnel@.service`,
    );
    await bring(fake, rendered('r3', {}));
    expect(await hostTree(fake)).toEqual(before);
  });

  it('leave no link of an instance that an administrator enabled when they go', async () => {
    const fake = await fakeHost();
    await bring(fake, withUnits('r1', template('multi-user.target')));
    await fake.host.systemctl.enable(['tunnel@b.service']);
    await bring(fake, withUnits('r2', template('other.target')));
    expect(await isThere(fake, `${FOLDER}/other.target.wants/tunnel@b.service`)).toBe(true);
    await bring(fake, rendered('r3', {}));
    expect(await isThere(fake, `${FOLDER}/other.target.wants`)).toBe(false);
  });
});

describe('when enabling meets a broken link', () => {
  const target = withUnits('r1', { name: 'foo.service', enabled: true, contents: UNIT });

  /** As some versions of systemd do. */
  async function withOldSystemd(refuses: (fake: FakeHost) => Promise<boolean>) {
    const fake = await fakeHost();
    await mkdir(fake.path(WANTS));
    await symlink('/usr/lib/systemd/system/gone.service', fake.path(`${WANTS}/foo.service`));
    await symlink('/nowhere', fake.path(`${WANTS}/theirs.service`));
    replaceSystemctl(fake, (real) => ({
      enablement: async (unit) => (unit === 'foo.service' ? 'disabled' : real.enablement(unit)),
      async enable(units) {
        if (await refuses(fake)) throw new Error('Failed to enable unit: File exists');
        await real.enable(units);
      },
    }));
    return fake;
  }
  const isBroken = async (fake: FakeHost) =>
    (await readlink(fake.path(`${WANTS}/foo.service`)).catch(() => '')) === '/usr/lib/systemd/system/gone.service';

  it('that link goes, and no other, and it is tried once more', async () => {
    const fake = await withOldSystemd(isBroken);
    await bring(fake, target);
    expect(await readlink(fake.path(`${WANTS}/foo.service`))).toBe(`${FOLDER}/foo.service`);
    expect(await readlink(fake.path(`${WANTS}/theirs.service`))).toBe('/nowhere');
  });

  it('the second failure is told, and the link is there again', async () => {
    let tries = 0;
    const fake = await withOldSystemd(() => Promise.resolve(++tries > 0));
    const before = await hostTree(fake);
    await expect(applyTo(fake, await planTo(fake, target))).rejects.toThrow(
      'enabling foo.service: Failed to enable unit: File exists; everything was put back',
    );
    expect(tries).toBe(2);
    expect(await hostTree(fake)).toEqual(before);
  });

  it('without a broken link it is told at once', async () => {
    let tries = 0;
    const fake = await withOldSystemd(() => Promise.resolve(++tries > 0));
    await rm(fake.path(`${WANTS}/foo.service`));
    await expect(applyTo(fake, await planTo(fake, target))).rejects.toThrow('File exists');
    expect(tries).toBe(1);
  });
});

describe('units that systemd treats together', () => {
  it('have their links back after a failure, too', async () => {
    const fake = await fakeHost();
    const socket = `[Install]\nWantedBy=sockets.target\n`;
    await writeFile(fake.path(`${VENDOR}/foo.socket`), socket);
    const before = await hostTree(fake);
    fake.onStep = (step) => {
      if (step === 'closing the change') throw new Error('injected');
    };
    const target = withUnits('r1', { name: 'foo.service', enabled: true, contents: `${UNIT}Also=foo.socket\n` });
    await expect(applyTo(fake, await planTo(fake, target))).rejects.toThrow('injected');
    expect(await hostTree(fake)).toEqual(before);
  });
});
