import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm, writeFile, mkdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { identifyProcess } from '../../../dev/processes/process-identity.js';
import { ensureCached, formatDuration, type CacheEntry } from '../../../dev/tools/cache.js';
import { withLock } from '../../../dev/tools/lock.js';

let cache: string;
let journal: string;
const children: ChildProcess[] = [];

beforeEach(async () => {
  cache = await mkdtemp(join(tmpdir(), 'drydock-cache-test-'));
  journal = join(cache, 'journal');
});

afterEach(async () => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
  await rm(cache, { recursive: true, force: true });
});

/** The same entry as cache-worker.ts fills. */
const entry: CacheEntry = { name: 'tool', version: '1', recipe: ['r'], usually: 'a moment', doing: 'making the tool' };
const silent = () => undefined;

function startWorker(slowMs: number): ChildProcess {
  const child = fork(fileURLToPath(new URL('cache-worker.ts', import.meta.url)), [cache, journal, String(slowMs)], {
    execArgv: ['--import', import.meta.resolve('tsx')],
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  children.push(child);
  return child;
}

function untilItFills(child: ChildProcess): Promise<void> {
  return new Promise((resolve) => {
    child.on('message', (message) => {
      if (message === 'filling') resolve();
    });
  });
}

async function exitCode(child: ChildProcess): Promise<number | null> {
  if (child.exitCode !== null) return child.exitCode;
  const [code] = (await once(child, 'exit')) as [number | null];
  return code;
}

async function fillWhole(directory: string): Promise<void> {
  await writeFile(join(directory, 'first'), 'ours');
  await writeFile(join(directory, 'second'), 'whole');
}

describe('the cache of tools', () => {
  test('fills an entry once and takes it from then on', async () => {
    let fills = 0;
    const fill = async (directory: string) => {
      fills += 1;
      await fillWhole(directory);
    };
    const first = await ensureCached(cache, entry, fill, silent);
    expect(await ensureCached(cache, entry, fill, silent)).toBe(first);
    expect(fills).toBe(1);
    expect((await readdir(first)).sort()).toEqual(['first', 'second']);
  });

  test('keeps another version or another recipe as another entry', async () => {
    const directories = await Promise.all(
      [entry, { ...entry, version: '2' }, { ...entry, recipe: ['other'] }].map((one) =>
        ensureCached(cache, one, fillWhole, silent),
      ),
    );
    expect(new Set(directories).size).toBe(3);
  });

  test('that two processes fill at once is filled by one of them, and both have it whole', async () => {
    const workers = [startWorker(700), startWorker(700)];
    expect(await Promise.all(workers.map(exitCode))).toEqual([0, 0]);
    expect(await readFile(journal, 'utf8')).toBe('begin\nend\n');
    const directory = await ensureCached(cache, entry, () => Promise.reject(new Error('not filled')), silent);
    expect(await readFile(join(directory, 'second'), 'utf8')).toBe('whole');
  });

  test('tells the one who waits what for', async () => {
    const first = startWorker(1_500);
    await untilItFills(first);
    const lines: string[] = [];
    await ensureCached(cache, entry, fillWhole, (line) => lines.push(line));
    expect(lines).toEqual([`waiting for process ${String(first.pid)}, which is making the tool (usually a moment)`]);
  });

  test('never uses what a killed process left half filled, and clears it away', async () => {
    const worker = startWorker(60_000);
    await untilItFills(worker);
    expect((await readdir(join(cache, 'tools'))).some((name) => name.startsWith('.filling-'))).toBe(true);
    worker.kill('SIGKILL');
    await exitCode(worker);
    const directory = await ensureCached(cache, entry, fillWhole, silent);
    expect(await readFile(join(directory, 'first'), 'utf8')).toBe('ours');
    expect(await readdir(join(cache, 'tools'))).toHaveLength(1);
    expect(await readdir(join(cache, 'locks'))).toEqual([]);
  });

  test('is left as it was by a filling that fails, and the next one may succeed', async () => {
    const failing = async (directory: string) => {
      await writeFile(join(directory, 'first'), 'half');
      throw new Error('no network');
    };
    await expect(ensureCached(cache, entry, failing, silent)).rejects.toThrow('no network');
    expect(await readdir(join(cache, 'tools'))).toEqual([]);
    const directory = await ensureCached(cache, entry, fillWhole, silent);
    expect(await readdir(directory)).toHaveLength(2);
  });
});

describe('the lock', () => {
  test('of a process whose pid is now another process is taken over', async () => {
    const file = join(cache, 'locks', 'one');
    await mkdir(join(cache, 'locks'));
    // This process is alive, but the one that is named started at another time.
    await writeFile(file, JSON.stringify({ pid: process.pid, startTime: '1' }));
    expect(await withLock(file, () => Promise.resolve('ran'))).toBe('ran');
  });

  test('that is damaged is taken over', async () => {
    const file = join(cache, 'lock');
    await writeFile(file, 'not json');
    expect(await withLock(file, () => Promise.resolve('ran'))).toBe('ran');
  });

  test('of a living process is waited for', async () => {
    const file = join(cache, 'lock');
    await writeFile(file, JSON.stringify(identifyProcess(process.ppid)));
    let waitedFor: number | undefined;
    const options = {
      pollMs: 10,
      onWait: ({ pid }: { pid: number }) => {
        waitedFor = pid;
        void rm(file);
      },
    };
    expect(await withLock(file, () => Promise.resolve('ran'), options)).toBe('ran');
    expect(waitedFor).toBe(process.ppid);
  });

  test('lets one in at a time', async () => {
    const file = join(cache, 'lock');
    let inside = 0;
    let most = 0;
    const enter = () =>
      withLock(
        file,
        async () => {
          inside += 1;
          most = Math.max(most, inside);
          await new Promise((resolve) => setTimeout(resolve, 5));
          inside -= 1;
        },
        { pollMs: 5 },
      );
    await Promise.all(Array.from({ length: 8 }, enter));
    expect(most).toBe(1);
  });
});

test.each([
  [400, '0 s'],
  [59_400, '59 s'],
  [61_000, '1 min 1 s'],
  [599_147, '9 min 59 s'],
])('%d ms is told as %s', (milliseconds, text) => {
  expect(formatDuration(milliseconds)).toBe(text);
});
