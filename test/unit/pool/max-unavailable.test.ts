import { describe, expect, it } from 'vitest';
import { limitOf, resolveMaxUnavailable } from '../../../machine-config/pool/max-unavailable.js';
import { makeNode, makeNodes, makePool } from './make-node.js';

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
    ['100%', 3],
    [5, 5],
    ['100%', 7],
    [2, 1],
  ])('lets one master go at a time, whatever is written: %j of %i', (value, members) => {
    expect(resolveMaxUnavailable(value, members, 'master')).toEqual({ ok: true, limit: 1 });
  });

  it('never lets more than one arbiter go', () => {
    expect(resolveMaxUnavailable('100%', 3, 'arbiter')).toEqual({ ok: true, limit: 1 });
  });
});

describe('limitOf', () => {
  const master = (name: string, label: string) =>
    makeNode(name, { labels: { [`node-role.kubernetes.io/${label}`]: '' } });

  it.each(['control-plane', 'master'])('is 1 for a pool of any name that holds a node with the role %s', (label) => {
    const pool = makePool({ maxUnavailable: '100%' });
    expect(limitOf(pool, makeNodes('a', 'b', 'c'))).toEqual({ ok: true, limit: 3 });
    expect(limitOf(pool, [...makeNodes('a', 'b'), master('c', label)])).toEqual({ ok: true, limit: 1 });
  });

  it('keeps what is wrong with the limit as it is', () => {
    expect(limitOf(makePool({ maxUnavailable: 0 }), [master('c', 'master')])).toMatchObject({
      code: 'MaxUnavailableZero',
    });
  });
});
