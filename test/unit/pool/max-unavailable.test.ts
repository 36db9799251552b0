import { describe, expect, it } from 'vitest';
import { resolveMaxUnavailable } from '../../../machine-config/pool/max-unavailable.js';

describe('resolveMaxUnavailable', () => {
  it.each([
    [undefined, 4, 1],
    [2, 4, 2],
    [9, 4, 9],
    ['50%', 4, 2],
    ['60%', 4, 2],
    ['1%', 3, 1],
    ['99%', 3, 2],
    ['150%', 3, 4],
    ['10%', 0, 1],
  ])('takes %j of %i members as %i: percentages round down, but not to nothing', (value, members, limit) => {
    expect(resolveMaxUnavailable(value, members, 'worker')).toEqual({ ok: true, limit });
  });

  it.each([0, '0%', '00%'])('takes %j as a stop and says what to use instead', (value) => {
    const result = resolveMaxUnavailable(value, 4, 'worker');
    expect(result).toMatchObject({ ok: false, code: 'MaxUnavailableZero' });
    expect(result).toHaveProperty('sentence', expect.stringMatching(/worker.*spec\.paused/));
  });

  it.each([-1, 1.5, Number.NaN, '60', '40 %', '50 percent', '-50%', '33.3%', '', '%', '1e2%', `${'9'.repeat(400)}%`])(
    'refuses %j and shows how it is written',
    (value) => {
      const result = resolveMaxUnavailable(value, 4, 'worker');
      expect(result).toMatchObject({ ok: false, code: 'MaxUnavailableInvalid' });
      expect(result).toHaveProperty('sentence', expect.stringMatching(/^spec\.maxUnavailable of .*worker.*"10%"$/));
    },
  );

  it.each([
    ['100%', 3, 1],
    [5, 5, 2],
    ['100%', 7, 3],
    [2, 4, 1],
    [2, 1, 1],
    [1, 7, 1],
  ])('never lets a control plane lose its quorum: %j of %i masters is %i', (value, members, limit) => {
    expect(resolveMaxUnavailable(value, members, 'master')).toEqual({ ok: true, limit });
  });

  it('never lets more than one arbiter go', () => {
    expect(resolveMaxUnavailable('100%', 3, 'arbiter')).toEqual({ ok: true, limit: 1 });
  });
});
