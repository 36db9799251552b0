import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { startLab } from '../lab.js';
import { readLabSettings, type LabSettings } from '../settings.js';
import type { Log } from '../tools/cache.js';
import { ensureRealNodeTools } from '../tools/debian-tools.js';
import { withLock } from '../tools/lock.js';
import { runProgram, tail } from '../tools/run-program.js';
import { startMachines } from './real-node.js';

/**
 * Why this host cannot have real nodes, in one line; undefined if it can. Installs and builds what is missing, as the
 * settings allow, and boots one machine for trial, once in a boot of this host.
 */
export async function whyNoRealNodes(log: Log = () => undefined): Promise<string | undefined> {
  const settings = readLabSettings();
  if (process.platform !== 'linux') return `systemd-nspawn needs Linux, this is ${process.platform}`;
  if (process.arch !== 'x64' && process.arch !== 'arm64') return `there is no package for ${process.arch}`;
  if (process.getuid?.() !== 0) return 'systemd-nspawn needs root';
  const missing = await ensureRealNodeTools(settings, log);
  if (missing !== undefined) return missing;
  // In containers root is often not allowed to do it.
  const isolated = await runProgram('unshare', ['--mount', '--net', '--pid', '--fork', '--mount-proc', 'true']);
  if (isolated.outcome === 'failed') return `this host does not allow namespaces: ${tail(isolated.output, 1)}`;
  return onceInABoot(settings, () => tryOne(log));
}

/** A machine that could be booted will be again, and so the other way, until this host is booted anew. */
async function onceInABoot(
  settings: LabSettings,
  trial: () => Promise<string | undefined>,
): Promise<string | undefined> {
  const bootId = (await readFile('/proc/sys/kernel/random/boot_id', 'utf8')).trim();
  const folder = join(settings.cacheDirectory, 'real-nodes');
  const file = join(folder, bootId);
  await mkdir(folder, { recursive: true });
  return withLock(join(settings.cacheDirectory, 'locks', 'real-nodes-trial'), async () => {
    const known = await readFile(file, 'utf8').catch(() => undefined);
    if (known === '') return undefined;
    const why = await trial();
    // A failure may be one of the moment: no network, no room. It is tried again.
    if (why === undefined) await writeFile(file, '');
    return why;
  });
}

async function tryOne(log: Log): Promise<string | undefined> {
  const lab = await startLab({ temporal: false, kubernetes: false });
  try {
    await startMachines(lab, [{ name: 'trial' }], log);
    return undefined;
  } catch (error) {
    return `a machine cannot be booted here: ${error instanceof Error ? error.message : String(error)}`;
  } finally {
    await lab.stop();
  }
}
