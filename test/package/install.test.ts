import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmod, cp, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { treeOf } from '../support/fake-host.js';

const SCRIPTS = fileURLToPath(new URL('../../deploy/', import.meta.url));
type Kind = 'node' | 'control';
const PATH = '/usr/sbin:/usr/bin:/sbin:/bin';
/** The first bytes of a program for x86_64, as far as its machine field. */
const ELF_HEAD = Buffer.from('7f454c4602010100000000000000000002003e00', 'hex');

let directory: string;
let folder: string;
let root: string;
let shims: string;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'drydock-install-'));
  folder = await makePackage('node', '1.2.3');
  root = join(directory, 'root');
  await mkdir(join(root, 'lib'), { recursive: true });
  await glibc('2.36');
  shims = join(directory, 'shims');
  await mkdir(shims);
  // The tests need not run as root, on this or that processor.
  await shim('id', 'echo 0');
  await shim('chown', ':');
  // Nothing here loses its power, and the disk of a busy machine takes its time.
  await shim('sync', ':');
  await shim('uname', '[ "$1" = -m ] && echo x86_64 || echo Linux');
});
afterEach(() => rm(directory, { recursive: true, force: true }));

/** The scripts as they are, with little to install. */
async function makePackage(kind: Kind, version: string): Promise<string> {
  const made = join(directory, `${kind}-${version}`);
  await rm(made, { recursive: true, force: true });
  for (const from of ['shared', kind]) await cp(join(SCRIPTS, from), made, { recursive: true });
  const files: Readonly<Record<string, string | Buffer>> = {
    'bin/node': ELF_HEAD,
    [`lib/workers/${kind}.js`]: 'the worker',
    VERSION: `${version}\n`,
  };
  for (const [path, contents] of Object.entries(files)) {
    await mkdir(join(made, path, '..'), { recursive: true });
    await writeFile(join(made, path), contents);
  }
  await chmod(join(made, 'bin/node'), 0o755);
  const entries = await readdir(made, { recursive: true, withFileTypes: true });
  const lines = entries
    .filter((entry) => entry.isFile())
    .map(async (entry) => {
      const path = join(entry.parentPath, entry.name);
      return `${createHash('sha256')
        .update(await readFile(path))
        .digest('hex')}  ${path.slice(made.length + 1)}\n`;
    });
  await writeFile(join(made, 'SHA256SUMS'), (await Promise.all(lines)).join(''));
  return made;
}

const glibc = (version: string) =>
  writeFile(
    join(root, 'lib/libc.so.6'),
    `\0GNU C Library (Debian GLIBC ${version}-9+deb12u10) stable release version ${version}.\nCopyright\0`,
  );

const shim = (name: string, script: string) => writeFile(join(shims, name), `#!/bin/sh\n${script}\n`, { mode: 0o755 });

interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

function install(...args: readonly string[]): Promise<Ended> {
  return new Promise((resolve) => {
    const env = { PATH: `${shims}:${PATH}` };
    const script = 'echo $$ >"$0"; exec "$@"';
    const command = [join(directory, 'pid'), join(folder, 'install.sh'), ...args];
    execFile('/bin/sh', ['-c', script, ...command], { env }, (error, stdout, stderr) => {
      const code = error === null ? 0 : typeof error.code === 'number' ? error.code : 137;
      resolve({ code, stdout, stderr });
    });
  });
}

