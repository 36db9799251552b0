import { describe, expect, it } from 'vitest';
import { sourceStatus } from '../../../machine-config/sources/status.js';

const source = { kind: 'KubeletConfig', name: 'one', uid: 'u', generation: 3 };
const good = { source, warnings: [] };
const bad = { source, warnings: [], problem: { reason: 'InvalidField', message: 'spec.x: is wrong' } };
const T1 = '2026-01-01T00:00:00Z';
const T2 = '2026-01-02T00:00:00Z';

describe('the status of a source', () => {
  it('says that it was accepted, and once more for older clients at the end', () => {
    expect(sourceStatus(undefined, good, T1)).toEqual({
      observedGeneration: 3,
      conditions: [
        { type: 'Accepted', status: 'True', reason: 'Generated', message: 'Success', lastTransitionTime: T1 },
        { type: 'Success', status: 'True', reason: 'Generated', message: 'Success', lastTransitionTime: T1 },
      ],
    });
  });

  it('says why it was not', () => {
    const { conditions } = sourceStatus(undefined, bad, T1);
    expect(conditions?.map(({ type, status, message }) => [type, status, message])).toEqual([
      ['Accepted', 'False', 'Error: spec.x: is wrong'],
      ['Failure', 'True', 'Error: spec.x: is wrong'],
    ]);
  });

  it('keeps the time while only the message changes, and no longer', () => {
    const before = sourceStatus(undefined, bad, T1);
    const other = { ...bad, problem: { reason: 'NoPool', message: 'none' } };
    const times = (status: typeof before) => status.conditions?.map(({ lastTransitionTime }) => lastTransitionTime);
    expect(times(sourceStatus(before, other, T2))).toEqual([T1, T1]);
    expect(times(sourceStatus(before, good, T2))).toEqual([T2, T2]);
  });

  it('shows warnings of what works', () => {
    expect(sourceStatus(undefined, { source, warnings: ['a', 'b'] }, T1).conditions?.[0]?.message).toBe(
      'Success; but a; b',
    );
  });
});
