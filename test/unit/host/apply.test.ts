import { chmod, lstat, mkdir, readlink, rm, symlink, writeFile } from 'node:fs/promises';
import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { NotPossibleHere } from '../../../activities/host/entry.js';
import { verifyHost } from '../../../activities/host/verify.js';
import type { MachineConfig } from '../../../machine-config/api/machine-config.js';
import { bring, fakeHost, file, planTo, rendered, treeOf, type FakeHost } from '../../support/fake-host.js';

const drift = (fake: FakeHost, config: MachineConfig) =>
  verifyHost(config, { host: fake.host, sshUser: 'core', booted: false });

const UNIT = '[Service]\nExecStart=/bin/true\n[Install]\nWantedBy=multi-user.target\n';
const WANTS = '/etc/systemd/system/multi-user.target.wants';

describe('files', () => {
  it('writes plain, percent-encoded, base64 and gzip contents with mode, owner and parents', async () => {
    const fake = await fakeHost();
    const packed = gzipSync('packed\n').toString('base64');
    await bring(
      fake,
      rendered('r1', {
        storage: {
          files: [
            { path: '/etc/deep/er/plain', contents: { source: 'data:,100%25+1%0A' } },
            {
              path: '/etc/secret',
              mode: 0o400,
              user: { name: 'chrony' },
              group: { name: 'wheel' },
              contents: { source: 'data:;base64,eA==' },
            },
            { path: '/etc/packed', contents: { compression: 'gzip', source: `data:;base64,${packed}` } },
            { path: '/etc/nothing' },
          ],
        },
      }),
    );
    expect(await fake.text('/etc/deep/er/plain')).toBe('100%+1\n');
    expect(await fake.text('/etc/packed')).toBe('packed\n');
    expect(await fake.text('/etc/nothing')).toBe('');
    const tree = await treeOf(fake.root);
    const owner = fake.host.ownerOnDisk({ uid: 994, gid: 10 });
    expect(tree['/etc/secret']).toBe(`file 400 ${owner.uid}:${owner.gid} x`);
    expect(tree['/etc/deep/er']).toMatch(/^directory 755 /);
    expect(tree['/etc/deep/er/plain']).toMatch(/^file 644 /);
  });

  it('is without drift after writing a gzip file', async () => {
    const fake = await fakeHost();
    const source = 'data:;base64,H4sIAAAAAAACA0vkAgAHoerdAgAAAA==';
    const config = rendered('r1', {
      storage: { files: [{ path: '/etc/x.conf', mode: 420, contents: { compression: 'gzip', source } }] },
    });
    await bring(fake, config);
    expect(await fake.text('/etc/x.conf')).toBe('a\n');
    expect(await drift(fake, config)).toEqual([]);
  });

  it('gives a file that the operating system brought back, with mode and owner, when no config manages it any more', async () => {
    const fake = await fakeHost();
    await chmod(fake.path('/etc/chrony.conf'), 0o640);
    await symlink('../usr/share/zoneinfo/UTC', fake.path('/etc/localtime'));
    const before = await treeOf(fake.root, ['/var/lib/drydock']);
    const r1 = rendered('r1', {
      storage: {
        files: [file('/etc/chrony.conf', 'ours'), file('/etc/localtime', 'ours'), file('/opt/new/file', 'x')],
      },
    });
    await bring(fake, r1);
    expect(await fake.text('/etc/chrony.conf')).toBe('ours');
    await bring(fake, rendered('r2', { storage: { files: [file('/etc/chrony.conf', 'ours, changed')] } }));
    await bring(fake, rendered('r3', {}));
    expect(await treeOf(fake.root, ['/var/lib/drydock'])).toEqual(before);
  });

  it('keeps a folder that it made while something else lies in it', async () => {
    const fake = await fakeHost();
    await bring(fake, rendered('r1', { storage: { files: [file('/etc/ours/a', 'a')] } }));
    await writeFile(fake.path('/etc/ours/theirs'), 'b');
    await bring(fake, rendered('r2', {}));
    expect(await fake.text('/etc/ours/theirs')).toBe('b');
    await expect(lstat(fake.path('/etc/ours/a'))).rejects.toThrow('ENOENT');
  });

  it('keeps a path that turns from a file into a drop-in', async () => {
    const fake = await fakeHost();
    const path = '/etc/systemd/system/kubelet.service.d/20-x.conf';
    await bring(fake, rendered('r1', { storage: { files: [file(path, '[Service]\n')] } }));
    const units = [{ name: 'kubelet.service', dropins: [{ name: '20-x.conf', contents: '[Service]\nNice=1\n' }] }];
    await bring(fake, rendered('r2', { systemd: { units } }));
    expect(await fake.text(path)).toBe('[Service]\nNice=1\n');
  });

  it('writes through links that stay in the root and refuses those that leave it', async () => {
    const fake = await fakeHost();
    await mkdir(fake.path('/var/opt'), { recursive: true });
    await symlink('/var/opt', fake.path('/opt'));
    await symlink('../../../../../..', fake.path('/etc/up'));
    await symlink('/no/such/place', fake.path('/etc/lost'));
    const config = (path: string) => rendered('r1', { storage: { files: [file(path, 'x')] } });
    await bring(fake, config('/opt/a'));
    expect(await fake.text('/var/opt/a')).toBe('x');
    for (const path of ['/etc/up/tmp/x', '/etc/lost/x', '/etc/../../x', '/proc/x', '/var/lib/drydock/journal.json']) {
      await expect(planTo(fake, config(path)), path).rejects.toThrow(NotPossibleHere);
    }
  });

  it('refuses an unknown user by the field that names it, and a path that is a folder on the host', async () => {
    const fake = await fakeHost();
    const unknown = rendered('r1', { storage: { files: [file('/etc/x', 'x', { user: { name: 'nobody-here' } })] } });
    await expect(planTo(fake, unknown)).rejects.toThrow(
      'storage.files[0] (/etc/x).user.name: nobody-here does not exist',
    );
    const folder = rendered('r1', { storage: { files: [file('/etc/systemd', 'x')] } });
    await expect(planTo(fake, folder)).rejects.toThrow('/etc/systemd is a directory on this host');
  });

  it('changes nothing at all when it is applied twice', async () => {
    const fake = await fakeHost();
    const ignition = {
      storage: { files: [file('/etc/a', 'a')] },
      systemd: { units: [{ name: 'foo.service', enabled: true, contents: UNIT }] },
    };
    await bring(fake, rendered('r1', ignition));
    const { plan } = await bring(fake, rendered('r2', ignition));
    expect(plan.changes).toEqual([]);
    expect(plan.enablement).toMatchObject({ enable: [], disable: [] });
    expect(plan.cost).toBe('none');
  });
});

