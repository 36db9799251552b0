import { mkdirSync, renameSync, watch, writeFileSync, type FSWatcher } from 'node:fs';
import { chmod, mkdir, mkdtemp, rename, rm, rmdir, symlink, utimes, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { tmpdir } from 'node:os';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { PathWatch, type PathWatchOptions } from '../../../activities/host/watch-paths.js';
import { PATIENCE } from '../../support/patience.js';

/** A folder that plays the root, and a watch on it that counts. */
async function setUp(more: Partial<PathWatchOptions> = {}) {
  const root = await mkdtemp(join(tmpdir(), 'drydock-watch-'));
  const onChange = vi.fn();
  const onTrouble = vi.fn();
  const pathWatch = new PathWatch({ root, onChange, onTrouble, ...more });
  onTestFinished(async () => {
    pathWatch.close();
    await rm(root, { recursive: true, force: true });
  });
  const at = (path: string) => join(root, path);
  return {
    root,
    at,
    pathWatch,
    onChange,
    onTrouble,
    write: async (path: string, text = 'x') => {
      await mkdir(dirname(at(path)), { recursive: true });
      await writeFile(at(path), text);
    },
    follow: (paths: string[], folders: string[] = []) => pathWatch.follow({ paths, folders }),
    /** Does something and waits until a change is told that came after it began. */
    async hears(action: () => Promise<unknown>) {
      await quiet(root);
      onChange.mockClear();
      await action();
      await vi.waitFor(() => expect(onChange).toHaveBeenCalled(), { interval: 5, ...PATIENCE });
    },
    /** Does something and waits until everything was told that came of it; then nothing may have been. */
    async hearsNothingOf(action: () => Promise<unknown>) {
      await quiet(root);
      onChange.mockClear();
      await action();
      await quiet(root);
      expect(onChange).not.toHaveBeenCalled();
    },
  };
}

/** All watches of a process share one queue: when an event of ours arrives, all before it have. */
async function quiet(root: string): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'drydock-quiet-'));
  let watcher: FSWatcher | undefined;
  const heard = new Promise<void>((resolve) => (watcher = watch(folder, () => resolve())));
  await writeFile(join(folder, root.slice(-6)), '');
  await heard;
  watcher?.close();
  await rm(folder, { recursive: true });
}

describe('a watched file', () => {
  it.each([
    ['written in place', (path) => writeFile(path, 'other')],
    ['replaced by rename', (path) => writeFile(`${path}.tmp`, 'other').then(() => rename(`${path}.tmp`, path))],
    ['given another mode', (path) => chmod(path, 0o600)],
    ['touched', (path) => utimes(path, 1, 1)],
    ['removed', (path) => rm(path)],
    ['renamed', (path) => rename(path, `${path}.away`)],
  ] as [string, (path: string) => Promise<void>][])('is told of when it is %s', async (_, action) => {
    const test = await setUp();
    await test.write('/etc/a/file');
    await test.follow(['/etc/a/file']);
    await test.hears(() => action(test.at('/etc/a/file')));
  });

  it('is told of when it comes into being, in folders that do not exist either', async () => {
    const test = await setUp();
    await test.follow(['/etc/a/b/file']);
    for (const folder of ['/etc', '/etc/a', '/etc/a/b']) {
      await test.hears(() => mkdir(test.at(folder)));
      await test.follow(['/etc/a/b/file']);
    }
    await test.hears(() => writeFile(test.at('/etc/a/b/file'), ''));
  });

  it('is told of when a folder far above it is moved away and back, and afterwards', async () => {
    const test = await setUp();
    await test.write('/etc/a/b/c/file');
    await test.follow(['/etc/a/b/c/file']);
    await test.hears(() => rename(test.at('/etc/a'), test.at('/etc/away')));
    await test.follow(['/etc/a/b/c/file']);
    await test.hears(() => rename(test.at('/etc/away'), test.at('/etc/a')));
    await test.follow(['/etc/a/b/c/file']);
    await test.hears(() => writeFile(test.at('/etc/a/b/c/file'), 'y'));
  });

  it('is told of in a folder that was removed and made again, whatever number it got', async () => {
    const test = await setUp();
    await test.write('/etc/a/file');
    for (let times = 0; times < 5; times++) {
      await test.follow(['/etc/a/file']);
      await rm(test.at('/etc/a/file'));
      await rmdir(test.at('/etc/a'));
      await test.write('/etc/a/file');
      await test.follow(['/etc/a/file']);
      await test.hears(() => writeFile(test.at('/etc/a/file'), String(times)));
    }
  });

  it('is told of in a folder that was replaced just when the one before it was found', async () => {
    let isReplaced = false;
    const test = await setUp({
      watchFolder(folder, onEvent) {
        const watcher = watch(folder, onEvent);
        if (folder.endsWith('/etc/a') && !isReplaced) {
          isReplaced = true;
          renameSync(folder, `${folder}.away`);
          mkdirSync(folder);
        }
        return watcher;
      },
    });
    await test.write('/etc/a/file');
    await test.follow(['/etc/a/file']);
    await test.hears(() => writeFile(test.at('/etc/a/file'), ''));
  });

  it('is told of behind links among its parents, and when one of them leads elsewhere', async () => {
    const test = await setUp();
    await test.write('/var/one/sub/file');
    await test.write('/var/two/sub/file');
    await mkdir(test.at('/etc'));
    await symlink('../var/middle', test.at('/etc/link'));
    await symlink('/var/one', test.at('/var/middle'));
    await test.follow(['/etc/link/sub/file']);
    await test.hears(() => writeFile(test.at('/var/one/sub/file'), 'y'));
    await test.hearsNothingOf(() => writeFile(test.at('/var/two/sub/file'), 'y'));
    await test.hears(async () => {
      await symlink('/var/two', test.at('/var/new'));
      await rename(test.at('/var/new'), test.at('/var/middle'));
    });
    await test.follow(['/etc/link/sub/file']);
    await test.hears(() => writeFile(test.at('/var/two/sub/file'), 'z'));
    await test.hearsNothingOf(() => writeFile(test.at('/var/one/sub/file'), 'z'));
  });

  it('that was replaced by a folder, and is one again, is told of each time', async () => {
    const test = await setUp();
    await test.write('/etc/file');
    await test.follow(['/etc/file']);
    await test.hears(() => rm(test.at('/etc/file')).then(() => mkdir(test.at('/etc/file'))));
    await test.follow(['/etc/file']);
    await test.hears(() => rmdir(test.at('/etc/file')).then(() => writeFile(test.at('/etc/file'), '')));
  });

  it('survives links that go in circles', async () => {
    const test = await setUp();
    await mkdir(test.at('/etc'));
    await symlink('b', test.at('/etc/a'));
    await symlink('a', test.at('/etc/b'));
    await test.follow(['/etc/a/file']);
    await test.hears(() => rm(test.at('/etc/b')));
  });
});

