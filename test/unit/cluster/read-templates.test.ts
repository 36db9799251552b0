import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { readTemplates } from '../../../activities/cluster/read-templates.js';
import { FakeCluster } from '../../support/fake-cluster.js';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'drydock-templates-'));
});
afterEach(() => rm(folder, { recursive: true }));

test('a folder of ones own holds the templates, as files below it or as a mounted ConfigMap has them', async () => {
  await mkdir(join(folder, 'worker', 'base', 'files'), { recursive: true });
  await writeFile(join(folder, 'worker', 'base', 'files', 'motd.yaml'), 'path: /etc/motd\n');
  await mkdir(join(folder, '..data'));
  await writeFile(join(folder, '..data', 'common__units__clock.yaml'), 'name: clock.service\n');
  await symlink(join('..data', 'common__units__clock.yaml'), join(folder, 'common__units__clock.yaml'));
  await writeFile(join(folder, '.swp'), 'of an editor');
  const templates = await readTemplates(new FakeCluster(), { source: 'folder', folder });
  expect(templates).toEqual(
    new Map([
      ['common/units/clock.yaml', 'name: clock.service\n'],
      ['worker/base/files/motd.yaml', 'path: /etc/motd\n'],
    ]),
  );
});
