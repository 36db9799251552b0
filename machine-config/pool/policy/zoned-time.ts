/*
 * Wall clocks of named time zones, over the zone data that comes with the runtime. A wall time is written as the epoch
 * milliseconds at which a clock in UTC shows the same: plain arithmetic on calendar days then needs no zone.
 */

export const DAY_MILLISECONDS = 86_400_000;

/** A calendar day as the wall time at which it begins. */
export type CalendarDay = number;

export interface ZonedTime {
  /** What a clock there shows at an instant. */
  wallAt(instant: number): number;
  /**
   * The first instant at which a clock there shows this wall time or a later one: of an hour that is passed twice the
   * first time, and of one that is skipped the instant after the gap.
   */
  instantOf(wall: number): number;
}

/** The calendar day of a wall time. */
export function dayOf(wall: number): CalendarDay {
  return Math.floor(wall / DAY_MILLISECONDS) * DAY_MILLISECONDS;
}

/** `2026-03-29`. */
export function formatDay(day: CalendarDay): string {
  return new Date(day).toISOString().slice(0, 10);
}

/** `2026-03-29 22:00`. */
export function formatWall(wall: number): string {
  return new Date(wall).toISOString().slice(0, 16).replace('T', ' ');
}

/** Milliseconds that a clock is ahead of UTC. */
type OffsetAt = (instant: number) => number;

function offsets(timeZone: string): OffsetAt | undefined {
  try {
    const format = new Intl.DateTimeFormat('en-US', {
      timeZone,
      calendar: 'gregory',
      numberingSystem: 'latn',
      hourCycle: 'h23',
      year: 'numeric',
      month: 'numeric',
      day: 'numeric',
      hour: 'numeric',
      minute: 'numeric',
      second: 'numeric',
    });
    return (instant) => {
      const fields = Object.fromEntries(format.formatToParts(instant).map(({ type, value }) => [type, Number(value)]));
      const { year = NaN, month = NaN, day = NaN, hour = NaN, minute = NaN, second = NaN } = fields;
      return Date.UTC(year, month - 1, day, hour, minute, second) - Math.floor(instant / 1000) * 1000;
    };
  } catch {
    // No such zone, or a runtime without zone data.
    return undefined;
  }
}

/** The first instant in (before, after] whose offset is that of `after`. */
function transition(offsetAt: OffsetAt, before: number, after: number): number {
  const wanted = offsetAt(after);
  let [low, high] = [before, after];
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (offsetAt(middle) === wanted) high = middle;
    else low = middle;
  }
  return high;
}

/** Undefined: the runtime knows no zone of that name. */
export function zonedTime(timeZone: string): ZonedTime | undefined {
  const offsetAt = offsets(timeZone);
  if (offsetAt === undefined || Number.isNaN(offsetAt(0))) return undefined;
  return {
    wallAt: (instant) => instant + offsetAt(instant),
    instantOf(wall) {
      // No offset is longer than a day, and no zone changes its clocks twice within two.
      const before = offsetAt(wall - DAY_MILLISECONDS);
      const after = offsetAt(wall + DAY_MILLISECONDS);
      if (offsetAt(wall - before) === before) return wall - before;
      if (offsetAt(wall - after) === after) return wall - after;
      return transition(offsetAt, wall - after - 1, wall - before);
    },
  };
}
