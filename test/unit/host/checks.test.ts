import { execFile } from 'node:child_process';
import { chmod, lstat, mkdir, readFile, stat, symlink, writeFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { describe, expect, it, onTestFinished } from 'vitest';
import { NotPossibleHere } from '../../../activities/host/entry.js';
import type { UnitFindings } from '../../../activities/host/host.js';
import type { MachineConfig } from '../../../machine-config/api/machine-config.js';
import {
  bring,
  fakeHost,
  file,
  planTo,
  rendered,
  treeOf,
  withPolicies,
  type FakeHost,
} from '../../support/fake-host.js';

const run = promisify(execFile);
const isRoot = process.geteuid?.() === 0;
const UNIT = '[Service]\nExecStart=/opt/tool/run\n';
const withFile = (path: string, more: object = {}) => rendered('r1', { storage: { files: [file(path, 'x', more)] } });

/** It is refused with these words, and nothing was written. */
async function expectRefused(fake: FakeHost, target: MachineConfig, words: string | RegExp): Promise<void> {
  const before = await treeOf(fake.root);
  await expect(planTo(fake, target), String(words)).rejects.toThrow(NotPossibleHere);
  await expect(planTo(fake, target), String(words)).rejects.toThrow(words);
  expect(await treeOf(fake.root)).toEqual(before);
}

describe('paths that no config may write', () => {
  it.each([
    '/var/lib/kubelet/pki/kubelet-client-current.pem',
    '/var/lib/drydock/journal.json',
    '/opt/drydock/current/bin/node',
    '/etc/drydock/node.env',
    '/run/machine-config-daemon-force',
    '/etc/systemd/system/drydock-node.service',
    '/etc/systemd/system/drydock-node.service.d/10-x.conf',
    '/run/systemd/system/drydock-node.service.d/10-x.conf',
    '/usr/lib/systemd/system/drydock-node.service',
  ])('%s', async (path) => {
    const fake = await fakeHost();
    await expectRefused(fake, withFile(path), /storage\.files\[0\].*may not be managed by a MachineConfig/);
  });

  it('our own unit, whatever a config wants of it', async () => {
    const fake = await fakeHost();
    for (const more of [{ enabled: false }, { mask: true }, { dropins: [{ name: 'a.conf', contents: '[Unit]\n' }] }]) {
      const target = rendered('r1', { systemd: { units: [{ name: 'drydock-node.service', ...more }] } });
      await expectRefused(fake, target, 'systemd.units[0] (drydock-node.service)');
    }
  });

  it('what this host depends on, as it is written and where links really lead', async () => {
    const fake = await fakeHost();
    await mkdir(fake.path('/data/kubelet'), { recursive: true });
    await symlink('/data/kubelet', fake.path('/etc/kubelet'));
    const paths = ['/etc/kubelet/config.conf', '/etc/rancher/agent.kubeconfig'];
    fake.host = { ...fake.host, protectedPaths: () => Promise.resolve(paths) };
    for (const path of [...paths, '/data/kubelet/config.conf']) {
      await expectRefused(fake, withFile(path), 'may not be managed');
    }
    expect((await planTo(fake, withFile('/data/kubelet/other.conf'))).changes).toHaveLength(1);
  });

  it('what a host began to depend on is not removed either when no config wants it any more', async () => {
    const fake = await fakeHost();
    await bring(fake, withFile('/etc/agent.conf'));
    fake.host = { ...fake.host, protectedPaths: () => Promise.resolve(['/etc/agent.conf']) };
    await expectRefused(fake, rendered('r2', {}), '/etc/agent.conf may not be managed');
  });

  it('a file directly in /, while a folder there may be made for one', async () => {
    const fake = await fakeHost();
    await expectRefused(fake, withFile('/swapfile'), '/swapfile lies directly in /');
    expect((await planTo(fake, withFile('/data/swapfile'))).changes.map(({ path }) => path)).toEqual([
      '/data',
      '/data/swapfile',
    ]);
  });
});

function unmountAtEnd(fake: FakeHost, path: string): void {
  onTestFinished(async () => {
    await run('umount', [fake.path(path)]);
  });
}

describe('places that cannot take a file', () => {
  it('a mode that no file has is refused, and one with set-id bits is written', async () => {
    const fake = await fakeHost();
    await expectRefused(fake, withFile('/etc/x', { mode: 0o10644 }), 'storage.files[0] (/etc/x).mode');
    await bring(fake, withFile('/usr/bin/tool', { mode: 0o4755 }));
    expect((await stat(fake.path('/usr/bin/tool'))).mode & 0o7777).toBe(0o4755);
  });

  it.runIf(isRoot)('a read-only file system and a path on which something is mounted', async () => {
    const fake = await fakeHost();
    await mkdir(fake.path('/ro'));
    await writeFile(fake.path('/etc/resolv.conf'), 'x');
    await run('mount', ['-t', 'tmpfs', '-o', 'ro', 'none', fake.path('/ro')]);
    unmountAtEnd(fake, '/ro');
    await run('mount', ['--bind', fake.path('/etc/hostname'), fake.path('/etc/resolv.conf')]);
    unmountAtEnd(fake, '/etc/resolv.conf');
    await expectRefused(
      fake,
      withFile('/ro/deep/file'),
      'storage.files[0] (/ro/deep/file): /ro cannot be written on this host (EROFS)',
    );
    await expectRefused(fake, withFile('/etc/resolv.conf'), 'something is mounted on /etc/resolv.conf');
  });

  it.runIf(isRoot)('a file system without room, though the others have plenty', async () => {
    const fake = await fakeHost();
    await mkdir(fake.path('/small'));
    await run('mount', ['-t', 'tmpfs', '-o', 'size=1m,nr_inodes=100', 'none', fake.path('/small')]);
    unmountAtEnd(fake, '/small');
    const text = 'x'.repeat(1_100_000);
    const big = rendered('r1', { storage: { files: [file('/small/deep/file', text)] } });
    await expectRefused(fake, big, /no room: the update needs 2 MiB on the file system of \/small, 1 MiB are free/);
    const many = Array.from({ length: 120 }, (_, index) => file(`/small/${index}`, 'x'));
    await expectRefused(fake, rendered('r1', { storage: { files: many } }), /needs 12\d inodes on the file system of/);
    const few = rendered('r1', { storage: { files: [...many.slice(0, 50), file('/etc/big', text)] } });
    expect((await planTo(fake, few)).changes).toHaveLength(51);
  });

  it.runIf(isRoot)('a disk without room for the copies that undoing needs', async () => {
    const fake = await fakeHost();
    await mkdir(fake.path('/var/lib/drydock'), { recursive: true });
    await run('mount', ['-t', 'tmpfs', '-o', 'size=5m', 'none', fake.path('/var/lib/drydock')]);
    unmountAtEnd(fake, '/var/lib/drydock');
    expect((await planTo(fake, withFile('/etc/big'))).changes).toHaveLength(1);
    await writeFile(fake.path('/etc/big'), 'x'.repeat(2_000_000));
    await expectRefused(fake, withFile('/etc/big'), 'on the file system of /var/lib/drydock');
  });
});

describe('units', () => {
  /** Remembers what was asked, and answers. */
  function verifying(fake: FakeHost, answer: UnitFindings = { errors: [], warnings: [] }) {
    const asked: { units: readonly string[]; files: Record<string, string | undefined>; others: string[] }[] = [];
    fake.host = {
      ...fake.host,
      verifyUnits: (units, { files, others }) => {
        const texts = [...files].map(([path, contents]) => [path, contents?.toString()] as const);
        asked.push({ units, files: Object.fromEntries(texts), others: [...others] });
        return Promise.resolve(answer);
      },
    };
    return asked;
  }
  const tool = { name: 'tool.service', contents: UNIT, dropins: [{ name: 'a.conf', contents: '[Unit]\n' }] };

  it('that change are looked at by systemd as they will be, with what comes with them', async () => {
    const fake = await fakeHost();
    await bring(fake, rendered('r0', { systemd: { units: [{ name: 'gone.service', contents: UNIT }, tool] } }));
    const asked = verifying(fake);
    const units = [
      { ...tool, contents: `${UNIT}# changed\n` },
      { name: 'rpcbind.service', mask: true },
      { name: 'chronyd.service', enabled: true },
    ];
    const files = [
      file('/opt/tool/run', 'x'),
      file('/etc/systemd/system/kubelet.service.d/20-x.conf', '[Service]\nNice=1\n'),
    ];
    await planTo(fake, rendered('r1', { storage: { files }, systemd: { units } }));
    expect(asked).toHaveLength(1);
    expect(asked[0]?.units).toEqual(['kubelet.service', 'tool.service']);
    expect(asked[0]?.files).toEqual({
      '/etc/systemd/system/tool.service': `${UNIT}# changed\n`,
      '/etc/systemd/system/tool.service.d/a.conf': '[Unit]\n',
      '/etc/systemd/system/kubelet.service.d/20-x.conf': '[Service]\nNice=1\n',
      '/etc/systemd/system/rpcbind.service': undefined,
      '/etc/systemd/system/gone.service': undefined,
    });
    expect(asked[0]?.others).toEqual(expect.arrayContaining(['/opt/tool/run', '/opt/tool']));
  });

  it('that do not change are not looked at', async () => {
    const fake = await fakeHost();
    await bring(fake, rendered('r0', { systemd: { units: [tool] } }));
    const asked = verifying(fake, { errors: ['tool.service: bad'], warnings: [] });
    await planTo(fake, rendered('r1', { storage: { files: [file('/etc/x', 'x')] }, systemd: { units: [tool] } }));
    expect(asked).toEqual([]);
  });

  it('with errors are refused by name, and warnings are warnings', async () => {
    const fake = await fakeHost();
    const target = rendered('r1', { systemd: { units: [tool] } });
    verifying(fake, { errors: ['tool.service: Service has no ExecStart='], warnings: ['tool.service: Unknown key'] });
    await expectRefused(fake, target, 'systemd.units: tool.service: Service has no ExecStart=; correct the units');
    verifying(fake, { errors: [], warnings: ['tool.service: Unknown key'] });
    expect((await planTo(fake, target)).warnings).toContain('tool.service: Unknown key');
  });
});

describe('security labels', () => {
  it('are given to what is new before it takes its place, and to nothing else', async () => {
    const fake = await fakeHost();
    const labelled: string[] = [];
    fake.host = {
      ...fake.host,
      async label(temporary, path) {
        const there = await readFile(fake.path(path), 'utf8').catch(() => 'nothing');
        labelled.push(`${path} while there is ${there}`);
        expect((await lstat(temporary)).isSymbolicLink()).toBe(path.includes('rpcbind'));
        if ((await lstat(temporary)).isFile()) await chmod(temporary, 0o611);
      },
    };
    await writeFile(fake.path('/etc/same'), 'x');
    const files = [file('/etc/new/a', 'x', { mode: 0o644 }), file('/etc/same', 'x'), file('/etc/motd', 'new')];
    const units = [{ name: 'rpcbind.service', mask: true }];
    const config = rendered('r1', { storage: { files }, systemd: { units } });
    await bring(fake, withPolicies(config, {}));
    expect(labelled.filter((line) => line.startsWith('/etc'))).toEqual([
      '/etc/new while there is nothing',
      '/etc/motd while there is A machine of the lab.\n',
      '/etc/new/a while there is nothing',
      '/etc/systemd/system/rpcbind.service while there is nothing',
    ]);
    // The label came last: what it did is what the file has.
    expect((await stat(fake.path('/etc/new/a'))).mode & 0o777).toBe(0o611);
  });
});
