import { durationOr } from '../../api/duration.js';
import type { RolloutPolicy, Weekday } from '../../api/rollout-policy.js';
import type { PoolFacts } from '../facts.js';
import { clip, timeOf } from '../sentences.js';
import { policyOf } from './rollout-facts.js';
import {
  DAY_MILLISECONDS,
  dayOf,
  formatDay,
  formatWall,
  zonedTime,
  type CalendarDay,
  type ZonedTime,
} from './zoned-time.js';

export type Windows = NonNullable<RolloutPolicy['windows']>;
type Window = Windows['allow'][number];

/** Of 1970-01-01, a Thursday, on. */
const WEEKDAY_OF: readonly Weekday[] = ['Thu', 'Fri', 'Sat', 'Sun', 'Mon', 'Tue', 'Wed'];

/** How far ahead the next window is looked for; what lies beyond is none for anybody who waits. */
const HORIZON_DAYS = 400;

export type WindowState =
  | { readonly kind: 'open' }
  /** `nextStart` in epoch milliseconds; undefined: within a year there is none. */
  | { readonly kind: 'closed'; readonly nextStart: number | undefined }
  | { readonly kind: 'unknownZone' };

function isExcluded(day: CalendarDay, { exclude = [] }: Windows): boolean {
  const date = formatDay(day);
  return exclude.some(({ from, to = from }) => (from <= to ? from <= date && date <= to : to <= date && date <= from));
}

/** A window begins on this day. It belongs to that day as a whole, also after midnight. */
function beginsOn(day: CalendarDay, { days }: Window, windows: Windows): boolean {
  const weekday = WEEKDAY_OF[(((day / DAY_MILLISECONDS) % 7) + 7) % 7];
  return (days === undefined || days.some((one) => one === weekday)) && !isExcluded(day, windows);
}

function startOn(day: CalendarDay, { start }: Window, zone: ZonedTime): number {
  const [hours = 0, minutes = 0] = start.split(':').map(Number);
  return zone.instantOf(day + (hours * 60 + minutes) * 60_000);
}

/** The first instant from `from` on and before `end` that is not on an excluded day; undefined: there is none. */
function firstAllowed(from: number, end: number, windows: Windows, zone: ZonedTime): number | undefined {
  let instant = from;
  while (instant < end) {
    const day = dayOf(zone.wallAt(instant));
    if (!isExcluded(day, windows)) return instant;
    instant = Math.max(zone.instantOf(day + DAY_MILLISECONDS), instant + 1);
  }
  return undefined;
}

/** The first instant from `now` on at which this window is open; undefined: none within the horizon. */
function firstOpen(window: Window, windows: Windows, zone: ZonedTime, now: number): number | undefined {
  const length = durationOr(window.length, 0);
  const today = dayOf(zone.wallAt(now));
  // One more on either side, since clocks may be changed in between.
  const back = Math.min(Math.ceil(length / DAY_MILLISECONDS) + 1, HORIZON_DAYS);
  for (let days = -back; days <= HORIZON_DAYS; days += 1) {
    const day = today + days * DAY_MILLISECONDS;
    if (!beginsOn(day, window, windows)) continue;
    const start = startOn(day, window, zone);
    const found = firstAllowed(Math.max(start, now), start + length, windows, zone);
    if (found !== undefined) return found;
  }
  return undefined;
}

/**
 * Whether updates may start now. A window is open from its start, in its time zone, for its length in real time, over
 * midnight and clock changes: a start that a clock change skips is the first instant after the gap, one that comes
 * twice is the first. On excluded days nothing starts, and no window begins that would last into the next day. Without
 * any window that matches, it is closed.
 */
export function windowState(windows: Windows, now: number): WindowState {
  const zone = zonedTime(windows.timeZone);
  if (zone === undefined) return { kind: 'unknownZone' };
  const starts = windows.allow.flatMap((window) => firstOpen(window, windows, zone, now) ?? []);
  if (starts.length === 0) return { kind: 'closed', nextStart: undefined };
  const nextStart = starts.reduce((a, b) => Math.min(a, b));
  return nextStart <= now ? { kind: 'open' } : { kind: 'closed', nextStart };
}

