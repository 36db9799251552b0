import type { Log } from '../tools/cache.js';

/** What a benchmark found, with what it should be beside it. */
export interface Measurement {
  readonly name: string;
  readonly value: number;
  readonly unit: string;
  /** The most that `value` may be. */
  readonly bound: number;
  /** More of the same, for the curious. */
  readonly details: Readonly<Record<string, number | string>>;
}

export type Benchmark = (log: Log) => Promise<Measurement>;

export const isWithinBound = ({ value, bound }: Measurement): boolean => value <= bound;

/** `node worker at rest: 121 MB (bound 150 MB)`. */
export function describeMeasurement(measurement: Measurement): string {
  const { name, value, unit, bound, details } = measurement;
  const more = Object.entries(details).map(([what, found]) => `${what} ${found}`);
  const verdict = isWithinBound(measurement) ? 'ok' : 'TOO MUCH';
  return `${name}: ${value} ${unit} (bound ${bound} ${unit}, ${verdict}); ${more.join(', ')}`;
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((one, other) => one - other);
  const middle = sorted[Math.floor(sorted.length / 2)];
  if (middle === undefined) throw new Error('there is no median of nothing');
  return middle;
}
