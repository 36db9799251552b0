import { access, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { LabSettings } from '../settings.js';
import { ensureCached, type Log } from './cache.js';
import { aptGet, isDebian } from './debian-tools.js';
import { findOnPath } from './kubernetes-tools.js';
import { runProgram, tail } from './run-program.js';

/** It knows the specs 3.0 to 3.5. */
const VERSION = '2.24.0';
const PACKAGE = 'github.com/coreos/ignition/v2/validate';
const LINKER_FLAGS = '-s -w';
const MODULE = fileURLToPath(new URL('../ignition-build', import.meta.url));

/** Why `ignition-validate` cannot be had here, on one line; undefined: it can be built, or was. */
export async function whyNoIgnitionValidate(): Promise<string | undefined> {
  if ((await findOnPath('go')) !== undefined) return undefined;
  return 'Go is missing, with which ignition-validate is built from source: install Go 1.26 or newer (https://go.dev/dl)';
}

/** The reference validator of Ignition configs, from the cache; built first where it is missing. */
export async function ensureIgnitionValidate(
  { cacheDirectory }: Pick<LabSettings, 'cacheDirectory'>,
  log: Log,
): Promise<string> {
  const sources = await Promise.all(['go.mod', 'go.sum'].map((file) => readFile(join(MODULE, file), 'utf8')));
  const entry = {
    name: 'ignition-validate',
    version: VERSION,
    usually: '30 seconds, once',
    recipe: [...sources, PACKAGE, LINKER_FLAGS, process.platform, process.arch],
    doing: `building ignition-validate ${VERSION} from source`,
  };
  return join(await ensureCached(cacheDirectory, entry, build, log), 'ignition-validate');
}

async function build(directory: string): Promise<void> {
  const output = join(directory, 'ignition-validate');
  const args = ['build', '-mod=readonly', '-trimpath', '-ldflags', LINKER_FLAGS, '-o', output, PACKAGE];
  const result = await runProgram('go', args, { cwd: MODULE });
  if (result.outcome === 'missing') throw new Error((await whyNoIgnitionValidate()) ?? 'go cannot be run');
  if (result.outcome === 'failed') {
    throw new Error(
      `building ignition-validate ${VERSION} failed (go build in dev/ignition-build): ${tail(result.output)}`,
    );
  }
}

const PROGRAM_PACKAGE = 'github.com/coreos/ignition/v2/internal';
const PROGRAM_MODULE = join(MODULE, 'program');
const DISTRIBUTION = 'github.com/coreos/ignition/v2/internal/distro';
/** What a distribution decides as it builds it; for Debian: no SELinux, and an sshd that reads one file of keys. */
const PROGRAM_FLAGS = `${LINKER_FLAGS} -X ${DISTRIBUTION}.selinuxRelabel=false -X ${DISTRIBUTION}.writeAuthorizedKeysFragment=false`;
/** The program reads file systems by util-linux's libblkid. */
const BLKID_HEADER = '/usr/include/blkid/blkid.h';
const BLKID_PACKAGE = 'libblkid-dev';

/** Why Ignition itself cannot be had here, on one line; undefined: it can be built, or was. */
export async function whyNoIgnition({ installTools }: LabSettings): Promise<string | undefined> {
  const noGo = await whyNoIgnitionValidate();
  if (noGo !== undefined || (await hasBlkid())) return noGo;
  const advice = `${BLKID_HEADER} is missing, with which Ignition is built: apt-get install ${BLKID_PACKAGE}`;
  if (!installTools || process.getuid?.() !== 0 || !(await isDebian())) return advice;
  const problem =
    (await aptGet('update')) ?? (await aptGet('install', '--yes', '--no-install-recommends', BLKID_PACKAGE));
  return problem === undefined ? undefined : `${advice} (${problem})`;
}

async function hasBlkid(): Promise<boolean> {
  return access(BLKID_HEADER).then(
    () => true,
    () => false,
  );
}

/** The program that sets a machine up at its first boot, from the cache; built first where it is missing. */
export async function ensureIgnition(
  { cacheDirectory }: Pick<LabSettings, 'cacheDirectory'>,
  log: Log,
): Promise<string> {
  const sources = await Promise.all(['go.mod', 'go.sum'].map((file) => readFile(join(PROGRAM_MODULE, file), 'utf8')));
  const entry = {
    name: 'ignition',
    version: VERSION,
    usually: '3 minutes, once',
    recipe: [...sources, PROGRAM_PACKAGE, PROGRAM_FLAGS, process.platform, process.arch],
    doing: `building Ignition ${VERSION} from source`,
  };
  const fill = async (directory: string) => {
    const output = join(directory, 'ignition');
    const args = ['build', '-mod=readonly', '-trimpath', '-ldflags', PROGRAM_FLAGS, '-o', output, PROGRAM_PACKAGE];
    const result = await runProgram('go', args, { cwd: PROGRAM_MODULE });
    if (result.outcome === 'ok') return;
    const why = result.outcome === 'failed' ? tail(result.output) : 'go cannot be run';
    throw new Error(`building Ignition ${VERSION} failed (go build in dev/ignition-build/program): ${why}`);
  };
  return join(await ensureCached(cacheDirectory, entry, fill, log), 'ignition');
}
