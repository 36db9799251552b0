import { createHash } from 'node:crypto';
import { execFile } from 'node:child_process';
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { buildControlPackage, buildNodePackage } from '../../dev/package/build.js';

const run = promisify(execFile);
const log = (line: string) => process.stderr.write(`[package] ${line}\n`);

/** Builds a package of this source tree, or takes the built one. @returns its folder, unpacked below `directory`. */
export async function unpackedPackage(kind: 'node' | 'control', directory: string): Promise<string> {
  const build = kind === 'node' ? buildNodePackage : buildControlPackage;
  const { tarball } = await build({ log });
  const into = join(directory, kind);
  await mkdir(into, { recursive: true });
  await run('tar', ['-xzf', tarball, '-C', into]);
  const [folder] = await readdir(into);
  if (folder === undefined) throw new Error(`${tarball} is empty`);
  return join(into, folder);
}

export interface OtherVersion {
  readonly version: string;
  /** Files to put in place of the package's own. */
  readonly files?: Readonly<Record<string, string>>;
}

/** A copy of an unpacked package, beside it, that says of itself that it is another version. */
export async function asVersion(
  folder: string,
  target: string,
  { version, files = {} }: OtherVersion,
): Promise<string> {
  // Links, since it is big: what differs is removed before it is written.
  await run('cp', ['--archive', '--link', folder, target]);
  const changed = new Map([
    ['VERSION', `${version}\n`],
    ['lib/package.json', JSON.stringify({ name: 'drydock', version, type: 'module' })],
    ...Object.entries(files),
  ]);
  const sums = (await readFile(join(target, 'SHA256SUMS'), 'utf8')).split('\n').map((line) => {
    const text = changed.get(line.slice(66));
    return text === undefined ? line : `${createHash('sha256').update(text).digest('hex')}  ${line.slice(66)}`;
  });
  for (const [path, text] of [...changed, ['SHA256SUMS', sums.join('\n')] as const]) {
    await rm(join(target, path));
    await writeFile(join(target, path), text);
  }
  return target;
}