describe('units', () => {
  it('enables a unit by the links of its [Install] section, and follows it when that changes', async () => {
    const fake = await fakeHost();
    const unit = (wantedBy: string) => ({
      name: 'foo.service',
      enabled: true,
      contents: `[Install]\nWantedBy=${wantedBy}\n`,
    });
    await bring(fake, rendered('r1', { systemd: { units: [unit('multi-user.target')] } }));
    expect(await readlink(fake.path(`${WANTS}/foo.service`))).toBe('/etc/systemd/system/foo.service');
    await bring(fake, rendered('r2', { systemd: { units: [unit('other.target')] } }));
    await expect(lstat(fake.path(WANTS))).rejects.toThrow('ENOENT');
    expect(await readlink(fake.path('/etc/systemd/system/other.target.wants/foo.service'))).toBe(
      '/etc/systemd/system/foo.service',
    );
  });

  it('leaves no link behind when the config of an enabled unit goes', async () => {
    const fake = await fakeHost();
    const before = await treeOf(fake.root, ['/var/lib/drydock']);
    const units = [
      {
        name: 'foo.service',
        enabled: true,
        contents: UNIT,
        dropins: [{ name: '10-a.conf', contents: '[Service]\nNice=1\n' }],
      },
      { name: 'chronyd.service', enabled: true },
      { name: 'rpcbind.service', mask: true },
    ];
    await bring(fake, rendered('r1', { systemd: { units } }));
    await bring(fake, rendered('r2', {}));
    expect(await treeOf(fake.root, ['/var/lib/drydock'])).toEqual(before);
  });

  it('enables a unit of the distribution and warns of one that the host does not have', async () => {
    const fake = await fakeHost();
    const units = [
      { name: 'chronyd.service', enabled: true },
      { name: 'none.service', enabled: true, contents: '' },
    ];
    const config = rendered('r1', { systemd: { units } });
    const { plan } = await bring(fake, config);
    expect(await readlink(fake.path(`${WANTS}/chronyd.service`))).toBe('/usr/lib/systemd/system/chronyd.service');
    expect(plan.warnings).toEqual(['none.service shall be enabled, but this host has no such unit']);
    expect(await drift(fake, config)).toEqual([]);
  });

  it('masks, with a mask winning over a body, and unmasks only a mask', async () => {
    const fake = await fakeHost();
    const path = '/etc/systemd/system/rpcbind.service';
    await writeFile(fake.path(path), 'the administrator wrote this');
    const unit = (more: object) => rendered('r', { systemd: { units: [{ name: 'rpcbind.service', ...more }] } });
    await bring(fake, unit({ mask: true, contents: UNIT }));
    expect(await readlink(fake.path(path))).toBe('/dev/null');
    await bring(fake, unit({ mask: false }));
    expect(await fake.text(path)).toBe('the administrator wrote this');
    await writeFile(fake.path(path), 'and changed it');
    await bring(fake, rendered('r2', {}));
    expect(await fake.text(path)).toBe('and changed it');
  });

  it('takes away a mask that an administrator set when the config says mask: false, and gives it back afterwards', async () => {
    const fake = await fakeHost();
    const path = '/etc/systemd/system/rpcbind.service';
    await symlink('/dev/null', fake.path(path));
    const config = rendered('r1', { systemd: { units: [{ name: 'rpcbind.service', mask: false }] } });
    expect(await drift(fake, config)).toMatchObject([{ path, kind: 'mask' }]);
    await bring(fake, config);
    await expect(lstat(fake.path(path))).rejects.toThrow('ENOENT');
    await bring(fake, rendered('r2', {}));
    expect(await readlink(fake.path(path))).toBe('/dev/null');
  });

  it('refuses to enable a unit that is masked on the host', async () => {
    const fake = await fakeHost();
    await symlink('/dev/null', fake.path('/etc/systemd/system/chronyd.service'));
    const config = rendered('r1', { systemd: { units: [{ name: 'chronyd.service', enabled: true }] } });
    await expect(planTo(fake, config)).rejects.toThrow('add mask: false');
  });

  it('disables a unit that an administrator enabled, and lets it be without a wish', async () => {
    const fake = await fakeHost();
    await fake.host.systemctl.enable(['chronyd.service', 'rpcbind.service']);
    await bring(
      fake,
      rendered('r1', {
        systemd: { units: [{ name: 'chronyd.service', enabled: false }, { name: 'rpcbind.service' }] },
      }),
    );
    expect(await fake.host.systemctl.enablement('chronyd.service')).toBe('disabled');
    expect(await fake.host.systemctl.enablement('rpcbind.service')).toBe('enabled');
    await bring(fake, rendered('r2', {}));
    expect(await fake.host.systemctl.enablement('chronyd.service')).toBe('enabled');
  });
});

