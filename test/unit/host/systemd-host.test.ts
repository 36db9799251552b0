import { mkdir, mkdtemp, rm, symlink, writeFile, lstat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { RebootInhibited, type OsBackend } from '../../../activities/host/host.js';
import { describeHost } from '../../../activities/host/describe-host.js';
import { parseOsRelease, readHostFacts } from '../../../activities/host/os-release.js';
import { ProgramFailed, type ProgramResult, type RunProgram } from '../../../activities/host/run-program.js';
import { createSystemdHost } from '../../../activities/host/systemd-host.js';

const BOOT_ID = 'aaaaaaaa-0000-4000-8000-000000000001';
let root: string;
/** Every program that was run, as one line. */
let calls: string[];

async function put(path: string, text: string): Promise<void> {
  await mkdir(dirname(join(root, path)), { recursive: true });
  await writeFile(join(root, path), text);
}

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'drydock-systemd-'));
  calls = [];
  await put('proc/sys/kernel/random/boot_id', `${BOOT_ID}\n`);
});
afterEach(() => rm(root, { recursive: true, force: true }));

type Answer = Partial<ProgramResult> | Error;

/** Answers by the first key that the line of the call contains; anything else ends well and says nothing. */
function programs(answers: Readonly<Record<string, Answer>> = {}): RunProgram {
  return (program, args) => {
    const line = [program, ...args].join(' ');
    calls.push(line);
    const answer = Object.entries(answers).find(([part]) => line.includes(part))?.[1] ?? {};
    if (answer instanceof Error) return Promise.reject(answer);
    return Promise.resolve({ code: 0, stdout: '', stderr: '', ...answer });
  };
}

const none: OsBackend = {
  name: 'none',
  refusal: (field) => (field === 'fips' ? undefined : `${field} is not for this host`),
  staged: () => Promise.reject(new Error('not asked here')),
  stage: () => Promise.reject(new Error('not asked here')),
  booted: () => Promise.reject(new Error('not asked here')),
  deployment: () => Promise.resolve(''),
};

function host(answers: Readonly<Record<string, Answer>> = {}) {
  return createSystemdHost({
    root,
    run: programs(answers),
    os: none,
    sshKeyPlace: () => Promise.reject(new Error('not asked here')),
    ownKubeconfigs: () => ['/etc/drydock-own.conf'],
  });
}

