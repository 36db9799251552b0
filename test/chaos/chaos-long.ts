/*
 * Not among the tests of `npm test` yet: the only run since the control worker has an identity of its own did not end
 * within its 25 minutes, and why is not known. `npm run chaos` does the same by hand.
 */

import { describe, expect, it } from 'vitest';
import { PROCESS_NAMES } from '../../dev/chaos/fault.js';
import { describeResult } from '../../dev/chaos/report.js';
import { runChaos, type ChaosOptions, type ChaosResult } from '../../dev/chaos/run.js';

/** A busy machine needs minutes to set the stage, and the end is as patient as the long run's. */
const TIMEOUT_MS = 1_500_000;
/** A seed whose first 75 s do. */
const KILLS_EVERY_PROCESS = 38;

/** The result, and what a person needs to see why. */
async function run(options: Omit<ChaosOptions, 'say'>): Promise<{ result: ChaosResult; story: string }> {
  const lines: string[] = [];
  const result = await runChaos({ ...options, say: (line) => lines.push(line) });
  return { result, story: [...lines, ...describeResult(result)].join('\n') };
}

describe('whatever goes wrong', () => {
  it(
    'no promise is broken, and everything converges',
    async () => {
      const { result, story } = await run({ seed: KILLS_EVERY_PROCESS, durationMs: 75_000 });
      expect(result.violations, story).toEqual([]);
      expect(result.unconverged, story).toBeNull();
      expect(result.ok).toBe(true);
      // Otherwise nothing was put to the test.
      expect(result.seen.grants, story).toBeGreaterThan(result.nodes);
      expect(result.seen.reboots, story).toBeGreaterThan(result.nodes / 2);
      expect(result.seen.evictions, story).toBeGreaterThan(0);
      for (const name of PROCESS_NAMES) expect(story).toContain(`kill ${name} `);
      expect(result.faults, story).toMatchObject({ freeze: expect.any(Number) as number });
    },
    TIMEOUT_MS,
  );

  it(
    'the observer finds out a control worker whose throttle is off',
    async () => {
      const options = { seed: 1, durationMs: 90_000, nodes: 12, onlyCluster: true } as const;
      const { result, story } = await run({ ...options, plant: 'no-throttle' });
      expect(result.ok, story).toBe(false);
      expect(result.violations[0]?.promise, story).toMatch(/maxUnavailable/);
    },
    TIMEOUT_MS,
  );
});
