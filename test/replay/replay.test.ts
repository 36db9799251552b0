import { historyFromJSON } from '@temporalio/common/lib/proto-utils.js';
import { bundleWorkflowCode, DefaultLogger, Worker, type ReplayResult } from '@temporalio/worker';
import { cp, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, it } from 'vitest';
import { SCENARIOS } from './scenarios.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const HISTORIES = join(ROOT, 'test/replay/histories');
/** Grows with each scenario that is recorded, and never shrinks. */
const RECORDED_HISTORIES = 20;

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

  it('fail with a change that running workflows would not survive', async () => {
    // Inside the project, so that the copy finds its packages.
    await mkdir(join(ROOT, '.drydock'), { recursive: true });
    const copy = await mkdtemp(join(ROOT, '.drydock/changed-'));
    try {
      await cp(join(ROOT, 'workflows'), join(copy, 'workflows'), { recursive: true });
      const file = join(copy, 'workflows/update-node.ts');
      const source = await readFile(file, 'utf8');
      const changed = source.replace(
        '  const confirmed = await run.confirm();\n  await run.uncordon();\n',
        '  await run.uncordon();\n  const confirmed = await run.confirm();\n',
      );
      expect(changed).not.toBe(source);
      await writeFile(file, changed);
      const plain = stored.filter(
        ({ file: name, workflowId }) => name.startsWith('plain/') && workflowId.startsWith('node/'),
      );
      expect(plain).toHaveLength(1);
      const [result] = await replay(await bundle(join(copy, 'workflows')), plain);
      expect(result?.error?.name).toBe('DeterminismViolationError');
    } finally {
      await rm(copy, { recursive: true, force: true });
    }
  });
});