describe('systemctl', () => {
  test.each([
    ['enabled', { stdout: 'enabled\n' }],
    ['disabled', { stdout: 'disabled\n', code: 1 }],
    ['masked', { stdout: 'masked\n', code: 1 }],
    ['enabled-runtime', { stdout: 'enabled-runtime\n' }],
    ['not-found', { stdout: 'not-found\n', code: 4 }],
    ['not-found', { stderr: 'Failed to get unit file state for x.service: No such file or directory\n', code: 1 }],
  ])('is-enabled that ends with any exit code says %s', async (state, answer) => {
    const { systemctl } = await host({ 'is-enabled': answer });
    expect(await systemctl.enablement('x.service')).toBe(state);
  });

  test('an answer that is none is an error with the words of systemctl', async () => {
    const { systemctl } = await host({ 'is-enabled': { stderr: 'Failed to connect to bus: Host is down\n', code: 1 } });
    await expect(systemctl.enablement('x.service')).rejects.toThrow(
      'systemctl is-enabled x.service: Failed to connect to bus: Host is down',
    );
  });

  test.each([
    ['active', true],
    ['activating', true],
    ['reloading', true],
    ['deactivating', false],
    ['failed', false],
    ['inactive', false],
  ])('a unit that is %s runs: %s', async (state, runs) => {
    const { systemctl } = await host({ ActiveState: { stdout: `ActiveState=${state}\n` } });
    expect(await systemctl.isActive('x.service')).toBe(runs);
  });

  test('no answer is not taken for the answer that a unit does not run', async () => {
    const { systemctl } = await host({ ActiveState: { stdout: '' } });
    await expect(systemctl.isActive('x.service')).rejects.toThrow('systemctl show x.service');
  });

  test('a template does not run, and systemd is not asked', async () => {
    const { systemctl } = await host({ ActiveState: { code: 1 } });
    expect(await systemctl.isActive('x@.service')).toBe(false);
    expect(calls).toEqual([]);
  });

  test('a unit that fails to start is told with its result and status, and without hints where to read on', async () => {
    const { systemctl } = await host({
      'restart --': {
        code: 1,
        stderr:
          'Job for x.service failed because the control process exited with error code.\n' +
          'See "systemctl status x.service" and "journalctl -xeu x.service" for details.\n',
      },
      'show --property=LoadState': {
        stdout: 'LoadState=loaded\nResult=exit-code\nExecMainCode=1\nExecMainStatus=203\n',
      },
    });
    await expect(systemctl.restart('x.service')).rejects.toThrow(
      /^systemctl restart x\.service: Job for x\.service failed because the control process exited with error code\. \(result exit-code, exit status 203\)$/,
    );
  });

  test('a unit that was killed is told with the signal', async () => {
    const { systemctl } = await host({
      'start --': { code: 1, stderr: 'Job for x.service failed because a fatal signal was delivered.\n' },
      'show --property=LoadState': { stdout: 'LoadState=loaded\nResult=signal\nExecMainCode=2\nExecMainStatus=9\n' },
    });
    await expect(systemctl.start('x.service')).rejects.toThrow('(result signal, signal 9)');
  });

  test('stopping a unit that systemd does not know is done already; another failure is one', async () => {
    const unknown = await host({
      'stop --': { code: 5, stderr: 'Failed to stop x.service: Unit x.service not loaded.' },
    });
    await unknown.systemctl.stop('x.service');
    const failing = await host({ 'stop --': { code: 1, stderr: 'Failed to stop x.service: Operation refused' } });
    await expect(failing.systemctl.stop('x.service')).rejects.toThrow('systemctl stop x.service: Failed to stop');
  });

  test('disabling a unit whose file is gone takes its links away', async () => {
    const wants = join(root, 'etc/systemd/system/multi-user.target.wants');
    await mkdir(wants, { recursive: true });
    await symlink('/etc/systemd/system/x.service', join(wants, 'x.service'));
    const gone = { code: 1, stderr: 'Failed to disable unit: Unit file x.service does not exist.\n' };
    const { systemctl } = await host({ 'disable --': gone });
    await systemctl.disable(['x.service']);
    await expect(lstat(wants)).rejects.toThrow('ENOENT');
    await systemctl.disable(['x.service']);
  });

  test('a disable that fails for another reason is an error', async () => {
    const { systemctl } = await host({
      'disable --': { code: 1, stderr: 'Failed to disable unit: Read-only file system\n' },
    });
    await expect(systemctl.disable(['x.service'])).rejects.toThrow(
      'disable x.service: Failed to disable unit: Read-only',
    );
  });

  test('nothing is asked of systemd for no units', async () => {
    const { systemctl } = await host();
    await systemctl.enable([]);
    await systemctl.disable([]);
    expect(calls).toEqual([]);
  });

  test('a unit name that looks like an option is none', async () => {
    const { systemctl } = await host();
    await systemctl.start('--force.service');
    expect(calls).toEqual(['systemctl --no-ask-password --no-pager start -- --force.service']);
  });
});

