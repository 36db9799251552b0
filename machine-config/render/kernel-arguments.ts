export type SplitArguments =
  { readonly ok: true; readonly arguments: string[] } | { readonly ok: false; readonly error: string };

/**
 * Splits one list item into kernel arguments, as the kernel does: on blanks outside double quotes. Order and repetition have
 * a meaning and are kept, quotes too.
 */
export function splitKernelArguments(item: string): SplitArguments {
  if (/[^\P{Cc}\t]/u.test(item)) {
    return { ok: false, error: 'has a line break or control character; write one argument a list item' };
  }
  const found: string[] = [];
  let current = '';
  let quoted = false;
  for (const character of item) {
    if (character === '"') quoted = !quoted;
    if (!quoted && (character === ' ' || character === '\t')) {
      if (current !== '') found.push(current);
      current = '';
    } else {
      current += character;
    }
  }
  if (quoted) return { ok: false, error: 'has a double quote that is not closed' };
  if (current !== '') found.push(current);
  return { ok: true, arguments: found };
}