describe('SSH keys', () => {
  it('writes the keys of the one user, without doubles, all the user’s own, and needs no reboot', async () => {
    const fake = await fakeHost();
    await mkdir(fake.path('/home/core/.ssh'), { mode: 0o755 });
    const keys = rendered('r1', {
      passwd: { users: [{ name: 'core', sshAuthorizedKeys: ['ssh-ed25519 A', 'ssh-ed25519 B', 'ssh-ed25519 A'] }] },
    });
    const { plan } = await bring(fake, keys);
    expect(plan.cost).toBe('none');
    expect(plan.counts).toEqual({ files: 0, units: 0, sshKeys: 1, kernelArguments: 0 });
    const { uid, gid } = fake.host.ownerOnDisk({ uid: 1000, gid: 1000 });
    const tree = await treeOf(fake.root);
    expect(tree['/home/core/.ssh']).toBe(`directory 700 ${uid}:${gid}`);
    expect(tree['/home/core/.ssh/authorized_keys.d/ignition']).toBe(
      `file 600 ${uid}:${gid} ssh-ed25519 A\nssh-ed25519 B\n`,
    );
    await bring(fake, rendered('r2', {}));
    await expect(lstat(fake.path('/home/core/.ssh/authorized_keys.d'))).rejects.toThrow('ENOENT');
  });

  it('refuses another user', async () => {
    const fake = await fakeHost();
    const config = rendered('r1', { passwd: { users: [{ name: 'alice', sshAuthorizedKeys: ['ssh-ed25519 A'] }] } });
    await expect(planTo(fake, config)).rejects.toThrow('only the user core can be configured');
  });
});