describe('the reboot', () => {
  const request = { bootId: BOOT_ID, reason: 'Drydock: old → new\nconfig' };
  const inhibitors = (...lines: string[]) => ({
    stdout: `a(ssssuu) ${lines.length} ${lines.join(' ')}\n`,
  });

  test('is a transient unit that bears the boot ID and outlives this process', async () => {
    await (await host()).reboot(request);
    const [asked = ''] = calls.filter((line) => line.startsWith('systemd-run'));
    expect(asked).toContain(`--unit=drydock-reboot-${BOOT_ID}`);
    expect(asked).toContain('--description=Drydock: old → new config');
    expect(asked).toMatch(/systemctl reboot$/);
    expect(asked).not.toContain('ostree');
  });

  test('of a boot that has ended does nothing', async () => {
    await (await host()).reboot({ ...request, bootId: 'bbbbbbbb-0000-4000-8000-000000000002' });
    expect(calls).toEqual([]);
  });

  test.each([
    'Failed to start transient service unit: Unit drydock-reboot-a.service already exists.',
    'Failed to start transient service unit: Unit drydock-reboot-a.service was already loaded or has a fragment file.',
    "Failed to start transient service unit: Transaction for a/start is destructive (shutdown.target has 'start' job queued).",
    'Failed to start transient service unit: Refusing activation, D-Bus is shutting down.',
  ])('that was asked for already is asked for: %s', async (stderr) => {
    await (await host({ 'systemd-run': { code: 1, stderr } })).reboot(request);
  });

  test('while the machine is on its way down is on its way', async () => {
    const refused = { code: 1, stderr: 'Failed to start transient service unit: Connection reset by peer\n' };
    await (
      await host({ 'systemd-run': refused, 'is-system-running': { stdout: 'stopping\n', code: 1 } })
    ).reboot(request);
  });

  test('that systemd refuses is an error with its words', async () => {
    const refused = { code: 1, stderr: 'Failed to start transient service unit: Access denied\n' };
    await expect((await host({ 'systemd-run': refused })).reboot(request)).rejects.toThrow(
      'systemd-run: the reboot could not be asked for: Failed to start transient service unit: Access denied',
    );
  });

  test('waits for the staged image to be put into place, where the host has images', async () => {
    await put('usr/lib/systemd/system/ostree-finalize-staged.service', '[Service]\n');
    await (await host()).reboot(request);
    expect(calls.join()).toContain('--property=Requires=ostree-finalize-staged.service');
    expect(calls.join()).toContain('--property=After=ostree-finalize-staged.service');
  });

  test('is not asked for while somebody blocks it, and says who and why', async () => {
    const blocked = await host({
      ListInhibitors: inhibitors(
        '"sleep" "NetworkManager" "to turn off networks" "delay" 0 10',
        '"shutdown:sleep" "backup \\"nightly\\"" "a backup runs" "block" 0 4711',
      ),
    });
    const error = await blocked.reboot(request).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(RebootInhibited);
    expect(String(error)).toContain(
      'backup "nightly" (process 4711) asks that this host is not shut down now: a backup runs',
    );
    expect(calls.join()).not.toContain('systemd-run');
  });

  test.each([
    ['a delay, as the kubelet asks for', '"shutdown" "kubelet" "drains" "delay" 0 10'],
    ['a block of something else', '"idle:handle-lid-switch" "desktop" "plays" "block" 1000 11'],
  ])('is not kept from by %s', async (_, line) => {
    await (await host({ ListInhibitors: inhibitors(line) })).reboot(request);
    expect(calls.join()).toContain('systemd-run');
  });

  test.each([
    [
      'has no login manager',
      { code: 1, stderr: 'Call failed: The name org.freedesktop.login1 was not provided by any .service files\n' },
    ],
    [
      'has none running, since it is masked',
      { code: 1, stderr: 'Call failed: Unit dbus-org.freedesktop.login1.service is masked.\n' },
    ],
    ['has no bus', { code: 1, stderr: 'Failed to connect to bus: No such file or directory\n' }],
    ['has no busctl', new ProgramFailed('busctl: this host has no such program', { isMissing: true })],
  ])('of a host that %s is asked for', async (_, answer) => {
    await (await host({ ListInhibitors: answer })).reboot(request);
    expect(calls.join()).toContain('systemd-run');
  });

  test('is not asked for while nobody knows who blocks it', async () => {
    const silent = await host({ ListInhibitors: { code: 1, stderr: 'Call failed: Connection timed out\n' } });
    await expect(silent.reboot(request)).rejects.toThrow('busctl: cannot ask systemd-logind who blocks a shutdown');
    expect(calls.join()).not.toContain('systemd-run');
  });
});

