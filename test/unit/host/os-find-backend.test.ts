import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { findOsBackend } from '../../../activities/host/os/find-backend.js';
import { PLAIN_OS } from '../../../activities/host/os/refusal.js';
import { ProgramFailed, type RunProgram } from '../../../activities/host/run-program.js';
import { OS_FIELDS } from '../../../machine-config/change/os-fields.js';
import { FakeBootc, FakeGrubby, FakeRpmOstree } from '../../support/fake-os-tools.js';

const nothing: RunProgram = (program) =>
  Promise.reject(new ProgramFailed(`${program}: this host has no such program`, { isMissing: true }));

async function hostWith(files: Record<string, string>): Promise<string> {
  const root = await mkdtemp(join(tmpdir(), 'drydock-os-'));
  onTestFinished(() => rm(root, { recursive: true, force: true }));
  await mkdir(join(root, 'proc'));
  await writeFile(join(root, 'proc/cmdline'), 'root=UUID=1 ro quiet\n');
  for (const [path, text] of Object.entries(files)) {
    await mkdir(join(root, dirname(path)), { recursive: true });
    await writeFile(join(root, path), text, { mode: 0o755 });
  }
  return root;
}

const DEBIAN = {
  'usr/sbin/update-grub': '#!/bin/sh\n',
  'usr/sbin/grub-mkconfig': 'for x in ${sysconfdir}/default/grub.d/*.cfg ; do\n',
};

describe('the backend of a host', () => {
  it('is GRUB where update-grub reads a folder of settings, and nothing of the sort where it does not', async () => {
    const debian = await findOsBackend({ root: await hostWith(DEBIAN), run: nothing, wanted: 'auto' });
    expect(debian.name).toBe('grub');
    expect(debian.refusal('kernelArguments')).toBeUndefined();
    expect(debian.refusal('osImageURL')).toBe('this host has no image-based operating system (bootc or rpm-ostree)');
    const old = await hostWith({ ...DEBIAN, 'usr/sbin/grub-mkconfig': '. /etc/default/grub\n' });
    expect((await findOsBackend({ root: old, run: nothing, wanted: 'auto' })).name).toBe('none');
    await expect(findOsBackend({ root: old, run: nothing, wanted: 'grub' })).rejects.toThrow(
      'the backend grub cannot work on this host: /usr/sbin/grub-mkconfig does not read /etc/default/grub.d',
    );
  });

  it.each([
    ['bootc', { 'usr/bin/bootc': '', 'usr/bin/rpm-ostree': '', 'run/ostree-booted': '' }, new FakeBootc('a').run],
    [
      'rpm-ostree',
      { 'usr/bin/rpm-ostree': '', 'run/ostree-booted': '', 'usr/sbin/grubby': '' },
      new FakeRpmOstree('a').run,
    ],
    ['grubby', { 'usr/sbin/grubby': '' }, new FakeGrubby('ro').run],
  ] as const)('%s is experimental: it refuses everything until it is asked for by name', async (name, files, run) => {
    const root = await hostWith(files);
    const off = await findOsBackend({ root, run, wanted: 'auto' });
    expect(off.name).toBe(name);
    for (const field of OS_FIELDS.filter((one) => one !== 'fips')) {
      expect(off.refusal(field)).toBe(
        `the support for ${name} is experimental and off: set DRYDOCK_OS_BACKEND=${name} for the node worker of this host`,
      );
    }
    expect(await off.staged()).toEqual(PLAIN_OS);
    expect((await off.booted()).kernelArguments).toEqual(['root=UUID=1', 'ro', 'quiet']);
    await off.stage(PLAIN_OS);
    await expect(off.stage({ ...PLAIN_OS, kernelArguments: ['a'] })).rejects.toThrow('cannot change it');

    const on = await findOsBackend({ root, run, wanted: name });
    expect(on.name).toBe(name);
    expect(off.refusal('kernelType')).not.toBe(on.refusal('kernelType'));
    // Which deployment /etc belongs to must be known, also where nothing is changed.
    expect(await off.deployment()).toBe(await on.deployment());
    expect((await on.deployment()) === '').toBe(name === 'grubby');
  });

  it('is none where the host has nothing, or where it is told so, and says which', async () => {
    const bare = await findOsBackend({ root: await hostWith({}), run: nothing, wanted: 'auto' });
    expect(bare).toMatchObject({ name: 'none' });
    expect(bare.refusal('kernelArguments')).toMatch(/^this host has none of update-grub/);
    const told = await findOsBackend({ root: await hostWith(DEBIAN), run: nothing, wanted: 'none' });
    expect(told.refusal('kernelArguments')).toMatch(/DRYDOCK_OS_BACKEND=none/);
  });

  it('is not one that the host was not booted with', async () => {
    const root = await hostWith({ 'usr/bin/rpm-ostree': '', 'usr/bin/bootc': '' });
    expect((await findOsBackend({ root, run: nothing, wanted: 'auto' })).name).toBe('none');
    await expect(findOsBackend({ root, run: nothing, wanted: 'rpm-ostree' })).rejects.toThrow(/not booted with ostree/);
  });

  it('allows FIPS only where the running kernel has it', async () => {
    for (const [text, isRefused] of [
      ['0\n', true],
      ['1\n', false],
    ] as const) {
      for (const wanted of ['auto', 'none'] as const) {
        const root = await hostWith({ ...DEBIAN, 'proc/sys/crypto/fips_enabled': text });
        const refusal = (await findOsBackend({ root, run: nothing, wanted })).refusal('fips');
        expect(refusal !== undefined, `${text} ${wanted}`).toBe(isRefused);
      }
    }
  });
});

