import { describe, expect, it } from 'vitest';
import { givesBackAt, whyNoWindow, windowState, type Windows } from '../../../../machine-config/pool/policy/windows.js';
import { makePool, NEW } from '../make-node.js';

type Allow = Windows['allow'];
const BERLIN = 'Europe/Berlin';
const state = (allow: Allow, now: string, more: Partial<Windows> = {}) =>
  windowState({ timeZone: BERLIN, allow, ...more }, Date.parse(now));
const open = { kind: 'open' };
const closedUntil = (nextStart: string) => ({ kind: 'closed', nextStart: Date.parse(nextStart) });

describe('a window', () => {
  const evening: Allow = [{ start: '22:00', length: '2h' }];

  it.each([
    ['2026-01-15T20:59:59.999Z', closedUntil('2026-01-15T21:00:00Z')],
    ['2026-01-15T21:00:00Z', open],
    ['2026-01-15T22:59:59.999Z', open],
    ['2026-01-15T23:00:00Z', closedUntil('2026-01-16T21:00:00Z')],
    // In summer an hour earlier, by a clock in UTC.
    ['2026-07-15T20:00:00Z', open],
  ])('is open from its start, never earlier, until its length is over: %s', (now, expected) => {
    expect(state(evening, now)).toEqual(expected);
  });

  it.each([
    ['2026-03-06T23:00+01:00', open],
    ['2026-03-07T04:59+01:00', open],
    ['2026-03-07T05:00+01:00', closedUntil('2026-03-13T21:00+01:00')],
    ['2026-03-07T21:30+01:00', closedUntil('2026-03-13T21:00+01:00')],
    ['2026-03-07T00:00+01:00', open],
    ['2026-03-06T04:00+01:00', closedUntil('2026-03-06T21:00+01:00')],
  ])('over midnight belongs to the day of its start: %s', (now, expected) => {
    expect(state([{ days: ['Fri'], start: '21:00', length: '8h' }], now)).toEqual(expected);
  });

  it('that begins in the hour that a clock change skips begins at the first instant after', () => {
    // 2026-03-29: 02:00 becomes 03:00.
    const skipped: Allow = [{ start: '02:30', length: '1h' }];
    expect(state(skipped, '2026-03-29T00:59:59.999Z')).toEqual(closedUntil('2026-03-29T01:00:00Z'));
    expect(state(skipped, '2026-03-29T01:00:00Z')).toEqual(open);
    expect(state(skipped, '2026-03-29T01:59:59Z')).toEqual(open);
    expect(state(skipped, '2026-03-29T02:00:00Z')).toEqual(closedUntil('2026-03-30T00:30:00Z'));
  });

  it('that begins in the hour that comes twice begins the first time and lasts as long as it says', () => {
    // 2026-10-25: 03:00 becomes 02:00.
    const twice: Allow = [{ start: '02:30', length: '30m' }];
    expect(state(twice, '2026-10-25T00:30:00Z')).toEqual(open);
    expect(state(twice, '2026-10-25T01:00:00Z')).toEqual(closedUntil('2026-10-26T01:30:00Z'));
    // The second time that clocks show 02:30.
    expect(state(twice, '2026-10-25T01:30:00Z')).toEqual(closedUntil('2026-10-26T01:30:00Z'));
    // Real time: from 22:00 to 05:00 there are eight hours in that night.
    expect(state([{ start: '22:00', length: '7h' }], '2026-10-25T03:00:00Z')).toMatchObject({ kind: 'closed' });
    expect(state([{ start: '22:00', length: '8h' }], '2026-10-25T03:59:59Z')).toEqual(open);
  });

  it('is found when its day does not exist', () => {
    // Samoa had no 30th of December 2011: it went over the date line.
    const apia = { timeZone: 'Pacific/Apia' };
    const window: Allow = [{ start: '12:00', length: '1h' }];
    expect(state(window, '2011-12-30T09:59:59Z', apia)).toEqual(closedUntil('2011-12-30T10:00:00Z'));
  });

  it('opens soonest of several', () => {
    const allow: Allow = [
      { days: ['Sun'], start: '01:00', length: '1h' },
      { days: ['Sat'], start: '23:00', length: '1h' },
    ];
    expect(state(allow, '2026-01-17T12:00:00Z')).toEqual(closedUntil('2026-01-17T22:00:00Z'));
    expect(state(allow, '2026-01-17T23:00:00Z')).toEqual(closedUntil('2026-01-18T00:00:00Z'));
  });

  it('that lasts longer than the time to its next start is always open', () => {
    const always: Allow = [{ days: ['Wed'], start: '10:00', length: '7d' }];
    for (const day of ['2026-01-12', '2026-01-13', '2026-01-14', '2026-01-18', '2026-03-29', '2026-10-25']) {
      expect(state(always, `${day}T12:00:00Z`)).toEqual(open);
    }
  });
});