describe('what the host is', () => {
  test('its name is read without the quotes', async () => {
    await put(
      'etc/os-release',
      'NAME="Flatcar"\nPRETTY_NAME="Flatcar \\"Container\\" Linux"\nVERSION_ID=\'4152.2.0\'\nID=flatcar\n',
    );
    expect(await readHostFacts(root, 'x64')).toEqual({ os: 'Flatcar "Container" Linux', arch: 'amd64' });
    expect(parseOsRelease("VERSION_ID='4152.2.0'\n# x\nID=a\n").get('VERSION_ID')).toBe('4152.2.0');
  });

  test('of the two files the one in /etc counts, and without any it is Linux', async () => {
    expect((await readHostFacts(root, 'arm64')).os).toBe('Linux');
    await put('usr/lib/os-release', 'NAME=Vendor\n');
    expect(await readHostFacts(root, 'arm64')).toEqual({ os: 'Vendor', arch: 'arm64' });
    await put('etc/os-release', 'PRETTY_NAME=Own\n');
    expect((await readHostFacts(root, 'arm64')).os).toBe('Own');
  });

  test('is told with the reasons for what it cannot do, and only those', async () => {
    const { cannot, backend } = describeHost(await host());
    expect(backend).toBe('none');
    expect(cannot.osImageURL).toBe('osImageURL is not for this host');
    expect(cannot).not.toHaveProperty('fips');
  });

  test('has the boot ID of its kernel', async () => {
    expect(await (await host()).bootId()).toBe(BOOT_ID);
  });
});

describe('paths that no config may manage', () => {
  test('are those that the running kubelet is told of, and what its kubeconfig names', async () => {
    await put(
      'proc/77/cmdline',
      ['/usr/bin/kubelet', '--kubeconfig=/srv/node.conf', '--cert-dir', '/srv/pki', ''].join('\0'),
    );
    await put('proc/78/cmdline', ['/usr/bin/other', '--kubeconfig=/srv/other.conf', ''].join('\0'));
    await put(
      'srv/node.conf',
      'users: [{user: {client-certificate: certs/n.pem, client-key: /srv/n.key}}]\nclusters: [{cluster: {certificate-authority: ca.pem}}]\n',
    );
    const paths = await (await host()).protectedPaths();
    expect(paths).toEqual(
      expect.arrayContaining(['/srv/node.conf', '/srv/pki', '/srv/certs/n.pem', '/srv/n.key', '/srv/ca.pem']),
    );
    expect(paths).not.toContain('/srv/other.conf');
  });

  test('are those in the unit of a kubelet that does not run, and in its environment files', async () => {
    await put('var/lib/kubelet/flags.env', 'ARGS="--bootstrap-kubeconfig=/srv/boot.conf --v=2"\n');
    const shown = [
      'ExecStart={ path=/usr/bin/kubelet ; argv[]=/usr/bin/kubelet --kubeconfig=/srv/unit.conf $ARGS ; ignore_errors=no }',
      'Environment=MORE=--cert-dir=/srv/unit-pki',
      'EnvironmentFiles=/var/lib/kubelet/flags.env (ignore_errors=yes)',
      'EnvironmentFiles=/etc/default/none (ignore_errors=yes)',
    ].join('\n');
    const paths = await (await host({ 'kubelet.service': { stdout: shown } })).protectedPaths();
    expect(paths).toEqual(expect.arrayContaining(['/srv/unit.conf', '/srv/boot.conf', '/srv/unit-pki']));
  });

  test("are the usual ones and the worker's own, also by their real place", async () => {
    await mkdir(join(root, 'data/kubernetes'), { recursive: true });
    await mkdir(join(root, 'etc'), { recursive: true });
    await symlink('../data/kubernetes', join(root, 'etc/kubernetes'));
    const paths = await (await host()).protectedPaths();
    expect(paths).toEqual(
      expect.arrayContaining([
        '/var/lib/kubelet/pki',
        '/etc/kubernetes/kubelet.conf',
        '/data/kubernetes/kubelet.conf',
        '/etc/drydock-own.conf',
      ]),
    );
  });

  test('are found without systemd and with a kubeconfig that is none', async () => {
    await put('etc/kubernetes/kubelet.conf', ': not [yaml');
    const missing = new ProgramFailed('systemctl: this host has no such program', { isMissing: true });
    expect(await (await host({ systemctl: missing })).protectedPaths()).toContain('/etc/kubernetes/kubelet.conf');
  });
});

