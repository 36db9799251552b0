import { describe, expect, it } from 'vitest';
import { parseIgnitionOptions } from '../../../dev/bench/ignition/options.js';

describe('what the benchmark of first boots is asked', () => {
  it.each([
    [[], { size: 1_048_576, clients: 200, rounds: 3, json: false }],
    [
      ['--size', '64KiB', '--clients', '5', '--rounds', '1', '--json'],
      { size: 65_536, clients: 5, rounds: 1, json: true },
    ],
    [['--size', '1.2MB'], { size: 1_200_000, clients: 200, rounds: 3, json: false }],
    [['--size', '4096'], { size: 4096, clients: 200, rounds: 3, json: false }],
  ])('%j', (args, options) => {
    expect(parseIgnitionOptions(args)).toEqual(options);
  });

  it.each([
    [['--size', '2MiB'], /--size 2MiB: .*Kubernetes stores no larger config/],
    [['--size', '10'], /--size 10/],
    [['--size', '1XB'], /--size 1XB/],
    [['--clients', '0'], /--clients 0/],
    [['--rounds', '1.5'], /--rounds 1.5/],
  ])('refuses %j', (args, why) => {
    expect(() => parseIgnitionOptions(args)).toThrow(why);
  });
});
