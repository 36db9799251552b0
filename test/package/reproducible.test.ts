import { execFile } from 'node:child_process';
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { joinLayers, packLayer } from '../../dev/package/archive.js';
import { assertIntegrity } from '../../dev/package/node-runtime.js';
import { bundleWorkflows } from '../../dev/package/workflow-bundle.js';

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'drydock-pack-'));
});
afterEach(() => rm(directory, { recursive: true, force: true }));

it('packs the same files to the same bytes, whenever and by whomever they were written', async () => {
  const pack = async (place: string, names: readonly string[], mode: number, written: Date) => {
    const folder = join(directory, place, 'drydock');
    await mkdir(join(folder, 'bin'), { recursive: true });
    for (const name of names) {
      const file = join(folder, name);
      await writeFile(file, `contents of ${name}`);
      await chmod(file, name === 'bin/run' ? mode | 0o100 : mode);
      await utimes(file, written, written);
    }
    const tarball = join(directory, place, 'drydock.tar.gz');
    await packLayer({ folder, file: tarball, isLast: true });
    return readFile(tarball);
  };
  const one = await pack('one', ['a', 'b', 'bin/run'], 0o600, new Date(0));
  const other = await pack('other', ['bin/run', 'b', 'a'], 0o664, new Date());
  expect(other.equals(one)).toBe(true);
  const third = await pack('third', ['a', 'b'], 0o600, new Date(0));
  expect(third.equals(one)).toBe(false);
});

it('packs layers that are one archive together', async () => {
  const layers = ['one', 'two'].map(async (name) => {
    const folder = join(directory, name, 'drydock');
    await mkdir(folder, { recursive: true });
    // Empty blocks at the end of a file are no mark of the end of the archive.
    await writeFile(join(folder, name), Buffer.alloc(2048));
    const file = join(directory, `${name}.gz`);
    await packLayer({ folder, file, isLast: name === 'two' });
    return file;
  });
  const tarball = join(directory, 'drydock.tar.gz');
  await joinLayers(await Promise.all(layers), tarball);
  await promisify(execFile)('tar', ['-xzf', tarball, '-C', directory]);
  expect(await readdir(join(directory, 'drydock'))).toEqual(['one', 'two']);
  expect((await readFile(join(directory, 'drydock/one'))).equals(Buffer.alloc(2048))).toBe(true);
});

it('bundles the same workflows to the same text', async () => {
  const project = fileURLToPath(new URL('../../', import.meta.url));
  expect(await bundleWorkflows(project)).toBe(await bundleWorkflows(project));
});

it('refuses a runtime that is not the pinned one', async () => {
  const file = join(directory, 'node.tgz');
  await writeFile(file, 'hello');
  const hello = 'sha512-m3HSJL1i83hdltRq0+o9czGb+8KJDKra4t/3JRlnPKcjI8PZm6XBHXx6zG4UuMXaDEZjR1wuXDre9G9zvN7AQw==';
  await expect(assertIntegrity(file, hello)).resolves.toBeUndefined();
  await writeFile(file, 'hello!');
  await expect(assertIntegrity(file, hello)).rejects.toThrow(/something else than what is pinned/);
});