describe('excluded days', () => {
  const nightly: Allow = [{ start: '22:00', length: '4h' }];
  const exclude = [{ from: '2026-12-24', to: '2026-12-26' }];

  it.each([
    ['2026-12-23T21:30:00Z', open],
    // From midnight on it is the 24th, in Berlin.
    ['2026-12-23T23:00:00Z', closedUntil('2026-12-27T22:00+01:00')],
    ['2026-12-25T22:00:00Z', closedUntil('2026-12-27T22:00+01:00')],
    // The window of the 26th would last into the 27th: it does not begin.
    ['2026-12-26T23:30:00Z', closedUntil('2026-12-27T22:00+01:00')],
    ['2026-12-27T21:00:00Z', open],
  ])('start nothing, and no window that would last into the next day: %s', (now, expected) => {
    expect(state(nightly, now, { exclude })).toEqual(expected);
  });

  it('may be a single one, or written the wrong way round', () => {
    expect(state(nightly, '2026-12-24T21:30:00Z', { exclude: [{ from: '2026-12-24' }] })).toMatchObject({
      kind: 'closed',
    });
    const reversed = { exclude: [{ from: '2026-12-26', to: '2026-12-24' }] };
    expect(state(nightly, '2026-12-25T21:30:00Z', reversed)).toMatchObject({ kind: 'closed' });
    expect(state(nightly, '2026-12-27T21:30:00Z', reversed)).toEqual(open);
  });

  it('close a window in the middle, which goes on afterwards', () => {
    const week: Allow = [{ days: ['Mon'], start: '00:00', length: '7d' }];
    const wednesday = { exclude: [{ from: '2026-01-14' }] };
    expect(state(week, '2026-01-13T22:59:59Z', wednesday)).toEqual(open);
    expect(state(week, '2026-01-13T23:00:00Z', wednesday)).toEqual(closedUntil('2026-01-14T23:00:00Z'));
    expect(state(week, '2026-01-14T23:00:00Z', wednesday)).toEqual(open);
  });
});

describe('windows that allow nothing', () => {
  it('are closed, with no next start: an empty list, one without length, one that is always excluded', () => {
    const never = { kind: 'closed', nextStart: undefined };
    expect(state([], '2026-01-15T12:00:00Z')).toEqual(never);
    expect(state([{ start: '10:00', length: '0s' }], '2026-01-15T09:00:00Z')).toEqual(never);
    const exclude = [{ from: '2020-01-01', to: '2099-12-31' }];
    expect(state([{ start: '00:00', length: '24h' }], '2026-01-15T09:00:00Z', { exclude })).toEqual(never);
  });

  it.each(['Mars/Olympus', '', 'Europe/Berlin2', 'CEST'])('are those of a zone that nobody knows: %j', (timeZone) => {
    const allow: Allow = [{ start: '00:00', length: '24h' }];
    expect(windowState({ timeZone, allow }, Date.parse('2026-01-15T12:00:00Z'))).toEqual({ kind: 'unknownZone' });
  });
});

describe('whyNoWindow', () => {
  const now = Date.parse('2026-01-15T12:00:00Z');
  const pool = (windows: Windows, more: object = {}) => makePool({ rollout: { windows }, ...more });
  const evening: Windows = { timeZone: BERLIN, allow: [{ start: '22:00', length: '2h' }] };

  it('names the next start, in the zone and in UTC, and how to go without', () => {
    expect(whyNoWindow(pool(evening), now)).toEqual({
      sentence:
        'Pool worker waits for its window: the next window begins at 2026-01-15 22:00 Europe/Berlin ' +
        '(2026-01-15T21:00:00Z); or start now with `drydock rollout run-now worker`',
      until: Date.parse('2026-01-15T21:00:00Z'),
    });
  });

  it('is nothing without windows, in an open one, or where the rendered config runs now', () => {
    expect(whyNoWindow(makePool(), now)).toBeUndefined();
    expect(whyNoWindow(pool(evening), Date.parse('2026-01-15T21:00:00Z'))).toBeUndefined();
    expect(whyNoWindow(pool(evening, { runNow: NEW }), now)).toBeUndefined();
    expect(whyNoWindow(pool(evening, { runNow: 'rendered-worker-before' }), now)).toBeDefined();
  });

  it('says what is wrong where there is no next start', () => {
    const nowhere = whyNoWindow(pool({ ...evening, timeZone: 'Mars/Olympus' }), now);
    expect(nowhere?.sentence).toMatch(/nothing starts.*timeZone is "Mars\/Olympus".*Europe\/Berlin/);
    expect(nowhere).not.toHaveProperty('until');
    expect(whyNoWindow(pool({ ...evening, allow: [] }), now)?.sentence).toMatch(
      /No window .*spec\.rollout\.windows\.allow/,
    );
  });
});

describe('givesBackAt', () => {
  const at = (time: string) => Date.parse(`2026-01-15T${time}Z`);
  const closing: Windows = { timeZone: 'UTC', allow: [{ start: '01:00', length: '2h' }], onClose: 'GiveBack' };
  const when = (windows: Windows | undefined, from: string, to: string, more: Parameters<typeof makePool>[0] = {}) =>
    givesBackAt(makePool({ ...more, rollout: windows === undefined ? {} : { windows } }), at(from), at(to));

  it('is the end of the window, only if that is in question', () => {
    expect(when(closing, '01:30', '04:00')).toBe(at('03:00'));
    expect(when(closing, '01:30', '03:00')).toBeUndefined();
    expect(when(closing, '04:00', '05:00')).toBe(at('04:00'));
  });

  it('is never where nodes are finished, where there are no windows, where it runs now, or where the zone is unknown', () => {
    expect(when({ ...closing, onClose: 'Finish' }, '01:30', '04:00')).toBeUndefined();
    expect(when({ timeZone: closing.timeZone, allow: closing.allow }, '01:30', '04:00')).toBeUndefined();
    expect(when(undefined, '01:30', '04:00')).toBeUndefined();
    expect(when(closing, '01:30', '04:00', { runNow: NEW })).toBeUndefined();
    expect(when(closing, '01:30', '04:00', { runNow: 'another' })).toBe(at('03:00'));
    expect(when({ ...closing, timeZone: 'Nowhere/Else' }, '01:30', '04:00')).toBeUndefined();
  });
});