describe('kernel arguments and the operating system', () => {
  it('stages arguments in order, several in one string too, and the reboot makes them current', async () => {
    const fake = await fakeHost();
    const config = rendered(
      'r1',
      {},
      { kernelArguments: ['hugepagesz=1G hugepages=4', 'hugepagesz=2M', 'hugepages=512'] },
    );
    const { plan } = await bring(fake, config);
    expect(plan.cost).toBe('reboot');
    expect(await verifyHost(config, { host: fake.host, sshUser: 'core', booted: true })).toMatchObject([
      { kind: 'kernelArguments' },
    ]);
    await fake.boot();
    expect(await fake.text('/proc/cmdline')).toMatch(/ hugepagesz=1G hugepages=4 hugepagesz=2M hugepages=512\n$/);
    expect(await verifyHost(config, { host: fake.host, sshUser: 'core', booted: true })).toEqual([]);
  });

  it.each([
    ['osImageURL', { osImageURL: 'registry.example.com/os@sha256:1' }],
    ['extensions', { extensions: ['usbguard'] }],
    ['kernelType', { kernelType: 'realtime' }],
  ])('refuses %s, which this host cannot do', async (field, spec) => {
    const fake = await fakeHost();
    await expect(planTo(fake, rendered('r1', {}, spec))).rejects.toThrow(`spec.${field}`);
  });
});

describe('drift', () => {
  it('names contents, mode, type, missing files and enablement, and never tells contents', async () => {
    const fake = await fakeHost();
    const names = ['contents', 'mode', 'type', 'missing'];
    const config = rendered('r1', {
      storage: { files: names.map((name) => file(`/etc/d/${name}`, 'secret')) },
      systemd: { units: [{ name: 'foo.service', enabled: true, contents: UNIT }] },
    });
    await bring(fake, config);
    await writeFile(fake.path('/etc/d/contents'), 'hidden');
    await chmod(fake.path('/etc/d/mode'), 0o4644);
    await rm(fake.path('/etc/d/missing'));
    await rm(fake.path('/etc/d/type'));
    await symlink('contents', fake.path('/etc/d/type'));
    await fake.host.systemctl.disable(['foo.service']);
    const found = await drift(fake, config);
    expect(found.map(({ path, kind }) => `${path} ${kind}`)).toEqual([
      ...names.map((name) => `/etc/d/${name} ${name}`),
      'foo.service enablement',
    ]);
    expect(JSON.stringify(found)).not.toMatch(/secret|hidden/);
  });
});
