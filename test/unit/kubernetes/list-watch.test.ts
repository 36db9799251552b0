import { describe, expect, test, vi } from 'vitest';
import type { KubernetesObject } from '../../../activities/kubernetes/client.js';
import {
  ListWatch,
  parseJsonLines,
  type ListResult,
  type WatchEvent,
} from '../../../activities/kubernetes/list-watch.js';
import { PATIENCE } from '../../support/patience.js';

const object = (name: string, resourceVersion: string, uid = `uid-${name}`): KubernetesObject => ({
  metadata: { name, resourceVersion, uid },
});

type Script = { list?: ListResult<KubernetesObject> | Error; watch?: WatchEvent<KubernetesObject>[] | Error };

/** Plays one list and one watch after another; when the script is over the watch stays silent. */
function play(script: Script[]) {
  const seen: string[] = [];
  const versions: string[] = [];
  const asked: string[] = [];
  const end = new AbortController();
  const lists = script.flatMap(({ list }) => list ?? []);
  const watches = script.flatMap(({ watch }) => (watch === undefined ? [] : [watch]));
  const listWatch = new ListWatch<KubernetesObject>(
    {
      list: () => {
        asked.push('list');
        const next = lists.shift();
        return next instanceof Error || next === undefined
          ? Promise.reject(next ?? new Error('over'))
          : Promise.resolve(next);
      },
      watch: (resourceVersion, signal) => {
        asked.push(`watch ${resourceVersion}`);
        const next = watches.shift();
        return next instanceof Error ? Promise.reject(next) : Promise.resolve(events(next, signal));
      },
    },
    {
      onChange: (type, { metadata }) => seen.push(`${type} ${metadata.name} ${metadata.uid ?? ''}`),
      onSynced: () => seen.push('synced'),
      onVersion: (version) => versions.push(`${version} after ${seen.length}`),
      onError: (error) => seen.push(`error ${(error as Error).message}`),
    },
    { firstMilliseconds: 1, maxMilliseconds: 4, healthyMilliseconds: 1000 },
  );
  return { seen, versions, asked, end, finished: listWatch.run(end.signal) };
}

async function* events(list: WatchEvent<KubernetesObject>[] | undefined, signal: AbortSignal) {
  if (list === undefined) await new Promise((resolve) => signal.addEventListener('abort', resolve));
  for (const event of list ?? []) yield await Promise.resolve(event);
}

test('tells how far it has come after all of a list, each change and each bookmark, and not before', async () => {
  const { versions, end, finished } = play([
    {
      list: { items: [object('a', '1'), object('b', '2')], resourceVersion: '5' },
      watch: [
        { type: 'MODIFIED', object: object('a', '7') },
        { type: 'BOOKMARK', object: object('', '9') },
      ],
    },
  ]);
  await vi.waitFor(() => expect(versions).toHaveLength(3), PATIENCE);
  end.abort();
  await finished;
  // Two objects and `synced`, then one change.
  expect(versions).toEqual(['5 after 3', '7 after 4', '9 after 4']);
});

test('after an error everything is listed again, and only what differs is told', async () => {
  const { seen, asked, end, finished } = play([
    {
      list: { items: [object('same', '1'), object('changed', '2'), object('gone', '3')], resourceVersion: '5' },
      watch: [{ type: 'ERROR', object: { code: 410, message: 'too old' } }],
    },
    { list: { items: [object('same', '1'), object('changed', '6'), object('new', '7')], resourceVersion: '8' } },
  ]);
  await vi.waitFor(() => expect(asked).toEqual(['list', 'watch 5', 'list', 'watch 8']), PATIENCE);
  expect(seen).toEqual([
    'ADDED same uid-same',
    'ADDED changed uid-changed',
    'ADDED gone uid-gone',
    'synced',
    'error the watch ended: 410 too old',
    'MODIFIED changed uid-changed',
    'ADDED new uid-new',
    'DELETED gone uid-gone',
  ]);
  end.abort();
  await finished;
});

