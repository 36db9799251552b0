import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const launcher = fileURLToPath(new URL('../../../client/drydock.mjs', import.meta.url));

function launch(...words: string[]): Promise<{ code: number; out: string; err: string }> {
  return new Promise((resolve) => {
    execFile(process.execPath, [launcher, ...words], (error, out, err) => {
      resolve({ code: error === null ? 0 : Number(error.code), out, err });
    });
  });
}

test('the launcher runs the command from the sources, in any folder, with its exit code', async () => {
  const version = await launch('--version');
  expect(version).toEqual({ code: 0, out: expect.stringMatching(/^\d+\.\d+\.\d+\n$/) as string, err: '' });
  const missing = await launch('nodes', '--kubeconfig', '/nowhere/config');
  expect([missing.code, missing.out]).toEqual([4, '']);
  expect(missing.err).toMatch(/^drydock: list \w+: no way to the cluster: ENOENT.*\/nowhere\/config'\n$/);
});

test('the help of the lab comes without the options of a cluster', async () => {
  const { code, out } = await launch('lab', '--help');
  expect(code).toBe(0);
  expect(out).toMatch(/up .*\n[^]*down .*\n[^]*status /);
  expect(out).not.toContain('--temporal-address');
});
