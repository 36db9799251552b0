import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

// A worker must not go on when the run was killed.
const execArgv = ['--import', new URL('dev/processes/end-with-parent.mjs', import.meta.url).href];

/** Each may start a whole cluster: more of them than cores end no sooner, and starve each other. */
const FILES_AT_ONCE = Math.max(2, Math.min(availableParallelism(), 4));

const project = (name: string, include: string[], extra: object = {}) => ({
  test: {
    name,
    include,
    pool: 'forks' as const,
    execArgv,
    globalSetup: ['test/support/ignition-tool.ts'],
    setupFiles: ['test/support/validate-rendered.ts'],
    maxWorkers: FILES_AT_ONCE,
    testTimeout: 120_000,
    hookTimeout: 120_000,
    ...extra,
  },
});

/** The crash tests last longest and mostly wait: begun first, they end while the others run. */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const rank = ({ project: { name } }: TestSpecification) =>
      ['chaos', 'node', 'workflows', 'cluster', 'lab'].indexOf(name) >>> 0;
    return sorted.sort((one, other) => rank(one) - rank(other));
  }
}

/** One project a kind of test: `npx vitest run --project unit`. */
export default defineConfig({
  test: {
    sequence: { sequencer: LongestFirst },
    projects: [
      project('unit', ['test/unit/**/*.test.ts']),
      project('workflows', ['test/workflows/**/*.test.ts'], { testTimeout: 240_000, hookTimeout: 120_000 }),
      project('replay', ['test/replay/**/*.test.ts'], { testTimeout: 120_000 }),
      project('cluster', ['test/cluster/**/*.test.ts'], { testTimeout: 180_000, hookTimeout: 180_000 }),
      // Whole systemd machines; skipped where there can be none.
      project('node', ['test/node/**/*.test.ts'], { testTimeout: 300_000, hookTimeout: 300_000 }),
      // The packages themselves; the first test builds them.
      project('package', ['test/package/**/*.test.ts'], { testTimeout: 120_000, hookTimeout: 300_000 }),
      project('lab', ['test/lab/**/*.test.ts'], { testTimeout: 120_000, hookTimeout: 120_000 }),
      project('chaos', ['test/chaos/**/*.test.ts'], { testTimeout: 300_000, hookTimeout: 180_000 }),
    ],
  },
});
