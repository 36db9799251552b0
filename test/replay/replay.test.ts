import { historyFromJSON } from '@temporalio/common/lib/proto-utils.js';
import { bundleWorkflowCode, DefaultLogger, Worker, type ReplayResult } from '@temporalio/worker';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, it } from 'vitest';
import { bundleChangedWorkflows, GUARDED_STEPS, UNGUARDED_STEPS } from '../support/changed-workflows.js';
import { SCENARIOS } from './scenarios.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const HISTORIES = join(ROOT, 'test/replay/histories');
/** Grows with each scenario that is recorded, and never shrinks. */
const RECORDED_HISTORIES = 35;

interface Stored {
  readonly file: string;
  readonly workflowId: string;
  readonly history: unknown;
}

async function readHistories(): Promise<Stored[]> {
  const files = (await readdir(HISTORIES, { recursive: true })).filter((file) => file.endsWith('.json')).sort();
  return Promise.all(
    files.map(async (file) => ({
      file,
      ...(JSON.parse(await readFile(join(HISTORIES, file), 'utf8')) as Omit<Stored, 'file'>),
    })),
  );
}

function bundle(workflows: string) {
  return bundleWorkflowCode({ workflowsPath: join(workflows, 'index.ts'), logger: new DefaultLogger('ERROR') });
}

async function replay(workflowBundle: Awaited<ReturnType<typeof bundle>>, stored: readonly Stored[]) {
  const histories = stored.map(({ workflowId, history }) => ({ workflowId, history: historyFromJSON(history) }));
  const results: ReplayResult[] = [];
  for await (const result of Worker.runReplayHistories({ workflowBundle }, histories)) results.push(result);
  return results;
}

describe('recorded histories', () => {
  let stored: Stored[];
  beforeAll(async () => {
    stored = await readHistories();
  });

  it('are all there, for every scenario', () => {
    expect(new Set(stored.map(({ file }) => file.split('/')[0]))).toEqual(new Set(SCENARIOS.map(({ name }) => name)));
    expect(stored).toHaveLength(RECORDED_HISTORIES);
  });

  it('hold no file contents and no keys', () => {
    for (const { file, history } of stored) {
      const text = JSON.stringify(history);
      expect(text.includes('data:,'), file).toBe(false);
      expect(text.length, file).toBeLessThan(1_000_000);
    }
  });

  it('replay with the workflows of today', async () => {
    const results = await replay(await bundle(join(ROOT, 'workflows')), stored);
    expect(results.map(({ workflowId, error }) => [workflowId, error?.message])).toEqual(
      stored.map(({ workflowId }) => [workflowId, undefined]),
    );
  });

  const updatesOf = (scenario: string) => {
    const updates = stored.filter(
      ({ file, workflowId }) => file.startsWith(`${scenario}/`) && workflowId.startsWith('node/'),
    );
    expect(updates).toHaveLength(1);
    return updates;
  };

  it('fail with a change that running workflows would not survive', async () => {
    const turnedAround = await bundleChangedWorkflows([
      {
        file: 'update-node.ts',
        before: '  const confirmed = await run.confirm();\n  await run.uncordon();\n',
        after: '  await run.uncordon();\n  const confirmed = await run.confirm();\n',
      },
    ]);
    const [result] = await replay(turnedAround, updatesOf('plain'));
    expect(result?.error?.name).toBe('DeterminismViolationError');
  });

  it('replay with a new step in what an update that waits in its drain has behind it, where that is guarded', async () => {
    const [guarded] = await replay(await bundleChangedWorkflows(GUARDED_STEPS), updatesOf('waited-in-drain'));
    expect(guarded?.error).toBeUndefined();
    const [unguarded] = await replay(await bundleChangedWorkflows(UNGUARDED_STEPS), updatesOf('waited-in-drain'));
    expect(unguarded?.error?.name).toBe('DeterminismViolationError');
  });
});
