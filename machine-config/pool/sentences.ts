/** The longest sentence that a Turn or a Grant carries. */
export const MAX_SENTENCE_LENGTH = 1000;

/** The text on one line and at most `length` characters long; what was cut off is shown as an ellipsis. */
export function clip(text: string, length: number): string {
  const line = text.replace(/\s+/gu, ' ').trim();
  return line.length <= length ? line : `${line.slice(0, length - 1)}…`;
}

/** `n1`, `n1 and n2`, or `n1, n2, n3 and 4 more`: names as a sentence holds them. */
export function nameSome(names: readonly string[], most = 5): string {
  if (names.length > most) return `${names.slice(0, most).join(', ')} and ${names.length - most} more`;
  if (names.length < 2) return names.join('');
  return `${names.slice(0, -1).join(', ')} and ${names.at(-1) ?? ''}`;
}

/** `1 node` or `3 nodes`. */
export function countOf(count: number, singular: string): string {
  return `${count} ${singular}${count === 1 ? '' : 's'}`;
}

/** Epoch milliseconds as `2026-03-01T09:05:00Z`: never a local time, since the reader may sit anywhere. */
export function timeOf(epochMilliseconds: number): string {
  return new Date(epochMilliseconds).toISOString().replace(/\.\d+Z$/u, 'Z');
}
