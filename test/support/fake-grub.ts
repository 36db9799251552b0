import { execFile } from 'node:child_process';
import { mkdir, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { RunProgram } from '../../activities/host/run-program.js';

const shell = promisify(execFile);

/**
 * update-grub of Debian as far as kernel arguments go: the same files are read by a real shell in the same order, and
 * what comes out is written as grub-mkconfig and its 10_linux do (grub 2.06-13, /usr/sbin/grub-mkconfig and
 * /etc/grub.d/10_linux). Stand-in: there are always two kernels, and no boot loader reads the result.
 */
export class FakeGrub {
  readonly root: string;
  /** How often update-grub was run. */
  updates = 0;
  /** Runs before the new configuration takes its place; may throw or answer for the program. */
  during: () => Promise<{ code: number; stderr: string } | undefined> = () => Promise.resolve(undefined);

  constructor(root: string) {
    this.root = root;
  }

  /** Lays out what the package brings. */
  static async installed(root: string, commandLine = 'console=tty0 console=ttyS0,115200n8'): Promise<FakeGrub> {
    const grub = new FakeGrub(root);
    for (const folder of ['usr/sbin', 'etc/default/grub.d', 'boot/grub', 'proc/sys/crypto']) {
      await mkdir(join(root, folder), { recursive: true });
    }
    await writeFile(join(root, 'usr/sbin/update-grub'), '#!/bin/sh\n', { mode: 0o755 });
    await writeFile(join(root, 'usr/sbin/grub-mkconfig'), 'for x in ${sysconfdir}/default/grub.d/*.cfg ; do\n', {
      mode: 0o755,
    });
    await writeFile(
      join(root, 'etc/default/grub'),
      `GRUB_CMDLINE_LINUX_DEFAULT="quiet"\nGRUB_CMDLINE_LINUX="${commandLine}"\n`,
    );
    await grub.update();
    return grub;
  }

  readonly run: RunProgram = async (program) => {
    if (program !== 'update-grub') throw new Error(`unexpected program ${program}`);
    this.updates += 1;
    const instead = await this.during();
    if (instead !== undefined) return { stdout: '', ...instead };
    await this.update();
    return { code: 0, stdout: '', stderr: 'Generating grub configuration file ...\ndone\n' };
  };

  async update(): Promise<void> {
    const script = `set -e
. ./default/grub
for x in ./default/grub.d/*.cfg ; do
  if [ -e "$x" ]; then . "$x"; fi
done
printf '%s\\n%s' "$GRUB_CMDLINE_LINUX" "$GRUB_CMDLINE_LINUX_DEFAULT"`;
    const { stdout } = await shell('sh', ['-c', script], { cwd: join(this.root, 'etc') });
    const [always = '', normally = ''] = stdout.split('\n');
    const entry = (version: string, args: string) =>
      `menuentry 'Debian GNU/Linux, with Linux ${version}' {\n\tlinux\t/boot/vmlinuz-${version} root=UUID=1 ro ${args}\n\tinitrd\t/boot/initrd.img-${version}\n}\n`;
    const entries = ['6.1.0-26-amd64', '6.1.0-25-amd64'].map(
      (version) => entry(version, `${always} ${normally}`) + entry(version, `single ${always}`),
    );
    const text = `### BEGIN /etc/grub.d/10_linux ###\n${entries.join('')}### END /etc/grub.d/10_linux ###
### BEGIN /etc/grub.d/30_os-prober ###
menuentry 'Another system' {\n\tlinux\t/vmlinuz root=UUID=2 ro\n}
### END /etc/grub.d/30_os-prober ###\n`;
    const path = join(this.root, 'boot/grub/grub.cfg');
    await writeFile(`${path}.new`, text, { mode: 0o600 });
    await rename(`${path}.new`, path);
  }
}
