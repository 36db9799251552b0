import { parseArgs } from 'node:util';
import { describeResult } from './report.js';
import { PLANTS, runChaos, type ChaosOptions, type Plant } from './run.js';

const USAGE = [
  'npm run chaos -- [--minutes N] [--seed S] [--nodes N] [--plant no-throttle] [--json]',
  '  --minutes  how long faults go on; default 10',
  '  --seed     decides what goes wrong, when, and for whom; default 1',
  '  --nodes    simulated nodes, at least 9; default 30',
  '  --plant    plants a fault in the control workers, which the observer has to find',
  '  --directory  keep the data and the logs of the lab there',
  '  --json     print the result as one object on the last line',
].join('\n');

const LEAST_NODES = 9;
const MINUTE_MS = 60_000;

function readOptions(): { chaos: Omit<ChaosOptions, 'say'>; json: boolean } | undefined {
  const { values } = parseArgs({
    options: {
      minutes: { type: 'string', default: '10' },
      seed: { type: 'string', default: '1' },
      nodes: { type: 'string', default: '30' },
      plant: { type: 'string' },
      directory: { type: 'string' },
      json: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) return undefined;
  const plant = readPlant(values.plant);
  const { directory } = values;
  return {
    json: values.json,
    chaos: {
      durationMs: readNumber('--minutes', values.minutes, { least: 0.1, isWhole: false }) * MINUTE_MS,
      seed: readNumber('--seed', values.seed, { least: 0, isWhole: true }),
      nodes: readNumber('--nodes', values.nodes, { least: LEAST_NODES, isWhole: true }),
      ...(plant === undefined ? {} : { plant }),
      ...(directory === undefined ? {} : { directory }),
    },
  };
}

function readNumber(option: string, text: string, { least, isWhole }: { least: number; isWhole: boolean }): number {
  const value = /^\d+(\.\d+)?$/.test(text) ? Number(text) : Number.NaN;
  if (value >= least && (!isWhole || Number.isSafeInteger(value))) return value;
  throw new Error(`${option} ${text}: is not a ${isWhole ? 'whole ' : ''}number of at least ${least}`);
}

function readPlant(text: string | undefined): Plant | undefined {
  if (text === undefined || Object.hasOwn(PLANTS, text)) return text as Plant | undefined;
  throw new Error(`--plant ${text}: there is no such fault, only ${Object.keys(PLANTS).join(', ')}`);
}

/** `npm run chaos`: exit code 1 when a promise was broken or not everything converged. */
async function main(): Promise<void> {
  const options = readOptions();
  if (options === undefined) {
    console.log(USAGE);
    return;
  }
  // With --json, standard output carries the result and nothing else.
  const say = (line: string) => (options.json ? console.error(line) : console.log(line));
  const result = await runChaos({ ...options.chaos, say });
  describeResult(result).forEach(say);
  if (options.json) console.log(JSON.stringify(result));
  if (!result.ok) process.exitCode = 1;
}

try {
  await main();
} catch (error) {
  console.error(`chaos: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 1;
}
