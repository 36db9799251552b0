import { z } from 'zod';

const UNIT_MILLISECONDS = { d: 86_400_000, h: 3_600_000, m: 60_000, s: 1000 } as const;

const DURATION = /^(?=\d)(?:(?<d>\d{1,5})d)?(?:(?<h>\d{1,6})h)?(?:(?<m>\d{1,7})m)?(?:(?<s>\d{1,8})s)?$/u;

/**
 * Milliseconds of a duration such as `45m`, `1h30m` or `2d`: whole numbers of days, hours, minutes and seconds in this
 * order, at least one of them. A day is 24 hours. Undefined: it is not one.
 */
export function parseDuration(text: string): number | undefined {
  const parts = DURATION.exec(text)?.groups;
  if (parts === undefined) return undefined;
  return Object.entries(UNIT_MILLISECONDS).reduce((sum, [unit, factor]) => sum + Number(parts[unit] ?? 0) * factor, 0);
}

/** Milliseconds of a duration that a schema has checked already; one that is absent or unreadable is `otherwise`. */
export function durationOr(text: string | undefined, otherwise: number): number {
  return text === undefined ? otherwise : (parseDuration(text) ?? otherwise);
}

/** A duration as a manifest writes it; the string stays as it was written. */
export const duration = z
  .string()
  .regex(/^([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?$/, {
    error: 'must be a duration such as 45m, 1h30m or 2d',
  })
  .min(2, { error: 'must be a duration such as 45m, 1h30m or 2d' })
  .max(20);
