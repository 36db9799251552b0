import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { LabSettings } from '../settings.js';
import { ensureCached, type Log } from './cache.js';
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
