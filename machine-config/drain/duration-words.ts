const UNITS = [
  [86_400_000, 'd'],
  [3_600_000, 'h'],
  [60_000, 'm'],
  [1_000, 's'],
] as const;

/** `1h30m` for milliseconds, as a manifest writes durations; `0s` for less than a second. */
export function inWords(milliseconds: number): string {
  let left = Math.max(0, milliseconds);
  let words = '';
  for (const [size, unit] of UNITS) {
    const count = Math.floor(left / size);
    left -= count * size;
    if (count > 0) words += `${count}${unit}`;
  }
  return words === '' ? '0s' : words;
}
