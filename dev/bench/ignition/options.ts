import { parseArgs } from 'node:util';

/** What `npm run bench -- ignition` is asked to measure. */
export interface IgnitionBenchOptions {
  /** Bytes of the rendered config. */
  readonly size: number;
  /** Machines that fetch at once. */
  readonly clients: number;
  /** How often each of them fetches. */
  readonly rounds: number;
  readonly json: boolean;
}

export const IGNITION_USAGE = 'npm run bench -- ignition [--size 1MiB] [--clients N] [--rounds N] [--json]';

/** What Kubernetes stores of one object, less what the rest of it takes. */
const LARGEST_SIZE = 1_400_000;
const SMALLEST_SIZE = 1024;
const MOST = 5000;
const UNITS = { '': 1, B: 1, KiB: 1024, MiB: 1024 * 1024, kB: 1000, MB: 1_000_000 } as const;

/** @throws what is wrong, in one line. */
export function parseIgnitionOptions(args: readonly string[]): IgnitionBenchOptions {
  const { values } = parseArgs({
    args: [...args],
    options: {
      size: { type: 'string', default: '1MiB' },
      clients: { type: 'string', default: '200' },
      rounds: { type: 'string', default: '3' },
      json: { type: 'boolean', default: false },
    },
  });
  return {
    size: bytes(values.size),
    clients: whole('clients', values.clients),
    rounds: whole('rounds', values.rounds),
    json: values.json,
  };
}

function bytes(text: string): number {
  const [, number, unit] = /^(\d+(?:\.\d+)?)(B|KiB|MiB|kB|MB|)$/u.exec(text) ?? [];
  const size = number === undefined ? Number.NaN : Math.round(Number(number) * UNITS[unit as keyof typeof UNITS]);
  if (size >= SMALLEST_SIZE && size <= LARGEST_SIZE) return size;
  throw new Error(
    `--size ${text}: write a size from 1KiB to ${LARGEST_SIZE}B, such as 1MiB; Kubernetes stores no larger config; usage: ${IGNITION_USAGE}`,
  );
}

function whole(name: string, text: string): number {
  const value = Number(text);
  if (Number.isInteger(value) && value >= 1 && value <= MOST) return value;
  throw new Error(`--${name} ${text}: write a whole number from 1 to ${MOST}; usage: ${IGNITION_USAGE}`);
}