describe('other names in the folder of a watched file', () => {
  it('count for nothing', async () => {
    const test = await setUp();
    await test.write('/etc/file');
    await test.follow(['/etc/file']);
    await test.hearsNothingOf(() => test.write('/etc/other'));
  });

  it('count when there are so many that they may have pushed out one that counts', async () => {
    const test = await setUp();
    await test.write('/etc/file');
    await test.follow(['/etc/file']);
    await test.hears(() => {
      // In turns: events that are alike and follow each other are one to the kernel.
      for (let index = 0; index < 5_000; index++) writeFileSync(test.at(`/etc/other${index % 2}`), '');
      return Promise.resolve();
    });
    expect(test.onChange.mock.calls.length).toBeLessThan(10);
  });

  it('all count in a folder that is watched as such', async () => {
    const test = await setUp();
    await mkdir(test.at('/etc/units'), { recursive: true });
    await test.follow([], ['/etc/units']);
    await test.hears(() => test.write('/etc/units/any'));
  });

  it('are not heard of any more once the watch follows something else, or is closed', async () => {
    const test = await setUp();
    await test.write('/etc/file');
    await test.write('/var/file');
    await test.follow(['/etc/file']);
    await test.follow(['/var/file']);
    await test.hearsNothingOf(() => test.write('/etc/file', 'y'));
    test.pathWatch.close();
    await test.hearsNothingOf(() => test.write('/var/file', 'y'));
  });
});

describe('a kernel that grants no more watches', () => {
  const refusal = Object.assign(new Error('ENOSPC: System limit for number of file watchers reached'), {
    code: 'ENOSPC',
  });

  it('is told of once, what it grants is watched, and all is well when it grants them again', async () => {
    let granted = 2;
    const test = await setUp({
      watchFolder: (folder, onEvent) => {
        if (granted-- <= 0) throw refusal;
        return watch(folder, onEvent);
      },
    });
    await test.write('/etc/file');
    await test.write('/var/file');
    const paths = ['/etc/file', '/var/file'];
    await test.follow(paths);
    await test.follow(paths);
    expect(test.onTrouble.mock.calls).toEqual([[refusal]]);
    expect(test.pathWatch.isComplete).toBe(false);
    await test.hears(() => test.write('/etc/file', 'y'));
    granted = 10;
    await test.follow(paths);
    expect(test.pathWatch.isComplete).toBe(true);
    await test.hears(() => test.write('/var/file', 'y'));
    expect(test.onTrouble).toHaveBeenCalledTimes(1);
  });
});
