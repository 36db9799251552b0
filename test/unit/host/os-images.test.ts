import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { OsState } from '../../../activities/host/host.js';
import { findOsBackend } from '../../../activities/host/os/find-backend.js';
import { PLAIN_OS } from '../../../activities/host/os/refusal.js';
import { imageOf } from '../../../activities/host/os/rpm-ostree-status.js';
import { FakeBootc, FakeRpmOstree } from '../../support/fake-os-tools.js';

const OLD = 'registry.example/os@sha256:aaaa';
const NEW = 'registry.example/os@sha256:bbbb';

async function rootWith(...programs: string[]): Promise<string> {
  const root = await mkdtemp(join(tmpdir(), 'drydock-os-'));
  onTestFinished(() => rm(root, { recursive: true, force: true }));
  for (const folder of ['usr/bin', 'proc', 'run']) await mkdir(join(root, folder), { recursive: true });
  for (const program of programs) await writeFile(join(root, 'usr/bin', program), '', { mode: 0o755 });
  await writeFile(join(root, 'run/ostree-booted'), '');
  return root;
}

const os = (more: Partial<OsState>): OsState => ({ ...PLAIN_OS, ...more });

describe('rpm-ostree', () => {
  async function coreOs(image: string | null = OLD, arch = 'x64', kernelArguments?: string[]) {
    const root = await rootWith('rpm-ostree');
    const host = new FakeRpmOstree(image, kernelArguments);
    const backend = await findOsBackend({ root, run: host.run, wanted: 'rpm-ostree', arch });
    /** Between one boot and the next nothing but the host remembers. */
    const boot = async () => {
      host.boot();
      await writeFile(join(root, 'proc/cmdline'), `BOOT_IMAGE=x ${host.booted.kernelArguments.join(' ')}\n`);
    };
    await boot();
    return { root, host, backend, boot };
  }

  it('deletes all our kernel arguments and appends all new ones in one command, and keeps those of others', async () => {
    const { host, backend, boot } = await coreOs(OLD, 'x64', ['root=UUID=1', 'foo', 'hugepages=4']);
    const pairs = ['hugepagesz=1G', 'hugepages=4', 'hugepagesz=2M', 'hugepages=4'];
    await backend.stage(os({ kernelArguments: ['foo', 'bar=1', 'hello="a b"'] }));
    await boot();
    expect((await backend.booted()).kernelArguments).toEqual(
      expect.arrayContaining(['BOOT_IMAGE=x', 'foo', 'bar=1', 'hello="a b"']),
    );
    await backend.stage(os({ kernelArguments: pairs }));
    expect(host.commands.at(-1)).toBe(
      'kargs --delete-if-present=foo --delete-if-present=bar=1 --delete-if-present=hello="a b" --append=hugepagesz=1G --append=hugepages=4 --append=hugepagesz=2M --append=hugepages=4',
    );
    expect(host.pending?.kernelArguments).toEqual(['root=UUID=1', 'hugepages=4', 'foo', ...pairs]);
    expect(await backend.staged()).toEqual(os({ kernelArguments: pairs }));
    await boot();
    expect(await backend.staged()).toEqual(os({ kernelArguments: pairs }));
    await backend.stage(PLAIN_OS);
    await boot();
    expect(host.booted.kernelArguments.toSorted()).toEqual(['foo', 'hugepages=4', 'root=UUID=1']);
  });

  it('does nothing for what is staged or booted already', async () => {
    const { host, backend, boot } = await coreOs();
    const wanted = os({ osImageURL: OLD });
    await backend.stage(wanted);
    expect(host.commands).toEqual([]);
    expect(await backend.staged()).toEqual(wanted);
    await backend.stage(os({ osImageURL: NEW, kernelArguments: ['a'] }));
    const { length } = host.commands;
    await backend.stage(os({ osImageURL: NEW, kernelArguments: ['a'] }));
    await boot();
    await backend.stage(os({ osImageURL: NEW, kernelArguments: ['a'] }));
    expect(host.commands).toHaveLength(length);
  });

  it('rebases to an image, tells what waits for the next boot from what runs, and takes it back before the boot', async () => {
    const { host, backend, boot } = await coreOs();
    await backend.stage(os({ osImageURL: NEW }));
    expect(host.commands).toEqual([`rebase --experimental ostree-unverified-registry:${NEW}`]);
    expect((await backend.staged()).osImageURL).toBe(NEW);
    expect((await backend.booted()).osImageURL).toBe(OLD);
    await backend.stage(PLAIN_OS);
    expect(host.commands.at(-1)).toBe('cleanup --pending');
    expect(host.pending).toBeUndefined();
    await boot();
    expect((await backend.booted()).osImageURL).toBe(OLD);
  });

  it('goes back to the image that it found, also after the boot, and to a commit where there was no image', async () => {
    for (const [image, reference] of [
      [OLD, `ostree-unverified-registry:${OLD}`],
      [null, 'fedora:fedora/x86_64/coreos/stable'],
    ] as const) {
      const { host, backend, boot } = await coreOs(image);
      if (image === null) host.booted = { ...host.booted, reference };
      const [before, checksum] = [await backend.staged(), await backend.deployment()];
      expect(before).toEqual(PLAIN_OS);
      await backend.stage(os({ osImageURL: NEW, kernelArguments: ['a=1'] }));
      await boot();
      expect(await backend.deployment()).not.toBe(checksum);
      await backend.stage(before);
      await boot();
      expect(host.booted.reference).toBe(reference);
      expect(host.booted.kernelArguments).not.toContain('a=1');
      expect(await backend.staged()).toEqual(PLAIN_OS);
    }
  });

  it('leaves no half of a change behind when a command fails', async () => {
    const { host, backend } = await coreOs();
    host.failing = 'kargs';
    await expect(backend.stage(os({ osImageURL: NEW, kernelArguments: ['a'] }))).rejects.toThrow(
      'rpm-ostree kargs --append=a: ended with 1: error: Connection timed out',
    );
    expect(host.pending).toBeUndefined();
    expect(await backend.staged()).toEqual(PLAIN_OS);
  });

  it('knows its own arguments after an interruption on either side of the command, also where that was booted', async () => {
    for (const when of ['before', 'after'] as const) {
      for (const isBooted of [false, true]) {
        const { host, backend, boot } = await coreOs();
        await backend.stage(os({ kernelArguments: ['old=1', 'both'] }));
        await boot();
        const before = host.booted.kernelArguments;
        host.dies = { at: '--append=new=1', when };
        await expect(backend.stage(os({ kernelArguments: ['both', 'new=1'] }))).rejects.toThrow('killed');
        host.revive();
        if (isBooted) await boot();
        await backend.stage(os({ kernelArguments: ['old=1', 'both'] }));
        await boot();
        expect(host.booted.kernelArguments.toSorted(), `${when}, ${String(isBooted)}`).toEqual(before.toSorted());
        expect(await backend.staged()).toEqual(os({ kernelArguments: ['old=1', 'both'] }));
      }
    }
  });

  it('recognises what is ours in a deployment that somebody else made, and after booting an older one', async () => {
    const { host, backend, boot } = await coreOs();
    await backend.stage(os({ kernelArguments: ['ours=1'] }));
    await boot();
    await host.run('rpm-ostree', ['install', 'htop']);
    await host.run('rpm-ostree', ['kargs', '--append=theirs=1']);
    expect(await backend.staged()).toEqual(os({ kernelArguments: ['ours=1'] }));
    await boot();
    await backend.stage(os({ kernelArguments: ['ours=2'] }));
    await boot();
    expect(host.booted).toMatchObject({
      kernelArguments: ['root=UUID=1', 'rw', 'theirs=1', 'ours=2'],
      packages: ['htop'],
    });
    // The boot loader falls back.
    [host.booted, host.rollback] = [host.rollback!, host.booted];
    expect(await backend.staged()).toEqual(os({ kernelArguments: ['ours=1'] }));
    await backend.stage(PLAIN_OS);
    await boot();
    expect(host.booted.kernelArguments).toEqual(['root=UUID=1', 'rw', 'theirs=1']);
  });

  it('exchanges the kernel and puts it back, around a new image as well', async () => {
    const { host, backend, boot } = await coreOs();
    await backend.stage(os({ kernelType: 'realtime' }));
    expect(host.commands).toEqual([
      'override remove kernel kernel-core kernel-modules kernel-modules-core kernel-modules-extra --install kernel-rt-core --install kernel-rt-modules --install kernel-rt-modules-core --install kernel-rt-modules-extra --install kernel-rt-kvm',
    ]);
    await boot();
    expect(await backend.booted()).toMatchObject({ kernelType: 'realtime' });
    await backend.stage(os({ kernelType: 'realtime', osImageURL: NEW }));
    expect(host.commands.slice(1).map((command) => command.split(' ').slice(0, 2).join(' '))).toEqual([
      'override reset',
      'rebase --experimental',
      'override remove',
    ]);
    await boot();
    await backend.stage(PLAIN_OS);
    await boot();
    expect(host.booted).toMatchObject({ packages: [], removals: [], reference: `ostree-unverified-registry:${OLD}` });
  });

  it('installs the packages of extensions, and removes those of an extension that goes', async () => {
    const { host, backend, boot } = await coreOs();
    await backend.stage(os({ extensions: ['usbguard', 'kerberos'] }));
    expect(host.commands).toEqual(['install --idempotent usbguard krb5-workstation libkadm5']);
    await boot();
    expect((await backend.staged()).extensions.toSorted()).toEqual(['kerberos', 'usbguard']);
    await backend.stage(os({ extensions: ['kerberos'] }));
    expect(host.commands.at(-1)).toBe('uninstall --idempotent usbguard');
    host.unavailable = ['sysstat'];
    await expect(backend.stage(os({ extensions: ['sysstat'] }))).rejects.toThrow(/Packages not found: sysstat/);
    expect(host.pending).toBeUndefined();
  });

  it('fails, and leaves nothing, where what was made ready is not what was asked for', async () => {
    const { host, backend } = await coreOs();
    host.ignoring = 'install';
    await expect(backend.stage(os({ extensions: ['usbguard'], kernelArguments: ['a'] }))).rejects.toThrow(
      'is not what was asked for: without the extensions usbguard',
    );
    expect(host.pending).toBeUndefined();
  });

  it('keeps packages that were there before Drydock', async () => {
    const { host, backend } = await coreOs();
    host.booted = { ...host.booted, packages: ['sysstat', 'kernel-rt-core'] };
    expect(await backend.staged()).toEqual(PLAIN_OS);
    await backend.stage(os({ osImageURL: NEW }));
    expect(host.pending?.packages).toEqual(['sysstat', 'kernel-rt-core']);
  });

  it('refuses a kernel that the architecture has not, and extensions that nobody knows', async () => {
    const { backend } = await coreOs();
    expect(backend.refusal('kernelType', os({ kernelType: '64k-pages' }))).toMatch(/aarch64 only/);
    expect(backend.refusal('extensions', os({ extensions: ['zsh', 'usbguard'] }))).toBe('unknown extensions: zsh');
    expect(backend.refusal('fips')).toMatch(/not in FIPS mode/);
    const arm = await coreOs(OLD, 'arm64');
    expect(arm.backend.refusal('kernelType', os({ kernelType: '64k-pages' }))).toBeUndefined();
    for (const field of ['osImageURL', 'kernelArguments', 'extensions', 'kernelType'] as const) {
      expect(arm.backend.refusal(field, PLAIN_OS)).toBeUndefined();
    }
  });

  it('names images without the way in which they were fetched', () => {
    for (const reference of [
      'ostree-unverified-registry:a.example:5000/os:1',
      'ostree-image-signed:docker://a.example:5000/os:1',
      'ostree-unverified-image:docker://a.example:5000/os:1',
      'ostree-remote-image:fedora:docker://a.example:5000/os:1',
      'ostree-remote-registry:fedora:a.example:5000/os:1',
    ]) {
      expect(imageOf(reference)).toBe('a.example:5000/os:1');
    }
  });
});

