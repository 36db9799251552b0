import { describe, expect, it } from 'vitest';
import { FAULT_KINDS, PROCESS_NAMES } from '../../dev/chaos/fault.js';
import { describeResult } from '../../dev/chaos/report.js';
import { runChaos, type ChaosOptions, type ChaosResult } from '../../dev/chaos/run.js';

/** Three minutes on two cores with nothing else to do, and twice that beside other tests. */
const LIMIT_MS = 600_000;
/** A run that is at its limit ends its processes, and says in which state everything was. */
const TIMEOUT_MS = LIMIT_MS + 120_000;
/** A seed that plays every sort of fault in the time, and kills each process for long enough to be missed. */
const PLAYS_EVERYTHING = 2366;

/** The result, and what a person needs to see why. */
async function run(options: Omit<ChaosOptions, 'say'>): Promise<{ result: ChaosResult; story: string }> {
  const lines: string[] = [];
  try {
    const result = await runChaos({ ...options, limitMs: LIMIT_MS, say: (line) => lines.push(line) });
    return { result, story: [...lines, ...describeResult(result)].join('\n') };
  } catch (error) {
    throw new Error([...lines, String(error)].join('\n'), { cause: error });
  }
}

describe('whatever goes wrong', () => {
  it(
    'no promise is broken, and everything converges',
    async () => {
      const { result, story } = await run({ seed: PLAYS_EVERYTHING, durationMs: 75_000 });
      expect(result.violations, story).toEqual([]);
      expect(result.unconverged, story).toBeNull();
      expect(result.ok).toBe(true);
      // Otherwise nothing was put to the test.
      expect(result.seen.grants, story).toBeGreaterThan(result.nodes);
      expect(result.seen.reboots, story).toBeGreaterThan(result.nodes / 2);
      expect(result.seen.evictions, story).toBeGreaterThan(0);
      for (const name of PROCESS_NAMES) expect(story).toContain(`kill ${name} `);
      expect(Object.keys(result.faults).sort(), story).toEqual([...FAULT_KINDS].sort());
      for (const what of ['errors', 'lostAnswers', 'cuts']) expect(result.calls[what], story).toBeGreaterThan(10);
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
