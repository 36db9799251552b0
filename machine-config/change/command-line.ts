/** The arguments on a kernel command line: split on blanks outside double quotes, as the kernel does. Quotes are kept. */
export function splitCommandLine(line: string): string[] {
  return line.match(/(?:[^\s"]|"[^"]*(?:"|$))+/g) ?? [];
}

/**
 * What the kernel makes of an argument: boot loaders write `a="b c"` also as `"a=b c"`, and quotes without a blank
 * between them not at all. Two arguments with one meaning are the same argument.
 */
export function meaningOf(argument: string): string {
  if (argument.startsWith('"')) return withoutFinalQuote(argument.slice(1));
  const value = argument.indexOf('=') + 1;
  if (value > 1 && argument[value] === '"') {
    return argument.slice(0, value) + withoutFinalQuote(argument.slice(value + 1));
  }
  return argument;
}

function withoutFinalQuote(text: string): string {
  return text.endsWith('"') ? text.slice(0, -1) : text;
}

/**
 * Those of `wanted` that are not found, in this order, among `found`; others may stand between them. Order and
 * repetition have a meaning to the kernel (`hugepagesz=1G hugepages=4 hugepagesz=2M hugepages=512`).
 */
export function missingArguments(wanted: readonly string[], found: readonly string[]): string[] {
  const meanings = found.map(meaningOf);
  let from = 0;
  return wanted.filter((argument) => {
    const at = meanings.indexOf(meaningOf(argument), from);
    if (at >= 0) from = at + 1;
    return at < 0;
  });
}

/** `all` without one of each of `some`: of several that are the same, the last ones go. */
export function withoutArguments(all: readonly string[], some: readonly string[]): string[] {
  const left = [...all];
  for (const argument of some) {
    const at = left.findLastIndex((other) => meaningOf(other) === meaningOf(argument));
    if (at >= 0) left.splice(at, 1);
  }
  return left;
}

/** The same arguments in the same order. */
export function sameArguments(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && missingArguments(one, other).length === 0;
}
