import { readFile, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { findOsBackend } from '../../../activities/host/os/find-backend.js';
import { PLAIN_OS } from '../../../activities/host/os/refusal.js';
import { argumentsOfLinuxLine, grubRefusal, grubWord } from '../../../activities/host/os/grub-words.js';
import { meaningOf } from '../../../machine-config/change/command-line.js';
import { FakeGrub } from '../../support/fake-grub.js';

const OURS = 'etc/default/grub.d/90-drydock.cfg';

async function debian(commandLine?: string) {
  const root = await mkdtemp(join(tmpdir(), 'drydock-grub-'));
  onTestFinished(() => rm(root, { recursive: true, force: true }));
  const grub = await FakeGrub.installed(root, commandLine);
  const os = await findOsBackend({ root, run: grub.run, wanted: 'auto' });
  const text = (path: string) => readFile(join(root, path), 'utf8');
  const stage = (...kernelArguments: string[]) => os.stage({ ...PLAIN_OS, kernelArguments });
  const staged = async () => (await os.staged()).kernelArguments;
  const lines = async () =>
    [...(await text('boot/grub/grub.cfg')).matchAll(/^\tlinux\t\/boot\/.*? ro (.*)$/gm)].map(([, line]) => line);
  return { root, grub, os, text, stage, staged, lines };
}

describe('kernel arguments through GRUB', () => {
  it('come into every entry of this system in their order, with repetitions, after those of the host', async () => {
    const { os, stage, staged, lines } = await debian();
    expect(os.name).toBe('grub');
    const pairs = ['hugepagesz=1G', 'hugepages=4', 'hugepagesz=2M', 'hugepages=512'];
    await stage(...pairs);
    const all = 'console=tty0 console=ttyS0,115200n8 hugepagesz=1G hugepages=4 hugepagesz=2M hugepages=512';
    expect(await lines()).toEqual([`${all} quiet`, `single ${all}`, `${all} quiet`, `single ${all}`]);
    expect(await staged()).toEqual(pairs);
  });

  it('are one argument where a blank stands between quotes, and reach the kernel with dollar signs and semicolons', async () => {
    const { stage, staged, text } = await debian();
    const wanted = ['dyndbg="file drivers/usb/* +p; file x.c +p"', 'a=$HOME', 'b="plain"', 'c=#1{2}'];
    await stage(...wanted);
    expect((await staged()).map(meaningOf)).toEqual(wanted.map(meaningOf));
    expect(await text('boot/grub/grub.cfg')).toContain(
      `'dyndbg=file drivers/usb/* +p; file x.c +p' 'a=$HOME' b=plain 'c=#1{2}'`,
    );
  });

  it('are refused where GRUB would change them on the way', async () => {
    const { os, stage } = await debian();
    const wanted = { ...PLAIN_OS, kernelArguments: [`a=it's`] };
    expect(os.refusal('kernelArguments', wanted)).toBe(
      `a=it's: GRUB cannot pass on a quote or backslash inside an argument`,
    );
    await expect(stage(`a=it's`)).rejects.toThrow(/GRUB cannot pass on/);
    expect(os.refusal('kernelArguments', { ...PLAIN_OS, kernelArguments: ['a=1'] })).toBeUndefined();
  });

  it('leave nothing behind when they are taken away, and keep an equal argument of the host', async () => {
    const { root, stage, staged, lines, text } = await debian('nosmt');
    const before = await text('boot/grub/grub.cfg');
    await stage('nosmt', 'audit=1');
    expect((await lines())[0]).toBe('nosmt nosmt audit=1 quiet');
    expect(await staged()).toEqual(['nosmt', 'audit=1']);
    await stage();
    expect(await staged()).toEqual([]);
    expect(await text('boot/grub/grub.cfg')).toBe(before);
    await expect(stat(join(root, OURS))).rejects.toThrow('ENOENT');
    expect(await readdir(join(root, 'var/lib/drydock'))).toEqual([]);
  });

  it('are not written twice', async () => {
    const { grub, stage } = await debian();
    await stage('a=1');
    const updates = grub.updates;
    await stage('a=1');
    expect(grub.updates).toBe(updates);
  });

  it('are readable for everybody and owned by who runs it', async () => {
    const { root, stage } = await debian();
    await stage('a=1');
    expect((await stat(join(root, OURS))).mode & 0o777).toBe(0o644);
  });

  it('are not claimed while the boot loader does not have them', async () => {
    const { grub, stage, staged, lines } = await debian();
    await stage('old=1');
    grub.during = () => Promise.reject(new Error('the power is gone'));
    await expect(stage('new=1', 'new=2')).rejects.toThrow('the power is gone');
    expect((await lines())[0]).toContain('old=1');
    expect(await staged()).toEqual([]);
    grub.during = () => Promise.resolve(undefined);
    await stage('new=1', 'new=2');
    expect(await staged()).toEqual(['new=1', 'new=2']);
    expect((await lines())[0]).not.toContain('old=1');
  });

  it('are the old ones again after an update that was interrupted on either side of update-grub', async () => {
    for (const goesThrough of [false, true]) {
      const { grub, stage, staged, text } = await debian();
      await stage('old=1', 'both=1');
      const before = [await text('boot/grub/grub.cfg'), await text(OURS)];
      grub.during = async () => {
        if (goesThrough) await grub.update();
        throw new Error('the power is gone');
      };
      await expect(stage('both=1', 'new=1')).rejects.toThrow('the power is gone');
      grub.during = () => Promise.resolve(undefined);
      await stage('old=1', 'both=1');
      expect([await text('boot/grub/grub.cfg'), await text(OURS)]).toEqual(before);
      expect(await staged()).toEqual(['old=1', 'both=1']);
    }
  });

  it('are found still there when an interrupted removal did not reach the boot loader', async () => {
    const { grub, stage, staged, lines } = await debian();
    await stage('old=1');
    grub.during = () => Promise.reject(new Error('the power is gone'));
    await expect(stage()).rejects.toThrow();
    grub.during = () => Promise.resolve(undefined);
    await stage();
    expect((await lines())[0]).not.toContain('old=1');
    expect(await staged()).toEqual([]);
  });

  it('go back without update-grub where it fails for a reason that stays, which the error names', async () => {
    const { grub, stage, staged, text } = await debian();
    await stage('old=1');
    const before = await text('boot/grub/grub.cfg');
    const full = { code: 1, stderr: 'cat: write error: No space left on device\n' };
    grub.during = () => Promise.resolve(full);
    await expect(stage('new=1')).rejects.toThrow(
      'update-grub: ended with 1: cat: write error: No space left on device',
    );
    await stage('old=1');
    expect(await staged()).toEqual(['old=1']);
    expect(await text('boot/grub/grub.cfg')).toBe(before);
  });

  it('are missed where a later file of the host sets the variable anew', async () => {
    const { root, stage } = await debian();
    await writeFile(join(root, 'etc/default/grub.d/99-cloud.cfg'), 'GRUB_CMDLINE_LINUX="net.ifnames=0"\n');
    await expect(stage('a=1')).rejects.toThrow(/lacks a=1 after update-grub: look for a file .* later than/);
  });

  it('count as not staged when our file was changed or removed by hand', async () => {
    const { root, stage, staged } = await debian();
    await stage('a=1');
    await rm(join(root, OURS));
    expect(await staged()).toEqual([]);
    await stage('a=1');
    expect(await staged()).toEqual(['a=1']);
  });

  it('are, of the running kernel, all that it was booted with', async () => {
    const { root, os } = await debian();
    await writeFile(join(root, 'proc/cmdline'), 'BOOT_IMAGE=/vmlinuz ro "dyndbg=file a +p" quiet\n');
    expect((await os.booted()).kernelArguments).toEqual(['BOOT_IMAGE=/vmlinuz', 'ro', '"dyndbg=file a +p"', 'quiet']);
  });
});

describe("words of GRUB's configuration", () => {
  it('say the same when they are read again', () => {
    for (const argument of ['a', 'a=b', 'a="b c"', 'a=$b;c', 'a=b#c', '"a=b  c"', 'a=\\x20b', 'a=~!%^&*()<>|']) {
      expect(grubRefusal(argument), argument).toBeUndefined();
      const [found] = argumentsOfLinuxLine(`\tlinux\t/boot/vmlinuz ${grubWord(argument)} quiet`);
      expect(meaningOf(found ?? ''), argument).toBe(meaningOf(argument));
    }
  });

  it('are read with the quotes that others use', () => {
    expect(argumentsOfLinuxLine(`  linux /vmlinuz root=UUID=1 "a=b c" d\\ e $vt_handoff f'g'`)).toEqual([
      'root=UUID=1',
      '"a=b c"',
      '"d e"',
      '$vt_handoff',
      'fg',
    ]);
  });
});
