import { fc, test } from '@fast-check/vitest';
import { describe, expect } from 'vitest';
import { durationOr } from '../../../../machine-config/api/duration.js';
import { firstClosed, windowState, type Windows } from '../../../../machine-config/pool/policy/windows.js';

/*
 * Against an oracle that knows nothing but a clock on the wall: it looks at that clock at every minute, and never
 * computes from a wall time back to an instant, which is where clock changes hurt.
 */

const MINUTE = 60_000;
const DAY = 24 * 60 * MINUTE;
const HALF_HOUR = 30 * MINUTE;
const FROM = Date.UTC(2024, 0, 1);
const TO = Date.UTC(2027, 0, 1);
const ZONES = ['Europe/Berlin', 'America/New_York', 'Asia/Kolkata', 'Australia/Lord_Howe', 'UTC'] as const;
const WEEKDAYS = ['Sun', 'Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat'] as const;

/**
 * What a clock in the zone shows, as the instant at which one in UTC shows the same. Clocks of these zones change on the
 * half hour at the earliest, so that one look at each half hour is enough.
 */
function wallClock(timeZone: string): { showing: (instant: number) => number; changes: number[] } {
  const format = new Intl.DateTimeFormat('sv-SE', { timeZone, dateStyle: 'short', timeStyle: 'short' });
  const looks = Array.from({ length: (TO - FROM) / HALF_HOUR }, (_, index) => {
    const instant = FROM + index * HALF_HOUR;
    return Date.parse(`${format.format(instant).replace(' ', 'T')}Z`) - instant;
  });
  return {
    showing: (instant) => instant + looks[Math.floor((instant - FROM) / HALF_HOUR)]!,
    changes: looks.flatMap((offset, index) =>
      index > 0 && offset !== looks[index - 1] ? [FROM + index * HALF_HOUR] : [],
    ),
  };
}
const CLOCKS = new Map(ZONES.map((zone) => [zone, wallClock(zone)]));

/** The longest window lasts two and a half days. */
const BEFORE = 4 * DAY;
const AFTER = 2 * DAY;
const dayOf = (wall: number) => wall - (wall % DAY);

/** Whether something may start, at each minute from four days before to two days after. */
function openMinutes({ timeZone, allow, exclude = [] }: Windows, around: number): boolean[] {
  const { showing } = CLOCKS.get(timeZone as (typeof ZONES)[number])!;
  const excluded = exclude.map(({ from, to = from }) => [Date.parse(from), Date.parse(to)] as const);
  const isExcluded = (day: number) => excluded.some(([from, to]) => from <= day && day <= to);
  const windows = allow.map(({ start, length, days }) => ({
    start: Date.parse(`1970-01-01T${start}Z`),
    length: durationOr(length, 0),
    isOn: (day: number) => days === undefined || days.includes(WEEKDAYS[new Date(day).getUTCDay()]!),
    end: 0,
  }));
  const open: boolean[] = [];
  // What this clock has shown at most: going back, it does not begin a window again.
  let latest = showing(around - BEFORE);
  for (let instant = around - BEFORE; instant < around + AFTER; instant += MINUTE) {
    const shown = showing(instant);
    for (let day = dayOf(latest); shown > latest && day <= shown; day += DAY) {
      for (const window of windows) {
        const start = day + window.start;
        if (latest < start && start <= shown && window.isOn(day) && !isExcluded(day))
          window.end = instant + window.length;
      }
    }
    latest = Math.max(latest, shown);
    open.push(!isExcluded(dayOf(shown)) && windows.some(({ end }) => instant < end));
  }
  return open;
}

const twoDigits = (most: number) => fc.integer({ min: 0, max: most }).map((value) => String(value).padStart(2, '0'));
const window = fc.record(
  {
    days: fc.uniqueArray(fc.constantFrom(...WEEKDAYS), { minLength: 1, maxLength: 7 }),
    // Half of them in the hours in which clocks are changed.
    start: fc
      .tuple(fc.oneof(twoDigits(23), fc.constantFrom('00', '01', '02', '03')), twoDigits(59))
      .map(([hour, minute]) => `${hour}:${minute}`),
    length: fc.oneof(
      fc.integer({ min: 1, max: 240 }).map((minutes) => `${minutes}m`),
      fc.integer({ min: 4, max: 60 }).map((hours) => `${hours}h`),
    ),
  },
  { requiredKeys: ['start', 'length'] },
);
const day = (instant: number) => new Date(instant).toISOString().slice(0, 10);
const scene = fc
  .record({
    timeZone: fc.constantFrom(...ZONES),
    where: fc.nat(),
    anywhere: fc.boolean(),
    minutes: fc.integer({ min: -3 * 24 * 60, max: 3 * 24 * 60 }),
    allow: fc.array(window, { maxLength: 3 }),
    excluded: fc.array(fc.tuple(fc.integer({ min: -4, max: 4 }), fc.nat(2)), { maxLength: 2 }),
  })
  .map(({ timeZone, where, anywhere, minutes, allow, excluded }) => {
    const { changes } = CLOCKS.get(timeZone)!;
    const middle = FROM + 20 * DAY + (where % ((TO - FROM) / DAY - 40)) * DAY;
    const around = anywhere || changes.length === 0 ? middle : changes[where % changes.length]!;
    const exclude = excluded.map(([from, length]) => ({
      from: day(around + from * DAY),
      to: day(around + (from + length) * DAY),
    }));
    const windows: Windows = { timeZone, allow, ...(exclude.length === 0 ? {} : { exclude }) };
    return { windows, now: around + minutes * MINUTE };
  });

describe('windows, in any zone and around every change of its clocks', () => {
  test.prop([scene], { numRuns: 100 })(
    'are open when the clock on the wall says so, and open next when it does',
    ({ windows, now }) => {
      const open = openMinutes(windows, now);
      const found = windowState(windows, now);
      const here = BEFORE / MINUTE;
      expect(found.kind).toBe(open[here] === true ? 'open' : 'closed');
      if (found.kind !== 'closed') return;
      const next = open.indexOf(true, here);
      // Beyond what the oracle has looked at it may open, and not before.
      if (next === -1) expect(found.nextStart ?? Infinity).toBeGreaterThanOrEqual(now + AFTER);
      else expect(found.nextStart).toBe(now + (next - here) * MINUTE);
    },
  );

  test.prop([scene])(
    'are closed until the very millisecond of the next start, and open from then on',
    ({ windows, now }) => {
      const found = windowState(windows, now);
      if (found.kind !== 'closed' || found.nextStart === undefined) return;
      expect(windowState(windows, found.nextStart - 1)).toEqual({ kind: 'closed', nextStart: found.nextStart });
      expect(windowState(windows, found.nextStart)).toEqual({ kind: 'open' });
    },
  );

  test.prop([scene], { numRuns: 100 })(
    'close when the clock on the wall says so, and not a millisecond earlier',
    ({ windows, now }) => {
      const open = openMinutes(windows, now);
      const here = BEFORE / MINUTE;
      const closed = open.indexOf(false, here);
      const found = firstClosed(windows, now, now + AFTER);
      expect(found).toBe(closed === -1 ? undefined : now + (closed - here) * MINUTE);
      if (found === undefined || found === now) return;
      expect(windowState(windows, found - 1).kind).toBe('open');
      expect(windowState(windows, found).kind).toBe('closed');
      expect(firstClosed(windows, now, found)).toBeUndefined();
    },
  );
});
