import { afterAll, beforeAll, expect, it } from 'vitest';
import { measureFloorApart } from '../../dev/bench/rollout/floor-apart.js';
import { parseRolloutOptions } from '../../dev/bench/rollout/options.js';
import { startLab, type Lab } from '../../dev/lab.js';

const OPTIONS = parseRolloutOptions(['--nodes', '3', '--max-unavailable', '2', '--step', '0s']);

let lab: Lab;
beforeAll(async () => {
  lab = await startLab({ kubernetes: false });
});
afterAll(() => lab.stop());

it('measures the workflows alone, in a process that tells what it does', async () => {
  const lines: string[] = [];
  const floor = await measureFloorApart(lab.temporal, OPTIONS, (line) => lines.push(line));
  expect(floor).toMatchObject({ updates: 3, rolloutRuns: 1 });
  expect(floor.makespan).toBeGreaterThan(0);
  // An update has its steps at least, and a rollout starts three of them.
  expect(floor.eventsPerUpdate).toBeGreaterThan(20);
  expect(floor.eventsPerNode).toBeGreaterThan(floor.eventsPerUpdate);
  expect(lines).toContain('floor: 3 nodes with nothing to do but to wait');
});

it('says why there is no floor', async () => {
  // Nothing listens at the port of this name: it is reserved.
  const temporal = { ...lab.temporal, address: '127.0.0.1:1' };
  await expect(measureFloorApart(temporal, OPTIONS, () => undefined)).rejects.toThrow(
    /^the floor could not be measured: .*(connect|refused)/i,
  );
});
