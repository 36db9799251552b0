import { execFile } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, test } from 'vitest';
import { offlineRender } from '../../client/offline-render.js';
import { readLabSettings } from '../../dev/settings.js';
import { ensureIgnitionValidate, whyNoIgnitionValidate } from '../../dev/tools/ignition-tools.js';
import { invalidConfigs } from '../support/ignition-validate.js';

const DEMO = fileURLToPath(new URL('../../dev/demo/', import.meta.url));
const why = await whyNoIgnitionValidate();
if (why !== undefined) process.stderr.write(`rendered configs are not validated: ${why}\n`);

describe.skipIf(why !== undefined)('ignition-validate', () => {
  let program: string;
  beforeAll(async () => {
    program = await ensureIgnitionValidate(readLabSettings(), (line) => process.stderr.write(`[tools] ${line}\n`));
  }, 600_000);
  const withVersion = (version: string, more: object = {}) => ({
    metadata: { name: `spec-${version}` },
    spec: { config: { ignition: { version }, ...more } },
  });

  test('is the version that knows the specs that we render', async () => {
    const { stdout } = await promisify(execFile)(program, ['-version']);
    expect(stdout).toMatch(/ignition/i);
    const known = ['3.0.0', '3.1.0', '3.2.0', '3.3.0', '3.4.0', '3.5.0'].map((version) => withVersion(version));
    expect(await invalidConfigs(program, known)).toEqual([]);
    expect(await invalidConfigs(program, [withVersion('3.9.0')])).toHaveLength(1);
  });

  test('refuses what first boot would, with the name of the config', async () => {
    const bad = withVersion('3.5.0', { storage: { files: [{ path: '/etc/a', overwrite: true }] } });
    expect(await invalidConfigs(program, [withVersion('3.4.0'), bad])).toEqual([
      expect.stringMatching(
        /^spec-3\.5\.0: error at \$\.storage\.files\.0\.overwrite.*source is unspecified$/,
      ) as string,
    ]);
  });

  test('accepts what the demo rolls out, in each pool', async () => {
    const folders = readdirSync(DEMO, { withFileTypes: true }).filter((entry) => entry.isDirectory());
    const files = folders.map(({ name }) => `${DEMO}${name}`);
    const results = await Promise.all(['worker', 'master'].map((pool) => offlineRender({ files, pool })));
    const configs = results.flatMap((result) => (result.outcome === 'rendered' ? [result.config] : []));
    expect(configs.length).toBeGreaterThan(0);
    expect(await invalidConfigs(program, configs)).toEqual([]);
  });
});