describe('SELinux', () => {
  const enforcing = () => put('sys/fs/selinux/enforce', '1');

  test('where it is off, no label is touched', async () => {
    await (await host()).label(join(root, 'etc/.new'), '/etc/x');
    expect(calls).toEqual([]);
  });

  test('a file takes over the context of the one that it replaces', async () => {
    await enforcing();
    await put('etc/x', '');
    await put('etc/.new', '');
    await (await host()).label(join(root, 'etc/.new'), '/etc/x');
    expect(calls).toEqual([`chcon --reference=${root}/etc/x -- ${root}/etc/.new`]);
  });

  const CONTEXT = 'system_u:object_r:etc_t:s0';
  test.each<[what: string, kind: string, make: () => Promise<unknown>]>([
    ['file', 'file', () => put('etc/.new', '')],
    ['link', 'lnk_file', () => symlink('/nowhere', join(root, 'etc/.new'))],
    ['folder', 'dir', () => mkdir(join(root, 'etc/.new'))],
  ])('a new %s gets what the policy says of its path', async (_, kind, make) => {
    await enforcing();
    await mkdir(join(root, 'etc'), { recursive: true });
    await make();
    await (await host({ matchpathcon: { stdout: `${CONTEXT}\n` } })).label(join(root, 'etc/.new'), '/etc/x');
    expect(calls).toEqual([
      `matchpathcon -n -m ${kind} /etc/x`,
      `chcon --no-dereference ${CONTEXT} -- ${root}/etc/.new`,
    ]);
  });

  test('what takes the place of a link, and a new folder in its place, ask the policy, too', async () => {
    await enforcing();
    await put('etc/.new', '');
    await symlink('/dev/null', join(root, 'etc/x'));
    await mkdir(join(root, 'etc/d'));
    const selinux = await host({ matchpathcon: { stdout: `${CONTEXT}\n` } });
    await selinux.label(join(root, 'etc/.new'), '/etc/x');
    await selinux.label(join(root, 'etc/d'), '/etc/d');
    expect(calls.filter((line) => line.startsWith('chcon'))).toEqual([
      `chcon --no-dereference ${CONTEXT} -- ${root}/etc/.new`,
      `chcon --no-dereference ${CONTEXT} -- ${root}/etc/d`,
    ]);
  });

  test.each([
    ['has nothing to say of the path', { stdout: '<<none>>\n' }],
    ['cannot be asked', new ProgramFailed('matchpathcon: this host has no such program', { isMissing: true })],
  ])('a new file keeps the context of its folder where the policy %s', async (_, answer) => {
    await enforcing();
    await (await host({ matchpathcon: answer })).label('/r/.new', '/etc/x');
    expect(calls.filter((line) => line.startsWith('chcon'))).toEqual([]);
  });

  test('a file system without labels is left alone, another failure is told with the path', async () => {
    await enforcing();
    for (const path of ['etc/x', 'etc/.new']) await put(path, '');
    const written = join(root, 'etc/.new');
    await (
      await host({ chcon: { code: 1, stderr: 'chcon: failed to change context: Operation not supported\n' } })
    ).label(written, '/etc/x');
    const refused = await host({ chcon: { code: 1, stderr: 'chcon: failed to change context: Permission denied\n' } });
    await expect(refused.label(written, '/etc/x')).rejects.toThrow(
      '/etc/x: chcon could not give it its SELinux context',
    );
  });
});
