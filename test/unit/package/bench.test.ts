import { expect, it } from 'vitest';
import { describeMeasurement, isWithinBound, median } from '../../../dev/bench/measurement.js';
import { isAtRest, parseMemory } from '../../../dev/bench/node-worker-memory.js';

it('reads the memory of a process in MB', () => {
  const status = 'Name:\tnode\nVmHWM:\t  146236 kB\nVmRSS:\t  119304 kB\nRssAnon:\t   59172 kB\nThreads:\t14\n';
  expect(parseMemory(status)).toEqual({ resident: 122, own: 61, peak: 150, threads: 14 });
  expect(() => parseMemory('Name:\tnode\nState:\tZ (zombie)\n')).toThrow(/has the worker ended/);
});

it('takes a worker for at rest when half a minute of samples is alike', () => {
  const samples = (...values: number[]) => values.map((resident) => ({ resident }));
  const alike = samples(...Array.from({ length: 30 }, (_, i) => 120 + (i % 5)));
  expect(isAtRest(alike.slice(1))).toBe(false);
  expect(isAtRest(alike)).toBe(true);
  expect(isAtRest([...samples(200), ...alike])).toBe(true);
  expect(isAtRest([...alike.slice(1), ...samples(130)])).toBe(false);
});

it('reports a measurement with its bound', () => {
  const measurement = { name: 'worker', value: 151, unit: 'MB', bound: 150, details: { threads: 14 } };
  expect(isWithinBound(measurement)).toBe(false);
  expect(describeMeasurement(measurement)).toBe('worker: 151 MB (bound 150 MB, TOO MUCH); threads 14');
  expect(isWithinBound({ ...measurement, value: 150 })).toBe(true);
  expect(median([3, 1, 2])).toBe(2);
});
