import { bundleWorkflowCode, DefaultLogger, type WorkflowBundleWithSourceMap } from '@temporalio/worker';
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** A piece of a workflow's source, and what the next version has in its place. */
export interface SourceChange {
  /** Under workflows/. */
  readonly file: string;
  readonly before: string;
  readonly after: string;
}

/** The workflows as a version would have them in which these changes were made. */
export async function bundleChangedWorkflows(changes: readonly SourceChange[]): Promise<WorkflowBundleWithSourceMap> {
  // Inside the project, so that the copy finds its packages.
  await mkdir(join(ROOT, '.drydock'), { recursive: true });
  const copy = await mkdtemp(join(ROOT, '.drydock/changed-'));
  try {
    await cp(join(ROOT, 'workflows'), join(copy, 'workflows'), { recursive: true });
    for (const change of changes) await makeChange(copy, change);
    return await bundleWorkflowCode({
      workflowsPath: join(copy, 'workflows/index.ts'),
      logger: new DefaultLogger('ERROR'),
    });
  } finally {
    await rm(copy, { recursive: true, force: true });
  }
}

async function makeChange(copy: string, { file, before, after }: SourceChange): Promise<void> {
  const path = join(copy, 'workflows', file);
  const source = await readFile(path, 'utf8');
  const pieces = source.split(before);
  if (pieces.length !== 2) {
    throw new Error(`workflows/${file} has ${pieces.length - 1} times what this test changes: ${before.trim()}`);
  }
  await writeFile(path, pieces.join(after));
}

const IMPORTS: SourceChange = {
  file: 'update-node.ts',
  before: "import { CancellationScope } from '@temporalio/workflow';",
  after: "import { CancellationScope, patched, sleep } from '@temporalio/workflow';",
};
const beforeSlot = (step: string): SourceChange => ({
  file: 'update-node.ts',
  before: '      const grant = await run.takeSlot();\n',
  after: `      ${step}\n      const grant = await run.takeSlot();\n`,
});
const beforeApplying: SourceChange = {
  file: 'update-node.ts',
  before: '  const applied = await run.apply();\n',
  after: "  if (patched('rest-before-applying')) await sleep(10);\n  const applied = await run.apply();\n",
};

/** One more step before the slot and one more before the disk is changed, for updates that have not come so far yet. */
export const GUARDED_STEPS: readonly SourceChange[] = [
  IMPORTS,
  beforeSlot("if (patched('rest-before-slot')) await sleep(10);"),
  beforeApplying,
];

/** The same, and the first of them also for updates that have their slot already: they cannot replay that. */
export const UNGUARDED_STEPS: readonly SourceChange[] = [IMPORTS, beforeSlot('await sleep(10);'), beforeApplying];
