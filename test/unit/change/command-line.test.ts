import { describe, expect, it } from 'vitest';
import {
  meaningOf,
  missingArguments,
  sameArguments,
  splitCommandLine,
  withoutArguments,
} from '../../../machine-config/change/command-line.js';

describe('a kernel command line', () => {
  it('is split on blanks outside quotes, also where a quote is not closed', () => {
    expect(splitCommandLine('BOOT_IMAGE=/v  root=x\ta="b c" "d=e f"\n')).toEqual([
      'BOOT_IMAGE=/v',
      'root=x',
      'a="b c"',
      '"d=e f"',
    ]);
    expect(splitCommandLine('a "b c')).toEqual(['a', '"b c']);
  });

  it('has one meaning however a boot loader quotes it', () => {
    for (const same of ['a="b c"', '"a=b c"', 'a="b c']) expect(meaningOf(same)).toBe('a=b c');
    expect(meaningOf('a="b"')).toBe('a=b');
    expect(meaningOf('a=b"c"')).toBe('a=b"c"');
  });
});

describe('looking for arguments', () => {
  const pairs = ['hugepagesz=1G', 'hugepages=4', 'hugepagesz=2M', 'hugepages=4'];

  it('finds them in their order with others in between', () => {
    expect(missingArguments(pairs, ['ro', ...pairs.slice(0, 2), 'quiet', ...pairs.slice(2)])).toEqual([]);
    expect(missingArguments(['a="b c"'], ['"a=b c"'])).toEqual([]);
  });

  it('misses those in another order and repetitions that are not there', () => {
    expect(missingArguments(['a', 'b'], ['b', 'a'])).toEqual(['b']);
    expect(missingArguments(['a', 'a'], ['a'])).toEqual(['a']);
    expect(sameArguments(['a', 'b'], ['b', 'a'])).toBe(false);
    expect(sameArguments(['a'], ['a', 'a'])).toBe(false);
  });

  it('takes away one for one, the last of several', () => {
    expect(withoutArguments(['a', 'b', 'a', 'c'], ['a', 'x'])).toEqual(['a', 'b', 'c']);
  });
});
