import { copyFile, mkdir, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { runProgram, tail } from '../tools/run-program.js';

const FILES = fileURLToPath(new URL('machine-files', import.meta.url));
const STAND_INS = 'usr/local/lib';

/** Where a machine sees the Node.js that runs its stand-ins. */
export const NODE_IN_MACHINE = `/${STAND_INS}/kubelet-stand-in/node`;
/** Where it sees the kernel's command line of this boot. */
export const COMMAND_LINE_IN_MACHINE = `/${STAND_INS}/boot-loader-stand-in/cmdline`;

/** What the lab adds to Debian, with the mode. All of it lies where no config of a test writes. */
const ADDED: Readonly<Record<string, readonly [source: string, mode: number]>> = {
  'usr/sbin/grub-probe': ['grub-probe.sh', 0o755],
  'usr/bin/grub-mkrelpath': ['grub-mkrelpath.sh', 0o755],
  'usr/lib/systemd/system/boot-loader-stand-in.service': ['boot-loader.service', 0o644],
  'usr/lib/systemd/journald.conf.d/lab.conf': ['lab-journald.conf', 0o644],
};
const KUBELET: typeof ADDED = {
  'usr/bin/kubelet': ['kubelet.sh', 0o755],
  [`${STAND_INS}/kubelet-stand-in/kubelet.mjs`]: ['kubelet.mjs', 0o644],
  [`${STAND_INS}/kubelet-stand-in/kubelet-bootstrap.mjs`]: ['kubelet-bootstrap.mjs', 0o644],
  'usr/lib/systemd/system/kubelet.service': ['kubelet.service', 0o644],
};

export interface MachineFilesInput {
  readonly root: string;
  readonly hostname: string;
  /** With the stand-in for the kubelet, enabled. */
  readonly kubelet: boolean;
}

/** Makes a copy of the base root a machine of its own. It must be off. */
export async function writeMachineFiles({ root, hostname, kubelet }: MachineFilesInput): Promise<void> {
  const put = async (path: string, content: string, mode = 0o644) => {
    await mkdir(dirname(join(root, path)), { recursive: true });
    await writeFile(join(root, path), content, { mode });
  };
  for (const [path, [source, mode]] of Object.entries({ ...ADDED, ...(kubelet ? KUBELET : {}) })) {
    await mkdir(dirname(join(root, path)), { recursive: true });
    await copyFile(join(FILES, source), join(root, path));
    await run('chmod', [mode.toString(8), join(root, path)]);
  }
  await put('etc/hostname', `${hostname}\n`);
  await put('etc/hosts', `127.0.0.1 localhost\n127.0.1.1 ${hostname}\n`);
  await put(
    'etc/default/grub',
    'GRUB_DEFAULT=0\nGRUB_TIMEOUT=0\nGRUB_CMDLINE_LINUX_DEFAULT="quiet"\nGRUB_CMDLINE_LINUX=""\n',
  );
  // Without a kernel update-grub would write no entry.
  await put('boot/vmlinuz-6.1.0-lab', 'The kernel is that of the host.\n');
  await put('boot/initrd.img-6.1.0-lab', '');
  await put('boot/grub/.keep', '');
  // Mount points.
  for (const path of [NODE_IN_MACHINE, COMMAND_LINE_IN_MACHINE]) await put(path, '');
  await enable(root, 'sysinit.target', 'boot-loader-stand-in.service');
  if (kubelet) await enable(root, 'multi-user.target', 'kubelet.service');
  const key = '/etc/ssh/ssh_host_ed25519_key';
  await run('chroot', [root, 'ssh-keygen', '-q', '-t', 'ed25519', '-N', '', '-C', hostname, '-f', key]);
}

/** As a vendor does it: below /usr, so that /etc is left to the configs. */
async function enable(root: string, target: string, unit: string): Promise<void> {
  const wants = join(root, `usr/lib/systemd/system/${target}.wants`);
  await mkdir(wants, { recursive: true });
  await symlink(`../${unit}`, join(wants, unit));
}

async function run(command: string, args: readonly string[]): Promise<void> {
  const result = await runProgram(command, args);
  if (result.outcome === 'ok') return;
  const why = result.outcome === 'missing' ? 'is missing' : tail(result.output, 2).replaceAll('\n', '; ');
  throw new Error(`a machine's disk cannot be made: ${command} ${args.join(' ')}: ${why}`);
}
