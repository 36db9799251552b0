import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { LabSettings } from '../settings.js';
import { ensureCached, type CacheEntry, type Log } from './cache.js';
import { aptGet, isDebian } from './debian-tools.js';
import { findOnPath } from './kubernetes-tools.js';
import { runProgram, tail } from './run-program.js';

const PACKAGE = 'prometheus';

const ENTRY: CacheEntry = {
  name: PACKAGE,
  version: 'debian',
  recipe: [process.platform, process.arch],
  usually: 'half a minute, once',
  doing: 'unpacking Prometheus from its Debian package',
};

/** A `prometheus` program, or one line that says why there is none. */
export type FoundPrometheus =
  { readonly program: string; readonly missing?: never } | { readonly missing: string; readonly program?: never };

/**
 * Prometheus out of Debian's package, unpacked into the cache and not installed: no service is started, and nothing of
 * the host changes. One that the host has already is taken instead.
 */
export async function ensurePrometheus(settings: LabSettings, log: Log): Promise<FoundPrometheus> {
  const onPath = await findOnPath(PACKAGE);
  if (onPath !== undefined) return { program: onPath };
  const advice = `missing on this host: ${PACKAGE}; install it with apt-get install ${PACKAGE}`;
  if (!settings.installTools || !(await isDebian())) return { missing: advice };
  try {
    const directory = await ensureCached(settings.cacheDirectory, ENTRY, unpack, log);
    return { program: join(directory, 'usr', 'bin', PACKAGE) };
  } catch (error) {
    return { missing: `${advice} (${error instanceof Error ? error.message : String(error)})` };
  }
}

async function unpack(directory: string): Promise<void> {
  if ((await download(directory)) !== undefined) {
    // The lists of packages may be old, or not there at all; only root may renew them.
    if (process.getuid?.() === 0) await aptGet('update');
    const problem = await download(directory);
    if (problem !== undefined) throw new Error(problem);
  }
  const archive = (await readdir(directory)).find((name) => name.endsWith('.deb'));
  if (archive === undefined) throw new Error('apt-get download brought no package');
  const unpacked = await runProgram('dpkg-deb', ['--extract', join(directory, archive), directory]);
  if (unpacked.outcome !== 'ok') throw new Error('dpkg-deb could not unpack it');
}

async function download(directory: string): Promise<string | undefined> {
  const result = await runProgram('apt-get', ['--quiet', 'download', PACKAGE], { cwd: directory });
  if (result.outcome === 'ok') return undefined;
  return `apt-get download: ${result.outcome === 'failed' ? tail(result.output, 2).replaceAll('\n', '; ') : 'is missing'}`;
}