describe('install.sh refuses', () => {
  it.each([
    ['musl', 'echo "musl libc (x86_64)" >&2; exit 1', /this system uses musl; .* glibc 2.28 or newer/],
    ['glibc 2.27', 'echo "ldd (Ubuntu GLIBC 2.27-3ubuntu1.6) 2.27"', /glibc here is 2.27; .* 2.28 or newer/],
    ['glibc 2.9', 'echo "ldd (GNU libc) 2.9"', /glibc here is 2.9; /],
    ['a machine without ldd', 'exit 127', /glibc here is unknown; /],
  ])('%s', async (_, ldd, message) => {
    await shim('ldd', ldd);
    expect(await install()).toMatchObject({ code: 1, stdout: '', stderr: expect.stringMatching(message) as string });
  });

  it.each(['ldd (GNU libc) 2.28', 'ldd (Debian GLIBC 2.36-9+deb12u10) 2.36', 'ldd (GNU libc) 2.39.9000'])(
    'no machine with %s for its C library',
    async (line) => {
      await shim('ldd', `echo "${line}"`);
      // What comes next: nothing is installed by this test.
      await shim('systemctl', 'echo "systemd 238 (238)"');
      const { stderr } = await install();
      expect(stderr).toMatch(/systemd here is 238; the worker needs 239|not booted with systemd/);
    },
  );

  it('a user who is not root', async () => {
    await shim('id', 'echo 1000');
    expect(await install()).toMatchObject({ code: 1, stderr: 'drydock: installing needs root: run this with sudo\n' });
  });

  it('another architecture', async () => {
    // Nothing here loses its power, and the disk of a busy machine takes its time.
    await shim('sync', ':');
    await shim('uname', '[ "$1" = -m ] && echo aarch64 || echo Linux');
    expect((await install()).stderr).toMatch(/is for x86_64, this machine is aarch64/);
  });

  it('an image with musl or an old glibc', async () => {
    await glibc('2.17');
    expect((await install('--root', root)).stderr).toMatch(/glibc here is 2.17/);
    await rm(join(root, 'lib/libc.so.6'));
    expect((await install('--root', root)).stderr).toMatch(/no glibc was found below/);
    await writeFile(join(root, 'lib/ld-musl-x86_64.so.1'), '');
    expect((await install('--root', root)).stderr).toMatch(/musl/);
    expect(await readdir(root)).toEqual(['lib']);
  });

  it('a disk without room, and leaves nothing there', async () => {
    await shim('df', 'echo head; echo "/dev/sda1 100 90 10 90% /"');
    expect((await install('--root', root)).stderr).toMatch(/has 0 MiB free, .* make room/);
    expect(await readdir(join(root, 'opt/drydock'))).toEqual(['.lock']);
  });

  it('a package that is damaged', async () => {
    await writeFile(join(folder, 'lib/workers/node.js'), 'something else');
    expect((await install('--root', root)).stderr).toMatch(/is not what the package holds/);
  });
});

