import { describe, expect, it } from 'vitest';
import type { Turn, Waiting } from '../../../machine-config/pool/turn.js';
import { Patience } from '../../../workflows/patience.js';

const NOW = Date.parse('2026-03-01T12:00:00Z');
const MINUTE = 60_000;

/** The times until the next turn, in minutes, of turns that all say the same. */
function minutes(count: number, waiting: Waiting | null, pending = 0, start: Turn['start'] = []): number[] {
  const patience = new Patience({ tickSeconds: 60 });
  return Array.from({ length: count }, () => patience.after({ start, waiting }, pending, NOW) / MINUTE);
}
const paused: Waiting = { code: 'PoolPaused', sentence: 'MachineConfigPool worker is paused' };
const started = { node: 'a', nodeUid: 'uid', target: 'new', current: 'old' };

describe('the patience of a rollout', () => {
  it('grows to ten minutes as long as nothing runs and it says the same', () => {
    expect(minutes(6, paused)).toEqual([1, 2, 4, 8, 10, 10]);
  });

  it('stays a minute while something runs, rests or starts, or what it waits for is told by nobody', () => {
    expect(minutes(3, paused, 1)).toEqual([1, 1, 1]);
    expect(minutes(3, null, 0, [started])).toEqual([1, 1, 1]);
    expect(minutes(3, { code: 'AfterPool', sentence: 'after pool infra' })).toEqual([1, 1, 1]);
  });

  it('ends with a date, and does not grow before one', () => {
    const soaking = (until: number): Waiting => ({ code: 'Soaking', sentence: 'soaks', until });
    expect(minutes(3, soaking(NOW + MINUTE / 2))).toEqual([0.5, 0.5, 0.5]);
    expect(minutes(3, soaking(NOW + 60 * MINUTE))).toEqual([1, 1, 1]);
    expect(minutes(1, soaking(NOW - MINUTE))).toEqual([0]);
  });

  it('is short again once there is something else to say', () => {
    const patience = new Patience({ tickSeconds: 60 });
    const after = (waiting: Waiting) => patience.after({ start: [], waiting }, 0, NOW) / MINUTE;
    const held: Waiting = { code: 'Held', sentence: 'a is held' };
    expect([paused, paused, paused, held, held].map(after)).toEqual([1, 2, 4, 1, 2]);
  });
});
