import { createHash } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { readdir, rename, rm, stat, truncate } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { runProgram, tail } from '../tools/run-program.js';

/** The same for every build, so that the same inputs give the same bytes: 1 January 2026. */
const MTIME = '@1767225600';

/** What marks the end of an archive: two empty blocks. */
const END_BYTES = 1024;

export interface Layer {
  /** Packed under its own name. */
  readonly folder: string;
  /** The layer is written here, as gzip. */
  readonly file: string;
  /** Of an archive the last layer alone has the mark of the end. */
  readonly isLast: boolean;
}

/**
 * Packs a folder as one layer of a `.tar.gz`: layers one after the other in one file are one archive. What comes out
 * depends on nothing but names, contents and executable bits.
 */
export async function packLayer({ folder, file, isLast }: Layer): Promise<void> {
  const tar = `${file}.tar`;
  await run('tar', [
    '--create',
    '--format=ustar',
    // Without padding after the mark of the end.
    '--blocking-factor=1',
    '--sort=name',
    `--mtime=${MTIME}`,
    '--owner=0',
    '--group=0',
    '--numeric-owner',
    '--mode=u+rwX,go+rX,go-w',
    `--file=${tar}`,
    `--directory=${dirname(folder)}`,
    basename(folder),
  ]);
  if (!isLast) await truncate(tar, (await stat(tar)).size - END_BYTES);
  await run('gzip', ['--no-name', '-4', '--force', tar]);
  await rename(`${tar}.gz`, file);
}

/** Writes the layers into one archive. */
export async function joinLayers(layers: readonly string[], tarball: string): Promise<void> {
  await rm(tarball, { force: true });
  for (const layer of layers) await pipeline(createReadStream(layer), createWriteStream(tarball, { flags: 'a' }));
}

async function run(command: string, args: readonly string[]): Promise<void> {
  const result = await runProgram(command, args);
  if (result.outcome === 'ok') return;
  const why = result.outcome === 'missing' ? 'it is missing' : tail(result.output, 2).replaceAll('\n', ' ');
  throw new Error(`${command} failed: ${why}; packaging needs GNU tar and gzip`);
}

export async function sha256Of(file: string): Promise<string> {
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(file)) hash.update(chunk as Buffer);
  return hash.digest('hex');
}

/** Lines as `sha256sum --check` reads them, of every file below the folder, sorted by path. */
export async function checksumsOf(folder: string): Promise<string> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  const lines: string[] = [];
  for (const file of files.sort()) lines.push(`${await sha256Of(file)}  ${file.slice(folder.length + 1)}\n`);
  return lines.join('');
}