/** When this window closes that is open now: at its end, or where an excluded day begins; undefined: it is not open. */
function openUntil(window: Window, windows: Windows, zone: ZonedTime, now: number): number | undefined {
  const length = durationOr(window.length, 0);
  const today = dayOf(zone.wallAt(now));
  if (isExcluded(today, windows)) return undefined;
  const back = Math.min(Math.ceil(length / DAY_MILLISECONDS) + 1, HORIZON_DAYS);
  const ends: number[] = [];
  for (let day = today - back * DAY_MILLISECONDS; day <= today; day += DAY_MILLISECONDS) {
    if (!beginsOn(day, window, windows)) continue;
    const start = startOn(day, window, zone);
    if (start <= now && now < start + length) ends.push(start + length);
  }
  if (ends.length === 0) return undefined;
  const end = Math.max(...ends);
  for (let day = today + DAY_MILLISECONDS; zone.instantOf(day) < end; day += DAY_MILLISECONDS) {
    if (isExcluded(day, windows)) return zone.instantOf(day);
  }
  return end;
}

/**
 * The first instant, of those from `from` on and before `to`, at which no window is open. Undefined: there is none, or
 * the time zone is not known here.
 */
export function firstClosed(windows: Windows, from: number, to: number): number | undefined {
  const zone = zonedTime(windows.timeZone);
  let instant = from;
  while (zone !== undefined && instant < to) {
    const now = instant;
    const ends = windows.allow.flatMap((window) => openUntil(window, windows, zone, now) ?? []);
    if (ends.length === 0) return now;
    instant = Math.max(...ends);
  }
  return undefined;
}

function sentence(pool: PoolFacts, { timeZone }: Windows, state: Exclude<WindowState, { kind: 'open' }>): string {
  const where = `pool ${pool.name}`;
  if (state.kind === 'unknownZone') {
    return (
      `The windows of ${where} cannot be read, so nothing starts: spec.rollout.windows.timeZone is ` +
      `${JSON.stringify(clip(timeZone, 64))}, which is no time zone that the control worker knows; write for example ` +
      `Europe/Berlin or UTC`
    );
  }
  const { nextStart } = state;
  const now = `start now with \`drydock rollout run-now ${pool.name}\``;
  if (nextStart === undefined) {
    return `No window of ${where} opens within a year: add one to spec.rollout.windows.allow, or ${now}`;
  }
  const wall = zonedTime(timeZone)?.wallAt(nextStart) ?? nextStart;
  return (
    `Pool ${pool.name} waits for its window: the next window begins at ${formatWall(wall)} ${timeZone} ` +
    `(${timeOf(nextStart)}); or ${now}`
  );
}

export interface WindowObstacle {
  readonly sentence: string;
  /** Epoch milliseconds. */
  readonly until?: number;
}

/** Undefined: the pool has none, or waits for none with its present target. */
function windowsOf(pool: PoolFacts): Windows | undefined {
  return pool.runNow !== undefined && pool.runNow === pool.target ? undefined : policyOf(pool).windows;
}

/**
 * When a node is to be given back that is drained and not changed, since its window closes: the first instant from `from`
 * on and before `to`; undefined: not in this time.
 */
export function givesBackAt(pool: PoolFacts, from: number, to: number): number | undefined {
  const windows = windowsOf(pool);
  return windows?.onClose === 'GiveBack' ? firstClosed(windows, from, to) : undefined;
}

/** Why nothing may start for want of a window; undefined: one is open, or none is needed. */
export function whyNoWindow(pool: PoolFacts, now: number): WindowObstacle | undefined {
  const windows = windowsOf(pool);
  if (windows === undefined) return undefined;
  const state = windowState(windows, now);
  if (state.kind === 'open') return undefined;
  const until = state.kind === 'closed' ? state.nextStart : undefined;
  return { sentence: sentence(pool, windows, state), ...(until === undefined ? {} : { until }) };
}
