import { describe, expect, it } from 'vitest';
import { castOf } from '../../../dev/chaos/cast.js';
import { describeFault, FAULT_KINDS, PROCESS_NAMES } from '../../../dev/chaos/fault.js';
import { planFaults } from '../../../dev/chaos/plan.js';
import { Deck, Random } from '../../../dev/chaos/random.js';

const MINUTE_MS = 60_000;
const cast = castOf(30);
const plan = (seed: number, minutes = 10) => planFaults({ seed, durationMs: minutes * MINUTE_MS, cast });

describe('the plan of the chaos test', () => {
  it('follows from its seed alone', () => {
    expect(plan(1)).toEqual(plan(1));
    expect(plan(1)).not.toEqual(plan(2));
  });

  it('begins a longer run like a shorter one', () => {
    const short = plan(3, 1);
    const whole = short.filter(({ atMs, fault }) => !('forMs' in fault) || atMs + fault.forMs < MINUTE_MS);
    expect(whole.length).toBeGreaterThan(10);
    for (const planned of whole) expect(plan(3)).toContainEqual(planned);
  });

  it('is over with its duration', () => {
    for (const { atMs, fault } of plan(4)) {
      expect(atMs + ('forMs' in fault ? fault.forMs : 0)).toBeLessThanOrEqual(10 * MINUTE_MS);
    }
  });

  it('kills every process, and plays every sort of fault', () => {
    const planned = plan(1).map(({ fault }) => fault);
    const killed = planned.flatMap((fault) => (fault.kind === 'kill' ? [fault.process] : []));
    expect(new Set(killed)).toEqual(new Set(PROCESS_NAMES));
    expect(new Set(planned.map(({ kind }) => kind))).toEqual(new Set(FAULT_KINDS));
  });

  it('picks each process once before any twice', () => {
    const random = new Random(6, 'test');
    const deck = new Deck(PROCESS_NAMES);
    for (let round = 0; round < 5; round += 1) {
      const picked = PROCESS_NAMES.map(() => deck.pick(random));
      expect([...picked].sort()).toEqual([...PROCESS_NAMES].sort());
    }
  });

  it('never takes a process that is away or has just come back', () => {
    const endOf = new Map<string, number>();
    for (const { atMs, fault } of plan(5)) {
      if (fault.kind !== 'kill' && fault.kind !== 'freeze') continue;
      expect(atMs).toBeGreaterThan(endOf.get(fault.process) ?? -1);
      endOf.set(fault.process, atMs + fault.forMs);
    }
  });

  it('can leave processes and connections alone', () => {
    const kinds = planFaults({ seed: 1, durationMs: MINUTE_MS, cast, onlyCluster: true }).map(
      ({ fault }) => fault.kind,
    );
    expect(kinds).not.toContain('kill');
    expect(kinds).toContain('config');
  });

  it('says each fault in one line', () => {
    expect(describeFault({ kind: 'kill', process: 'etcd', forMs: 2500 })).toBe('kill etcd for 2.5 s');
    expect(describeFault({ kind: 'apiErrors', audience: 'nodes', share: 0.25, forMs: 1000 })).toBe(
      'apiErrors nodes 25% for 1.0 s',
    );
    expect(describeFault({ kind: 'config', pool: 'edge', revision: { file: 2, key: 0 } })).toBe(
      'config edge {"file":2,"key":0}',
    );
  });
});