test('an object that was made again under its name is told as deleted and added', async () => {
  const { seen, end, finished } = play([
    { list: { items: [object('a', '1', 'old')], resourceVersion: '1' }, watch: new Error('reset') },
    { list: { items: [object('a', '9', 'new')], resourceVersion: '9' } },
  ]);
  await vi.waitFor(() => expect(seen.slice(-2)).toEqual(['DELETED a old', 'ADDED a new']), PATIENCE);
  end.abort();
  await finished;
});

test('a watch that ends without an error goes on at the version it had reached', async () => {
  const { asked, end, finished } = play([
    {
      list: { items: [], resourceVersion: '5' },
      watch: [
        { type: 'ADDED', object: object('a', '6') },
        { type: 'BOOKMARK', object: object('', '9') },
      ],
    },
    {},
  ]);
  await vi.waitFor(() => expect(asked).toEqual(['list', 'watch 5', 'watch 9']), PATIENCE);
  end.abort();
  await finished;
});

test('what was deleted in a watch is not reported again after the next list', async () => {
  const { seen, end, finished } = play([
    {
      list: { items: [object('a', '1')], resourceVersion: '1' },
      watch: [
        { type: 'DELETED', object: object('a', '2') },
        { type: 'ERROR', object: { code: 500 } },
      ],
    },
    { list: { items: [object('b', '3')], resourceVersion: '3' } },
  ]);
  await vi.waitFor(() => expect(seen).toContain('ADDED b uid-b'), PATIENCE);
  expect(seen.filter((line) => line.startsWith('DELETED'))).toEqual(['DELETED a uid-a']);
  end.abort();
  await finished;
});

test('lists that fail are repeated; synced comes once, after the first that succeeds', async () => {
  const { seen, end, finished } = play([
    { list: new Error('down') },
    { list: new Error('still down') },
    { list: { items: [object('a', '1')], resourceVersion: '1' }, watch: new Error('reset') },
    { list: { items: [object('a', '1')], resourceVersion: '1' } },
  ]);
  await vi.waitFor(() => expect(seen).toContain('error reset'), PATIENCE);
  expect(seen).toEqual(['error down', 'error still down', 'ADDED a uid-a', 'synced', 'error reset']);
  end.abort();
  await finished;
});

test('a listener that throws is reported and does not end the watch', async () => {
  const seen: string[] = [];
  const end = new AbortController();
  const items = [object('a', '1'), object('b', '2')];
  const run = new ListWatch<KubernetesObject>(
    {
      list: () => Promise.resolve({ items, resourceVersion: '2' }),
      watch: (_, signal) => Promise.resolve(events(undefined, signal)),
    },
    {
      onChange: (_, { metadata }) => {
        if (metadata.name === 'a') throw new Error('bug');
        seen.push(metadata.name);
      },
      onError: (error) => seen.push((error as Error).message),
    },
  ).run(end.signal);
  await vi.waitFor(() => expect(seen).toEqual(['bug', 'b']), PATIENCE);
  end.abort();
  await run;
});

describe('lines of JSON', () => {
  const parse = async (chunks: Buffer[]): Promise<unknown[]> => {
    const result: unknown[] = [];
    for await (const value of parseJsonLines(chunks as unknown as AsyncIterable<Buffer>)) result.push(value);
    return result;
  };

  test('lines and letters may be cut anywhere', async () => {
    const bytes = Buffer.from('{"a":"Zürich"}\n{"b":2}\n\n{"c":3}\n');
    for (let size = 1; size < bytes.length; size += 1) {
      const chunks = Array.from({ length: Math.ceil(bytes.length / size) }, (_, index) =>
        bytes.subarray(index * size, (index + 1) * size),
      );
      expect(await parse(chunks)).toEqual([{ a: 'Zürich' }, { b: 2 }, { c: 3 }]);
    }
  });

  test('a last line that was cut off is dropped', async () => {
    expect(await parse([Buffer.from('{"a":1}\n{"b"')])).toEqual([{ a: 1 }]);
  });
});
