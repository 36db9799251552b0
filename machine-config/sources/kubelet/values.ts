import { z } from 'zod';
import { parseQuantity } from '../quantity.js';

/** How the kubelet reads the values of its configuration, where their type alone does not say it. */

const DURATION = /^[+-]?(?:0|(?:(?:\d+(?:\.\d*)?|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+)$/u;
const DURATION_PART = /(?<value>\d+(?:\.\d*)?|\.\d+)(?<unit>ns|us|µs|μs|ms|s|m|h)/gu;
const UNIT_SECONDS: Readonly<Record<string, number>> = {
  ns: 1e-9,
  us: 1e-6,
  µs: 1e-6,
  μs: 1e-6,
  ms: 1e-3,
  s: 1,
  m: 60,
  h: 3600,
};

/** Seconds of a duration as Go writes them, such as `1m30s`, `1.5h` or `0`. Undefined: it is none. A day has no unit. */
export function durationSeconds(text: string): number | undefined {
  if (!DURATION.test(text)) return undefined;
  const seconds = [...text.matchAll(DURATION_PART)].reduce(
    (sum, { groups }) => sum + Number(groups?.['value']) * (UNIT_SECONDS[groups?.['unit'] ?? ''] ?? 0),
    0,
  );
  return text.startsWith('-') ? -seconds : seconds;
}

const notADuration = 'must be a duration such as "10s", "1m30s" or "4h"; hours are the largest unit';
export const goDuration = z
  .string({ error: notADuration })
  .refine((text) => durationSeconds(text) !== undefined, { error: notADuration })
  .refine((text) => !text.startsWith('-'), { error: 'must not be negative' });

const notAQuantity = 'must be a quantity in quotes, such as "500Mi", "2" or "100m"';
export const quantity = z
  .string({ error: notAQuantity })
  .refine((text) => parseQuantity(text) !== undefined, { error: notAQuantity })
  .refine((text) => (parseQuantity(text) ?? 0) >= 0, { error: 'must not be negative' });

const PERCENTAGE = /^(?<number>\d+(?:\.\d*)?|\.\d+)%$/u;

function isThreshold(text: string): boolean {
  if (!text.endsWith('%')) return (parseQuantity(text) ?? 0) > 0;
  const number = PERCENTAGE.exec(text)?.groups?.['number'];
  return number !== undefined && Number(number) <= 100;
}

const notAThreshold = 'must be a positive quantity such as "500Mi" or a percentage such as "10%"';
/** Of an eviction signal: what is left of it. */
export const threshold = z.string({ error: notAThreshold }).refine(isThreshold, { error: notAThreshold });

const notAReclaim = 'must be a quantity such as "500Mi" or a percentage such as "10%"';
/** As a threshold, but it may be zero. */
export const minimumReclaim = z
  .string({ error: notAReclaim })
  .refine((text) => isThreshold(text) || (parseQuantity(text) ?? -1) === 0, { error: notAReclaim });

export const wholePercentage = z
  .string()
  .regex(/^(?:\d|[1-9]\d|100)%$/u, { error: 'must be a whole percentage such as "50%"' });

export const address = z.union([z.ipv4(), z.ipv6()], { error: 'must be an IP address such as 0.0.0.0' });

export const port = z.int32().min(1).max(65_535);
export const portOrOff = z.int32().min(0).max(65_535);

/** Processors by number: `0-3,8`. */
export const cpuSet = z.string().refine(isCpuSet, {
  error: 'must be a list of processors such as "0-3,8", every range ascending',
});

function isCpuSet(text: string): boolean {
  if (text === '') return true;
  return text.split(',').every((part) => {
    const [, from, to] = /^(\d{1,6})(?:-(\d{1,6}))?$/u.exec(part) ?? [];
    return from !== undefined && (to === undefined || Number(from) <= Number(to));
  });
}

/** A map of which only these keys mean something: others are misspelt, and the kubelet does not start with them. */
export function mapOf<S extends z.ZodType>(keys: readonly string[], value: S) {
  return z.strictObject(Object.fromEntries(keys.map((key) => [key, value.exactOptional()])));
}
