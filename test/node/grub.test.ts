import { chmod, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { startMachines, type Machine } from '../../dev/real-nodes/real-node.js';
import { rendered } from '../support/fake-host.js';
import { MachineUnderTest } from '../support/machine-under-test.js';
import { describeRealNodes, treeDifferences, treeOf, useLab } from '../support/real-node.js';

/*
 * Real: update-grub and grub-mkconfig of Debian with their scripts in /etc/grub.d, the shell that reads
 * /etc/default/grub.d, the file system, systemd and the reboot. Stand-ins of the lab (dev/real-nodes/machine-files), since
 * a container has no disk and boots no kernel: grub-probe, grub-mkrelpath, the files of two kernels, and what a boot loader
 * makes of grub.cfg, which is shown as /proc/cmdline.
 */
const OURS = '/etc/default/grub.d/90-drydock.cfg';
const GRUB_CFG = '/boot/grub/grub.cfg';
/** Found before the real one: kills the process that runs it, on one side of the work. */
const KILLER = '/usr/local/sbin/update-grub';

const PAIRS = ['hugepagesz=1G', 'hugepages=4', 'hugepagesz=2M', 'hugepages=512'];
const withArguments = (name: string, ...kernelArguments: string[]) => rendered(name, {}, { kernelArguments });

describeRealNodes('kernel arguments of a Debian machine', () => {
  const lab = useLab({ temporal: false, kubernetes: false });
  let machine: MachineUnderTest;
  const text = (path: string) => readFile(join(machine.root, path), 'utf8');
  const linuxLines = async () => (await text(GRUB_CFG)).match(/^\s*linux\s.*$/gm)?.map((line) => line.trim()) ?? [];
  const commandLine = async () => (await machine.succeed(['cat', '/proc/cmdline'])).trim();
  const driftAfterBoot = async () =>
    (await machine.drive({ do: 'check', booted: true })).answers.at(-1)?.['drift'] as { words: string }[];

  beforeAll(async () => {
    const [started] = await startMachines(lab(), [{ name: 'grub' }]);
    machine = await MachineUnderTest.prepare(lab(), started as Machine);
    await machine.write('/boot/vmlinuz-6.1.0-older', 'Another kernel.\n');
    await machine.write('/etc/default/grub.d/50-cloud.cfg', 'GRUB_CMDLINE_LINUX="console=tty0 console=ttyS0"\n');
    await machine.succeed(['update-grub']);
  }, 240_000);

  test('are in every entry, in order, and after a reboot in the running kernel', async () => {
    await machine.apply(withArguments('r1', ...PAIRS, 'a=1 b="x y" c=$d'));
    const lines = await linuxLines();
    expect(lines.length).toBeGreaterThanOrEqual(4);
    for (const line of lines) {
      expect(line).toContain(`console=tty0 console=ttyS0 ${PAIRS.join(' ')} a=1 'b=x y' 'c=$d'`);
    }
    expect(await machine.drift()).toEqual([]);
    expect((await driftAfterBoot()).map(({ words }) => words).join()).toContain(
      'the running kernel lacks hugepagesz=1G',
    );

    await machine.machine.reboot();
    expect(await commandLine()).toContain(`${PAIRS.join(' ')} a=1 "b=x y" c=$d`);
    expect(await driftAfterBoot()).toEqual([]);
  });

  test('are gone to the byte when no config asks for them', async () => {
    await machine.apply(withArguments('r2'));
    const plain = await text(GRUB_CFG);
    await machine.apply(withArguments('r3', 'audit=1'));
    expect(await text(GRUB_CFG)).not.toBe(plain);
    expect((await machine.succeed(['stat', '-c', '%a %U:%G', OURS])).trim()).toBe('644 root:root');
    await machine.apply(withArguments('r4'));
    expect(await text(GRUB_CFG)).toBe(plain);
    expect((await machine.machine.exec(['test', '-e', OURS])).code).not.toBe(0);
  });

  test.each(['before', 'after'])(
    'are the old ones again when the worker is killed %s the boot loader is told',
    async (when) => {
      await machine.apply(withArguments('r5', 'old=1', 'both'));
      const look = () => treeOf(machine, { folders: ['/boot', '/etc'] });
      const old = await look();
      const work = '/usr/sbin/update-grub';
      const script = when === 'before' ? 'kill -9 $PPID' : `${work} && kill -9 $PPID`;
      await machine.write(KILLER, `#!/bin/sh\n${script}\n`);
      await chmod(join(machine.root, KILLER), 0o755);
      expect((await machine.drive({ do: 'apply', target: withArguments('r6', 'both', 'new=1') })).code).toBe(137);
      await rm(join(machine.root, KILLER));
      const between = (await linuxLines())[0] ?? '';
      expect(between.includes('new=1')).toBe(when === 'after');

      await machine.drive({ do: 'recover' });
      expect(treeDifferences(old, await look())).toEqual([]);
      expect(await machine.drift()).toEqual([]);
    },
  );

  test('are the old ones again where /boot is full, which is said', async () => {
    await machine.apply(withArguments('r7', 'old=1'));
    const before = await text(GRUB_CFG);
    const ours = await text(OURS);
    const script = `cp -a ${GRUB_CFG} /run && mount -t tmpfs -o size=32k tmpfs /boot/grub && cp -a /run/grub.cfg /boot/grub`;
    await machine.succeed(['sh', '-c', script]);
    try {
      await machine.machine.exec(['dd', 'if=/dev/zero', 'of=/boot/grub/filler', 'bs=1k', 'status=none']);
      const { answers } = await machine.drive({ do: 'apply', target: withArguments('r8', 'new=1') });
      expect(answers.at(-1)?.['error']).toMatch(/staging the operating system: update-grub: .*No space left on device/);
      expect(answers.at(-1)?.['error']).toContain('everything was put back as it was');
      expect(await machine.succeed(['cat', GRUB_CFG])).toBe(before);
    } finally {
      await machine.succeed(['umount', '/boot/grub']);
    }
    expect(await text(OURS)).toBe(ours);
    expect(await machine.drift()).toEqual([]);
  });

  test('are refused before anything is touched where GRUB would change them', async () => {
    const { answers } = await machine.drive({ do: 'apply', target: withArguments('r9', `a=it's`) });
    expect(answers.at(-1)?.['error']).toContain("spec.kernelArguments: a=it's: GRUB cannot pass on a quote");
  });
});
