import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Lab } from '../lab.js';
import type { Log } from '../tools/cache.js';
import { runProgram, tail } from '../tools/run-program.js';

/** The unpacked package of the node worker; built from this source tree once for the same source. */
export async function unpackNodePackage(lab: Lab, log: Log, tarball?: string): Promise<string> {
  const file = tarball ?? (await buildFromSource(log));
  const directory = join(lab.directory, 'node-package');
  await mkdir(directory, { recursive: true });
  await insist('tar', ['--extract', '--gzip', `--file=${file}`, `--directory=${directory}`]);
  const [folder] = await readdir(directory);
  if (folder === undefined) throw new Error(`${file} is empty`);
  return join(directory, folder);
}

async function buildFromSource(log: Log): Promise<string> {
  // Imported here: it brings the TypeScript compiler along, and most who use machines do not build.
  const { buildNodePackage } = await import('../package/build.js');
  return (await buildNodePackage({ log })).tarball;
}

export interface WorkerInstallation {
  readonly root: string;
  /** As `unpackNodePackage` returns it. */
  readonly packageFolder: string;
  /** Written to the worker's environment file; absent: it is installed without one, and does not start. */
  readonly environment?: Readonly<Record<string, string>>;
}

/** Installs the node worker into the disk of a machine that is off, by its own install script; it starts at boot. */
export async function installNodeWorker({ root, packageFolder, environment }: WorkerInstallation): Promise<void> {
  if (environment !== undefined) {
    const lines = Object.entries(environment).map(([name, value]) => `${name}=${value}\n`);
    await mkdir(join(root, 'etc/drydock'), { recursive: true });
    await writeFile(join(root, 'etc/drydock/node.env'), lines.join(''), { mode: 0o600 });
  }
  await insist('sh', [join(packageFolder, 'install.sh'), '--root', root]);
}

async function insist(command: string, args: readonly string[]): Promise<void> {
  const result = await runProgram(command, args);
  if (result.outcome === 'ok') return;
  const why = result.outcome === 'missing' ? 'is missing' : tail(result.output, 3).replaceAll('\n', '; ');
  throw new Error(`the node worker cannot be installed: ${command} ${args.join(' ')}: ${why}`);
}