describe('install.sh --root', () => {
  it('lays the version out, enabled and not started', async () => {
    await shim('systemctl', 'echo systemctl was called; exit 1');
    const ended = await install('--root', root);
    expect(ended).toMatchObject({ code: 0, stderr: '' });
    const tree = await treeOf(root);
    expect(Object.keys(tree).filter((path) => !path.includes('/1.2.3/'))).toMatchInlineSnapshot(`
      [
        "/",
        "/etc",
        "/etc/systemd",
        "/etc/systemd/system",
        "/etc/systemd/system/drydock-node.service",
        "/etc/systemd/system/drydock-upgrade-check.service",
        "/etc/systemd/system/multi-user.target.wants",
        "/etc/systemd/system/multi-user.target.wants/drydock-node.service",
        "/etc/systemd/system/multi-user.target.wants/drydock-upgrade-check.service",
        "/lib",
        "/lib/libc.so.6",
        "/opt",
        "/opt/drydock",
        "/opt/drydock/.lock",
        "/opt/drydock/1.2.3",
        "/opt/drydock/bin",
        "/opt/drydock/bin/host-lock.sh",
        "/opt/drydock/bin/installing.sh",
        "/opt/drydock/bin/upgrade-check",
        "/opt/drydock/bin/versions.sh",
        "/opt/drydock/current",
      ]
    `);
    for (const unit of ['drydock-node.service', 'drydock-upgrade-check.service']) {
      const installed = await readFile(join(root, 'etc/systemd/system/multi-user.target.wants', unit), 'utf8');
      expect(installed).toBe(await readFile(join(SCRIPTS, 'node/unit', unit), 'utf8'));
    }
    expect(await readFile(join(root, 'opt/drydock/current/lib/workers/node.js'), 'utf8')).toBe('the worker');
  });

  it('lays the control worker out, with its account for systemd to make, enabled and not started', async () => {
    for (const program of ['systemctl', 'systemd-sysusers']) await shim(program, `echo ${program} was called; exit 1`);
    folder = await makePackage('control', '1.2.3');
    expect(await install('--root', root)).toMatchObject({ code: 0, stderr: '' });
    const tree = await treeOf(root);
    expect(Object.keys(tree).filter((path) => !path.includes('/1.2.3/') && !path.startsWith('/lib')))
      .toMatchInlineSnapshot(`
        [
          "/",
          "/etc",
          "/etc/systemd",
          "/etc/systemd/system",
          "/etc/systemd/system/drydock-control.service",
          "/etc/systemd/system/drydock-ignition-server.service",
          "/etc/systemd/system/multi-user.target.wants",
          "/etc/systemd/system/multi-user.target.wants/drydock-control.service",
          "/etc/systemd/system/multi-user.target.wants/drydock-ignition-server.service",
          "/etc/sysusers.d",
          "/etc/sysusers.d/drydock-control.conf",
          "/opt",
          "/opt/drydock-control",
          "/opt/drydock-control/.lock",
          "/opt/drydock-control/1.2.3",
          "/opt/drydock-control/current",
        ]
      `);
    const unit = await readFile(
      join(root, 'etc/systemd/system/multi-user.target.wants/drydock-control.service'),
      'utf8',
    );
    expect(unit).toContain('User=drydock');
    expect(await readFile(join(root, 'etc/sysusers.d/drydock-control.conf'), 'utf8')).toMatch(/^u drydock /m);
    const [, started = ''] = /^ExecStart=(\S+)$/m.exec(unit) ?? [];
    // As the machine sees it: the link is relative.
    expect((await stat(join(root, started))).mode & 0o777).toBe(0o755);
  });

  it('keeps one version of the control worker to go back to', async () => {
    const versions = async () =>
      (await readdir(join(root, 'opt/drydock-control'))).filter((name) => /^\d/.test(name)).sort();
    for (const version of ['1.0.0', '1.1.0', '1.1.0', '1.2.0']) {
      folder = await makePackage('control', version);
      expect(await install('--root', root)).toMatchObject({ code: 0, stderr: '' });
    }
    expect(await versions()).toEqual(['1.1.0', '1.2.0']);
    expect(await readFile(join(root, 'opt/drydock-control/current/VERSION'), 'utf8')).toBe('1.2.0\n');
    folder = join(root, 'opt/drydock-control/1.1.0');
    expect(await install('--root', root)).toMatchObject({ code: 0, stderr: '' });
    expect(await readFile(join(root, 'opt/drydock-control/current/VERSION'), 'utf8')).toBe('1.1.0\n');
  });

  it('keeps the settings that are there, and changes nothing when it is run again', async () => {
    await mkdir(join(root, 'etc/drydock'), { recursive: true });
    await writeFile(join(root, 'etc/drydock/node.env'), 'DRYDOCK_NODE_NAME=mine\n', { mode: 0o600 });
    await install('--root', root);
    const before = await treeOf(root);
    expect(await install('--root', root)).toMatchObject({ code: 0 });
    expect(await treeOf(root)).toEqual(before);
    expect(await readFile(join(root, 'etc/drydock/node.env'), 'utf8')).toBe('DRYDOCK_NODE_NAME=mine\n');
  });

  it('repairs a version that was damaged', async () => {
    await install('--root', root);
    const whole = await treeOf(root);
    await rm(join(root, 'opt/drydock/1.2.3/lib'), { recursive: true });
    await install('--root', root);
    expect(await treeOf(root)).toEqual(whole);
  });

  it.each([
    ['node', 'drydock'],
    ['control', 'drydock-control'],
  ] as const)('of the %s worker ends in the same state wherever it is killed and run again', async (kind, opt) => {
    folder = await makePackage(kind, '1.2.3');
    await install('--root', root);
    const whole = await treeOf(root);
    for (const program of ['mkdir', 'cp', 'chmod', 'mv', 'ln', 'rm', 'sync']) {
      await shim(
        program,
        `${program === 'sync' ? ':' : `PATH=${PATH} ${program} "$@"`}; code=$?
echo x >>${directory}/calls
[ "$(wc -l <${directory}/calls)" -ne "$(cat ${directory}/kill-after)" ] || kill -KILL "$(cat ${directory}/pid)"
exit $code`,
      );
    }
    let killed = 0;
    for (let calls = 1; ; calls += 1) {
      await rm(root, { recursive: true });
      await mkdir(join(root, 'lib'), { recursive: true });
      await glibc('2.36');
      await writeFile(join(directory, 'calls'), '');
      await writeFile(join(directory, 'kill-after'), String(calls));
      const first = await install('--root', root);
      if (first.code === 0) break;
      killed += 1;
      // A version is there whole or not at all.
      const versions = await readdir(join(root, 'opt', opt)).catch((): string[] => []);
      if (versions.includes('1.2.3')) {
        expect(await readFile(join(root, 'opt', opt, '1.2.3/SHA256SUMS'), 'utf8')).toBe(
          await readFile(join(folder, 'SHA256SUMS'), 'utf8'),
        );
      }
      await writeFile(join(directory, 'kill-after'), '0');
      expect(await install('--root', root)).toMatchObject({ code: 0 });
      expect(await treeOf(root)).toEqual(whole);
    }
    expect(killed).toBeGreaterThan(20);
  });
});
