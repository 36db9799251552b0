import { chmod, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { LabSettings } from '../settings.js';
import { ensureCached, type CacheEntry, type Log } from '../tools/cache.js';
import { runProgram, tail } from '../tools/run-program.js';

const RELEASE = 'bookworm';
const DEFAULT_MIRROR = 'http://deb.debian.org/debian';
const PACKAGES = [
  ...['systemd', 'systemd-sysv', 'dbus', 'procps', 'iproute2', 'nftables'],
  ...['openssh-server', 'openssh-client'],
  // For update-grub and /etc/default/grub.d; there is no boot loader.
  ...['grub-common', 'grub2-common'],
  // For matchpathcon; there is no policy, and no kernel that would enforce one.
  'selinux-utils',
];
/** Raised when what is made of the packages below changes. */
const VERSION = '1';

/** Who can be the user of SSH keys. */
const USERS = { core: 1000, admin: 1001 };
/** Not needed, and most of the size: a machine's disk is a copy of all the rest. */
const REMOVED = [
  ...['doc', 'man', 'locale', 'info', 'lintian'].map((folder) => join('usr/share', folder)),
  ...['var/cache/apt', 'var/lib/apt/lists', 'var/cache/debconf', 'var/log'],
  // A machine makes its own.
  ...['ecdsa', 'ed25519', 'rsa'].flatMap((kind) => [
    `etc/ssh/ssh_host_${kind}_key`,
    `etc/ssh/ssh_host_${kind}_key.pub`,
  ]),
  // Copies of this host's, made by debootstrap.
  ...['etc/hostname', 'etc/resolv.conf'],
];
/** They would change the disk, or take the processor, at times of their own. */
const DISABLED = ['apt-daily.timer', 'apt-daily-upgrade.timer', 'dpkg-db-backup.timer', 'e2scrub_all.timer'];
const MASKED = ['console-getty.service', 'getty.target', 'systemd-firstboot.service'];

/** The root that every machine's disk is a copy of: a small Debian with systemd, from this host's mirror. */
export function ensureBaseRoot(settings: LabSettings, log: Log): Promise<string> {
  const entry: CacheEntry = {
    name: 'debian-root',
    version: RELEASE,
    recipe: [VERSION, process.arch, ...PACKAGES],
    usually: 'a minute, once',
    doing: `making the root of the real nodes (Debian ${RELEASE} by debootstrap)`,
  };
  return ensureCached(settings.cacheDirectory, entry, fill, log);
}

async function fill(root: string): Promise<void> {
  const mirror = await readMirror();
  // In a mount namespace of its own: /proc and /sys, which it mounts in the root, cannot be left there.
  const debootstrap = ['debootstrap', '--variant=minbase', `--include=${PACKAGES.join(',')}`, RELEASE, root, mirror];
  await insist('unshare', ['--mount', ...debootstrap]);
  await chmod(root, 0o755);
  for (const path of REMOVED) await rm(join(root, path), { recursive: true, force: true });
  for (const folder of [
    'var/cache/apt/archives/partial',
    'var/lib/apt/lists',
    'var/log/journal',
    'var/cache/debconf',
  ]) {
    await mkdir(join(root, folder), { recursive: true });
  }
  for (const [name, id] of Object.entries(USERS)) {
    const options = ['--create-home', '--shell', '/bin/bash', '--uid', String(id), '--user-group'];
    await insist('chroot', [root, 'useradd', ...options, name]);
  }
  await insist('chroot', [root, 'systemctl', 'disable', ...DISABLED]);
  await insist('chroot', [root, 'systemctl', 'mask', ...MASKED]);
  await writeFile(join(root, 'etc/machine-id'), '');
  await writeFile(join(root, 'etc/resolv.conf'), '');
}

async function insist(command: string, args: readonly string[]): Promise<void> {
  const result = await runProgram(command, args, {
    env: {
      ...process.env,
      LC_ALL: 'C',
      PATH: `${process.env['PATH'] ?? ''}:/usr/sbin:/sbin`,
      DEBIAN_FRONTEND: 'noninteractive',
    },
  });
  if (result.outcome === 'ok') return;
  const why = result.outcome === 'missing' ? 'is missing' : tail(result.output, 3).replaceAll('\n', '; ');
  throw new Error(`the root of the real nodes cannot be made: ${command} ${args[0] ?? ''}: ${why}`);
}

/** The mirror that this host itself uses, where it is a Debian. */
async function readMirror(): Promise<string> {
  const files = ['/etc/apt/sources.list', '/etc/apt/sources.list.d/debian.sources'];
  for (const file of files) {
    const text = await readFile(file, 'utf8').catch(() => '');
    const found = /^(?:deb(?: \[[^\]]*\])?|URIs:)\s+(https?:\/\/\S+\/debian)\/?(?:\s|$)/m.exec(text)?.[1];
    if (found !== undefined) return found;
  }
  return DEFAULT_MIRROR;
}
