import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { STATE_FOLDER } from '../../../activities/host/state-store.js';
import { recover } from '../../../activities/host/undo.js';
import { fakeHost } from '../../support/fake-host.js';

test('what a killed write of the state left is removed by the next start, and nothing else', async () => {
  const { host, store } = await fakeHost();
  const folder = join(host.root, STATE_FOLDER);
  await mkdir(folder, { recursive: true });
  for (const name of ['journal.json.85c928db', 'originals.json.00000000', 'currentconfig.deadbeef']) {
    await writeFile(join(folder, name), '');
  }
  const kept = ['journal.json.bak', 'other.json.85c928db', 'originals.json'];
  for (const name of kept) await writeFile(join(folder, name), '{"paths":{},"units":{}}');
  await recover(host, store);
  expect((await readdir(folder)).sort()).toEqual(kept.sort());
});
