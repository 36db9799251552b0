import { readFile } from 'node:fs/promises';
import type { LabSettings } from '../settings.js';
import type { Log } from './cache.js';
import { findOnPath } from './kubernetes-tools.js';
import { runProgram, tail } from './run-program.js';

/** What real nodes need of this host, and the Debian package that has it. */
const PROGRAMS: Readonly<Record<string, string>> = {
  'systemd-nspawn': 'systemd-container',
  debootstrap: 'debootstrap',
  ip: 'iproute2',
  'mkfs.ext4': 'e2fsprogs',
  setpriv: 'util-linux',
  unshare: 'util-linux',
  nsenter: 'util-linux',
};
/** With it debootstrap verifies what it fetches, on Ubuntu too. */
const KEYRING_PACKAGE = 'debian-archive-keyring';

/**
 * Installs with apt-get what real nodes need and this host lacks, on Debian and Ubuntu as root, unless
 * DRYDOCK_INSTALL_TOOLS is `no`. Elsewhere it does nothing.
 *
 * @returns one line that says what is missing and how to get it, or undefined.
 */
export async function ensureRealNodeTools(settings: LabSettings, log: Log): Promise<string | undefined> {
  const missing = await missingPackages();
  if (missing.length === 0) return undefined;
  const names = missing.join(' ');
  const advice = `missing on this host: ${names}; install them with apt-get install ${names}`;
  if (!settings.installTools || process.getuid?.() !== 0 || !(await isDebian())) return advice;
  log(
    `installing ${names} with apt-get, for real nodes (usually half a minute, once; DRYDOCK_INSTALL_TOOLS=no: never)`,
  );
  const problem = (await aptGet('update')) ?? (await aptGet('install', '--yes', '--no-install-recommends', ...missing));
  return problem === undefined ? undefined : `${advice} (${problem})`;
}

async function missingPackages(): Promise<string[]> {
  const packages = new Set<string>();
  for (const [program, name] of Object.entries(PROGRAMS)) {
    if ((await findOnPath(program)) === undefined) packages.add(name);
  }
  // Nothing but debootstrap needs the keyring, which Debian itself always has.
  if (packages.has('debootstrap')) packages.add(KEYRING_PACKAGE);
  return [...packages];
}

/** Whether packages of Debian, or of its kin, can be had here. */
export async function isDebian(): Promise<boolean> {
  const release = await readFile('/etc/os-release', 'utf8').catch(() => '');
  return /^ID(?:_LIKE)?=.*\bdebian\b/m.test(release);
}

/** @returns what went wrong, on one line, or undefined. */
export async function aptGet(...args: string[]): Promise<string | undefined> {
  // Another apt-get may be at work, for example the one of a machine that just came up.
  const result = await runProgram('apt-get', ['--quiet', '-o', 'DPkg::Lock::Timeout=300', ...args], {
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
  });
  if (result.outcome === 'ok') return undefined;
  return `apt-get ${args[0] ?? ''}: ${result.outcome === 'failed' ? tail(result.output, 2).replaceAll('\n', '; ') : 'is missing'}`;
}