describe('bootc', () => {
  async function imageHost(image = OLD) {
    const root = await rootWith('bootc');
    const host = new FakeBootc(image);
    await writeFile(join(root, 'proc/cmdline'), 'root=UUID=1 rw quiet\n');
    return { root, host, backend: await findOsBackend({ root, run: host.run, wanted: 'bootc' }) };
  }

  it('switches to an image once, and does nothing for the one that runs', async () => {
    const { host, backend } = await imageHost();
    await backend.stage(os({ osImageURL: OLD }));
    expect(host.commands).toEqual([]);
    await backend.stage(os({ osImageURL: NEW }));
    await backend.stage(os({ osImageURL: NEW }));
    expect(host.commands).toEqual([`bootc switch --transport registry ${NEW}`]);
    expect(await backend.staged()).toEqual(os({ osImageURL: NEW }));
    expect(await backend.booted()).toMatchObject({ osImageURL: OLD, kernelArguments: ['root=UUID=1', 'rw', 'quiet'] });
    const before = await backend.deployment();
    host.boot();
    expect(await backend.booted()).toMatchObject({ osImageURL: NEW });
    expect(await backend.deployment()).not.toBe(before);
  });

  it('takes back what is staged, and after the boot goes back to the image that it found', async () => {
    const { host, backend } = await imageHost();
    host.booted = { ...host.booted, transport: 'containers-storage' };
    await backend.stage(os({ osImageURL: NEW }));
    await backend.stage(PLAIN_OS);
    expect(host.commands.at(-1)).toBe('ostree admin undeploy 0');
    expect(host.staged).toBeUndefined();
    await backend.stage(os({ osImageURL: NEW }));
    host.boot();
    await backend.stage(PLAIN_OS);
    expect(host.commands.at(-1)).toBe(`bootc switch --transport containers-storage ${OLD}`);
    host.boot();
    expect(await backend.staged()).toEqual(PLAIN_OS);
  });

  it('takes back a rollback that somebody asked for', async () => {
    const { host, backend } = await imageHost();
    await backend.stage(os({ osImageURL: NEW }));
    host.boot();
    await host.run('bootc', ['rollback']);
    expect((await backend.staged()).osImageURL).not.toBe(NEW);
    await backend.stage(os({ osImageURL: NEW }));
    host.boot();
    expect(host.booted.image).toBe(NEW);
  });

  it('says what an image must bring itself, and what the registry said', async () => {
    const { host, backend } = await imageHost();
    expect(backend.refusal('kernelArguments')).toMatch(/kargs\.d/);
    expect(backend.refusal('extensions')).toMatch(/build the image/);
    expect(backend.refusal('osImageURL')).toBeUndefined();
    await expect(backend.stage(os({ kernelArguments: ['a'] }))).rejects.toThrow(
      'kernelArguments: the backend bootc cannot',
    );
    host.failing = true;
    await expect(backend.stage(os({ osImageURL: NEW }))).rejects.toThrow(/bootc switch .*manifest unknown/);
  });

  it('is not chosen where packages were layered on the image, or nothing was booted with it', async () => {
    const { root, host } = await imageHost();
    host.incompatible = true;
    expect((await findOsBackend({ root, run: host.run, wanted: 'auto' })).name).toBe('none');
    await expect(findOsBackend({ root, run: host.run, wanted: 'bootc' })).rejects.toThrow(
      'the backend bootc cannot work on this host: `bootc status` shows no booted image that bootc could update',
    );
  });
});
