import { defineConfig } from 'vitest/config';

// A worker must not go on when the run was killed.
const execArgv = ['--import', new URL('dev/processes/end-with-parent.mjs', import.meta.url).href];

const project = (name: string, include: string[], extra: object = {}) => ({
  test: { name, include, pool: 'forks' as const, execArgv, testTimeout: 30_000, hookTimeout: 60_000, ...extra },
});

/** One project a kind of test: `npx vitest run --project unit`. */
export default defineConfig({
  test: {
    projects: [
      project('unit', ['test/unit/**/*.test.ts']),
      project('workflows', ['test/workflows/**/*.test.ts'], { testTimeout: 240_000, hookTimeout: 120_000 }),
      project('replay', ['test/replay/**/*.test.ts'], { testTimeout: 120_000 }),
      project('cluster', ['test/cluster/**/*.test.ts'], { testTimeout: 180_000, hookTimeout: 180_000 }),
      project('lab', ['test/lab/**/*.test.ts'], { testTimeout: 120_000, hookTimeout: 120_000 }),
      // Mostly waiting, each file with a lab of its own: two at once, after all others.
      project('chaos', ['test/chaos/**/*.test.ts'], {
        testTimeout: 300_000,
        hookTimeout: 180_000,
        maxWorkers: 2,
        sequence: { groupOrder: 1 },
      }),
    ],
  },
});
