import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { markPolling, removePollingMark, type PollingMarkOptions } from '../../../workers/polling-mark.js';
import { PATIENCE } from '../../support/patience.js';

let root: string;
const mark = () => readFile(join(root, 'run/drydock/polling'), 'utf8');

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'drydock-mark-'));
  vi.useFakeTimers({ shouldAdvanceTime: true, advanceTimeDelta: 20 });
});
afterEach(async () => {
  vi.useRealTimers();
  await rm(root, { recursive: true, force: true });
});

/** A server that answers in turn: with the identities of those who poll, or with a failure. */
function options(
  answers: (readonly string[] | Error)[],
  signal: AbortSignal,
): PollingMarkOptions & { retries: unknown[]; asked: unknown[] } {
  const retries: unknown[] = [];
  const asked: unknown[] = [];
  const describeTaskQueue = (request: unknown) => {
    asked.push(request);
    const answer = answers.length > 1 ? answers.shift() : answers[0];
    return answer instanceof Error
      ? Promise.reject(answer)
      : Promise.resolve({ pollers: (answer ?? []).map((identity) => ({ identity })) });
  };
  return {
    root,
    node: 'n1',
    version: '1.2.3',
    identity: 'node/n1/1.2.3/abc',
    namespace: 'ns',
    signal,
    retries,
    asked,
    onRetry: (error) => void retries.push(error),
    connection: {
      withDeadline: (_deadline: unknown, work: () => Promise<unknown>) => work(),
      workflowService: { describeTaskQueue },
    } as unknown as PollingMarkOptions['connection'],
  };
}

test('the mark has the version, and is there only once Temporal names this very process as a poller', async () => {
  const wanted = options(
    [['node/n1/1.2.2/old'], new Error('away'), ['node/n1/1.2.2/old', 'node/n1/1.2.3/abc']],
    new AbortController().signal,
  );
  await markPolling(wanted);
  expect(await mark()).toBe('1.2.3\n');
  expect(wanted.asked).toHaveLength(3);
  expect(wanted.asked[0]).toEqual({ namespace: 'ns', taskQueue: { name: 'node/n1' }, taskQueueType: 2 });
  expect(wanted.retries.map(String)).toEqual(['Error: away']);
});

test('a process that ends writes no mark', async () => {
  const stopping = new AbortController();
  const wanted = options([['node/n1/1.2.2/old']], stopping.signal);
  const marking = markPolling(wanted);
  await vi.waitFor(() => expect(wanted.asked.length).toBeGreaterThan(0), PATIENCE);
  stopping.abort();
  await marking;
  await expect(mark()).rejects.toThrow('ENOENT');
});

test('the mark of an earlier run is taken away, and none is none', async () => {
  await markPolling(options([['node/n1/1.2.3/abc']], new AbortController().signal));
  await removePollingMark(root);
  await expect(mark()).rejects.toThrow('ENOENT');
  await removePollingMark(root);
});