describe('grubby', () => {
  async function redHat(...kernels: string[]) {
    const root = await hostWith({ 'usr/sbin/grubby': '' });
    const host = new FakeGrubby(...kernels);
    const backend = await findOsBackend({ root, run: host.run, wanted: 'grubby' });
    const stage = (...kernelArguments: string[]) => backend.stage({ ...PLAIN_OS, kernelArguments });
    const staged = async () => (await backend.staged()).kernelArguments;
    return { host, backend, stage, staged };
  }

  it('changes every kernel, and takes away what is ours only', async () => {
    const { host, stage, staged } = await redHat('ro crashkernel=1G quiet', 'ro quiet');
    await stage('audit=1', 'nosmt');
    expect(host.kernels).toEqual([
      ['ro', 'crashkernel=1G', 'quiet', 'audit=1', 'nosmt'],
      ['ro', 'quiet', 'audit=1', 'nosmt'],
    ]);
    await stage('audit=1', 'nosmt');
    expect(host.commands).toHaveLength(1);
    await stage('audit=0');
    expect(await staged()).toEqual(['audit=0']);
    await stage();
    expect(host.kernels).toEqual([
      ['ro', 'crashkernel=1G', 'quiet'],
      ['ro', 'quiet'],
    ]);
  });

  it('refuses what grubby cannot keep apart', async () => {
    const { backend, stage, host } = await redHat('ro console=ttyS0');
    const refusal = (...kernelArguments: string[]) =>
      backend.refusal('kernelArguments', { ...PLAIN_OS, kernelArguments });
    expect(refusal('hugepages=1', 'hugepages=2')).toMatch(/^hugepages: grubby keeps only one/);
    expect(refusal('a="b c"')).toMatch(/cannot take quotes/);
    expect(refusal('a=1', 'b')).toBeUndefined();
    await expect(stage('console=tty0')).rejects.toThrow('the host itself sets console');
    expect(host.commands).toEqual([]);
  });

  it("tells when an early grubby took away somebody else's argument", async () => {
    const { host, stage } = await redHat('ro');
    await stage('audit=1');
    host.kernels = [['ro', 'audit=1', 'audit=11']];
    host.removesByPrefix = true;
    await expect(stage()).rejects.toThrow("grubby: removed audit=11, which is not Drydock's: add it again");
  });

  it('knows what is ours after it was killed in one change and in the next', async () => {
    const { host, stage } = await redHat('ro', 'ro');
    await stage('a=1');
    host.diesAfter = 1;
    await expect(stage('b=1')).rejects.toThrow('killed');
    host.diesAfter = 0;
    await expect(stage('c=1')).rejects.toThrow('killed');
    host.diesAfter = Number.POSITIVE_INFINITY;
    await stage('a=1');
    expect(host.kernels).toEqual([
      ['ro', 'a=1'],
      ['ro', 'a=1'],
    ]);
  });

  it('goes back after it was killed between two kernels', async () => {
    const { host, stage, staged } = await redHat('ro', 'ro');
    await stage('a=1');
    host.diesAfter = 1;
    await expect(stage('a=2', 'b')).rejects.toThrow('killed');
    host.diesAfter = Number.POSITIVE_INFINITY;
    await stage('a=1');
    expect(host.kernels).toEqual([
      ['ro', 'a=1'],
      ['ro', 'a=1'],
    ]);
    expect(await staged()).toEqual(['a=1']);
  });
});
