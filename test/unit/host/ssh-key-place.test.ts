import { chmod, chown, mkdir, mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { ProgramFailed, type ProgramResult, type RunProgram } from '../../../activities/host/run-program.js';
import { foldersInHome, sshKeyPlaceOf } from '../../../activities/host/sshd.js';

/** Only root may give a folder away. */
const isPrivileged = process.geteuid?.() === 0;
const CORE = { name: 'core', uid: 1000, gid: 1000, home: '/var/home/core' };

/** What `sshd -T` of OpenSSH 9.2 says, as far as it matters, with its defaults. */
const said = (settings: Record<string, string> = {}) => {
  const all = {
    port: '22',
    usepam: 'yes',
    pubkeyauthentication: 'yes',
    authorizedkeyscommand: 'none',
    authorizedkeysfile: '.ssh/authorized_keys .ssh/authorized_keys2',
    acceptenv: 'LANG',
    ...settings,
  };
  const lines = Object.entries(all).map(([key, value]) => `${key} ${value}\n`);
  return { code: 0, stdout: lines.join(''), stderr: '' };
};

const place = (answer: ProgramResult | RunProgram, root = '/nowhere') =>
  sshKeyPlaceOf(CORE, { root, run: typeof answer === 'function' ? answer : () => Promise.resolve(answer) });

describe('the place of SSH keys', () => {
  it('is asked of sshd for the account itself', async () => {
    const asked: string[] = [];
    await place((program, args) => {
      asked.push([program, ...args].join(' '));
      return Promise.resolve(said());
    });
    expect(asked).toEqual(['sshd -T -C user=core,host=localhost,addr=127.0.0.1']);
  });

  it.each([
    ['.ssh/authorized_keys .ssh/authorized_keys2', '/var/home/core/.ssh/authorized_keys', true],
    ['%h/.ssh/authorized_keys2 %h/.ssh/authorized_keys', '/var/home/core/.ssh/authorized_keys', true],
    ['.ssh/authorized_keys .ssh/authorized_keys.d/ignition', '/var/home/core/.ssh/authorized_keys.d/ignition', false],
    ['/etc/ssh/keys/%u', '/etc/ssh/keys/core', true],
    ['/etc/keys/%U/100%%', '/etc/keys/1000/100%', true],
  ])('%s leads to %s', async (authorizedkeysfile, path, shared) => {
    expect(await place(said({ authorizedkeysfile }))).toEqual({ path, shared });
  });

  it('is the folder of Ignition where a program reads that for sshd, and not where another program is asked', async () => {
    const ignition = { path: '/var/home/core/.ssh/authorized_keys.d/ignition', shared: false };
    expect(await place(said({ authorizedkeyscommand: '/usr/libexec/ssh-key-dir %u' }))).toEqual(ignition);
    const other = said({ authorizedkeyscommand: '/usr/bin/sss_ssh_authorizedkeys' });
    expect(await place(other)).toEqual({ path: '/var/home/core/.ssh/authorized_keys', shared: true });
  });

  it('is none where keys would do nothing, or sshd is missing', async () => {
    await expect(place(said({ pubkeyauthentication: 'no' }))).rejects.toThrow(/PubkeyAuthentication no/);
    await expect(place(said({ authorizedkeysfile: 'none' }))).rejects.toThrow(/reads no file of keys for core/);
    const missing: RunProgram = () => Promise.reject(new ProgramFailed('sshd: no such program', { isMissing: true }));
    await expect(place(missing)).rejects.toThrow('sshd is not installed on this host: without it nobody can log in');
    const broken = { code: 255, stdout: '', stderr: 'x: line 1: Bad configuration option: Foo\r\nx: terminating\r\n' };
    await expect(place(broken)).rejects.toThrow(
      'sshd does not say where it looks for the keys of core: x: line 1: Bad configuration option: Foo | x: terminating: repair',
    );
  });

  it.runIf(isPrivileged)('is none in a home that others can write, unless sshd does not mind', async () => {
    const root = await mkdtemp(join(tmpdir(), 'drydock-sshd-'));
    onTestFinished(() => rm(root, { recursive: true, force: true }));
    await mkdir(join(root, CORE.home), { recursive: true });
    await chmod(join(root, CORE.home), 0o775);
    await chown(join(root, CORE.home), CORE.uid, CORE.gid);
    await expect(place(said({ strictmodes: 'yes' }), root)).rejects.toThrow(
      'sshd accepts no keys for core, since others can write its home /var/home/core (StrictModes yes): chmod go-w',
    );
    expect(await place(said({ strictmodes: 'no' }), root)).toMatchObject({ shared: true });
    await chmod(join(root, CORE.home), 0o755);
    expect(await place(said({ strictmodes: 'yes' }), root)).toMatchObject({ shared: true });
    await chown(join(root, CORE.home), 4711, 4711);
    await expect(place(said(), root)).rejects.toThrow(/chown core/);
  });

  it('is found before sshd was started for the first time in a boot', async () => {
    const root = await mkdtemp(join(tmpdir(), 'drydock-sshd-'));
    onTestFinished(() => rm(root, { recursive: true, force: true }));
    const isThere = () =>
      stat(join(root, 'run/sshd')).then(
        (found) => (found.mode & 0o777) === 0o755,
        () => false,
      );
    const sleeping: RunProgram = async () =>
      (await isThere())
        ? said()
        : { code: 255, stdout: '', stderr: 'Missing privilege separation directory: /run/sshd\r\n' };
    expect(await place(sleeping, root)).toMatchObject({ shared: true });
    await expect(
      place(
        () => Promise.resolve({ code: 255, stdout: '', stderr: 'Missing privilege separation directory: /run/x' }),
        root,
      ),
    ).rejects.toThrow(/Missing privilege/);
  });

  it('has folders of the account only below its home', () => {
    expect(foldersInHome('/var/home/core/.ssh/authorized_keys.d/ignition', CORE)).toEqual([
      '/var/home/core/.ssh',
      '/var/home/core/.ssh/authorized_keys.d',
    ]);
    expect(foldersInHome('/etc/ssh/keys/core', CORE)).toEqual([]);
    expect(foldersInHome('/var/home/core-2/x', CORE)).toEqual([]);
  });
});
