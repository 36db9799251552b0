import { createHash } from 'node:crypto';
import { copyFile, mkdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { ensureCached, type Log } from '../tools/cache.js';
import { runProgram, tail } from '../tools/run-program.js';

/** The architectures that packages are made for, as Node.js names them. */
export const PACKAGE_ARCHITECTURES = ['x64', 'arm64'] as const;
export type PackageArchitecture = (typeof PACKAGE_ARCHITECTURES)[number];

/**
 * The Node.js that packages carry: the official builds as npm packages, pinned by what they contain. They need glibc
 * 2.28 or newer.
 */
export const NODE_RUNTIME = {
  version: '20.20.2',
  integrity: {
    x64: 'sha512-PeHQM8wAdmHtZA1mBocygZxs5LiUWtsJezQTkBd0iY987KpGrD1O2tVEydvMZiuXceRanxt7rjTnDEBwOPujoQ==',
    arm64: 'sha512-LCXJnNTFiyGuYBw2gZSI5OBFMbkjAPt8sqD/NKrWoE2QmDgSubTqFng6GaNJ9EJ8HpxBMGcWWpbbcs4Vo+CnGg==',
  },
} as const satisfies { version: string; integrity: Record<PackageArchitecture, string> };

/**
 * A folder with `node` and its `LICENSE`, from the cache or through npm, whatever registry that is set to.
 *
 * @throws when npm cannot fetch it, or when what came is not what is pinned.
 */
export async function ensureNodeRuntime(
  architecture: PackageArchitecture,
  cacheDirectory: string,
  log: Log,
): Promise<string> {
  const { version, integrity } = NODE_RUNTIME;
  const entry = {
    name: `node-linux-${architecture}`,
    version,
    recipe: [integrity[architecture]],
    usually: '5 to 30 seconds, once',
    doing: `fetching the Node.js ${version} runtime for linux-${architecture} from npm`,
  };
  const fill = (directory: string) => fetchRuntime(architecture, directory);
  return ensureCached(cacheDirectory, entry, fill, log);
}

async function fetchRuntime(architecture: PackageArchitecture, directory: string): Promise<void> {
  const name = `node-linux-${architecture}`;
  const { version, integrity } = NODE_RUNTIME;
  const download = join(directory, 'download');
  await mkdir(download);
  await run('npm', ['pack', '--silent', '--pack-destination', download, `${name}@${version}`], directory);
  const tarball = join(download, `${name}-${version}.tgz`);
  await assertIntegrity(tarball, integrity[architecture]);
  await run('tar', ['-xzf', tarball, '-C', download, 'package/bin/node', 'package/LICENSE'], directory);
  await copyFile(join(download, 'package/bin/node'), join(directory, 'node'));
  await copyFile(join(download, 'package/LICENSE'), join(directory, 'LICENSE'));
  await rm(download, { recursive: true });
}

/** @throws when the file's SHA-512 is not the one that `integrity` (`sha512-<base64>`) names. */
export async function assertIntegrity(file: string, integrity: string): Promise<void> {
  const found = `sha512-${createHash('sha512')
    .update(await readFile(file))
    .digest('base64')}`;
  if (found === integrity) return;
  throw new Error(
    `${file} is ${found}, expected ${integrity}: the registry served something else than what is pinned; check which registry npm uses`,
  );
}

async function run(command: string, args: readonly string[], cwd: string): Promise<void> {
  const result = await runProgram(command, args, { cwd });
  if (result.outcome === 'ok') return;
  const why = result.outcome === 'missing' ? 'there is no such program' : tail(result.output, 3).replaceAll('\n', ' ');
  throw new Error(`${command} ${args[0] ?? ''} failed: ${why}; packaging needs npm, tar and a reachable npm registry`);
}
