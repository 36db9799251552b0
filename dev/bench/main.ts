import { IGNITION_USAGE, parseIgnitionOptions } from './ignition/options.js';
import { describeMeasurement, isWithinBound, type Benchmark } from './measurement.js';
import { nodeWorkerMemory } from './node-worker-memory.js';
import { parseRolloutOptions, ROLLOUT_USAGE } from './rollout/options.js';
import { describeRollout, figures } from './rollout/report.js';
import { measureRollout } from './rollout/run.js';

const BENCHMARKS: readonly Benchmark[] = [nodeWorkerMemory];
const USAGE = `npm run bench [-- memory [--json]], or ${ROLLOUT_USAGE}, or ${IGNITION_USAGE}`;

const log = (line: string) => process.stderr.write(`[bench] ${line}\n`);

/** `npm run bench`: measures one thing after the other; fails if one is not within its bound. */
async function memory(args: readonly string[]): Promise<void> {
  const isJson = args.includes('--json');
  const wrong = args.find((arg) => arg !== '--json');
  if (wrong !== undefined) throw new Error(`${wrong} is not understood; usage: ${USAGE}`);
  const measurements = [];
  for (const benchmark of BENCHMARKS) {
    const measurement = await benchmark(log);
    measurements.push({ ...measurement, withinBound: isWithinBound(measurement) });
    (isJson ? process.stderr : process.stdout).write(`${describeMeasurement(measurement)}\n`);
  }
  if (isJson) process.stdout.write(`${JSON.stringify({ measurements })}\n`);
  if (!measurements.every(({ withinBound }) => withinBound)) process.exitCode = 1;
}

/** `npm run bench -- rollout`: measures a rollout on the lab; what is too much is for the reader to judge. */
async function rollout(args: readonly string[]): Promise<void> {
  const options = parseRolloutOptions(args);
  const measured = await measureRollout(options, log);
  (options.json ? process.stderr : process.stdout).write(`${describeRollout(measured)}\n`);
  if (options.json) process.stdout.write(`${JSON.stringify(figures(measured))}\n`);
}

/** `npm run bench -- ignition`: measures first boots; fails if a machine did not get its config. */
async function ignition(args: readonly string[]): Promise<void> {
  const options = parseIgnitionOptions(args);
  const { describeIgnition, measureIgnition } = await import('./ignition/run.js');
  const measured = await measureIgnition(options, log);
  (options.json ? process.stderr : process.stdout).write(`${describeIgnition(measured)}\n`);
  if (options.json) process.stdout.write(`${JSON.stringify(measured)}\n`);
  if (measured.failed > 0) process.exitCode = 1;
}

function main([what, ...args]: readonly string[]): Promise<void> {
  if (what === undefined || what.startsWith('--')) return memory(what === undefined ? [] : [what, ...args]);
  if (what === 'memory') return memory(args);
  if (what === 'rollout') return rollout(args);
  if (what === 'ignition') return ignition(args);
  throw new Error(`there is no benchmark "${what}"; usage: ${USAGE}`);
}

try {
  await main(process.argv.slice(2));
} catch (error) {
  process.stderr.write(`bench: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
}
