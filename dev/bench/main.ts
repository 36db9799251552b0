import { parseArgs } from 'node:util';
import { describeMeasurement, isWithinBound, type Benchmark } from './measurement.js';
import { nodeWorkerMemory } from './node-worker-memory.js';

const BENCHMARKS: readonly Benchmark[] = [nodeWorkerMemory];

/** `npm run bench`: measures one thing after the other; fails if one is not within its bound. */
async function main(): Promise<void> {
  const { values } = parseArgs({ options: { json: { type: 'boolean', default: false } } });
  const log = (line: string) => process.stderr.write(`[bench] ${line}\n`);
  const measurements = [];
  for (const benchmark of BENCHMARKS) {
    const measurement = await benchmark(log);
    measurements.push({ ...measurement, withinBound: isWithinBound(measurement) });
    (values.json ? process.stderr : process.stdout).write(`${describeMeasurement(measurement)}\n`);
  }
  if (values.json) process.stdout.write(`${JSON.stringify({ measurements })}\n`);
  if (!measurements.every(({ withinBound }) => withinBound)) process.exitCode = 1;
}

try {
  await main();
} catch (error) {
  process.stderr.write(`bench: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
}
