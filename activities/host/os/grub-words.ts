import { meaningOf, splitCommandLine } from '../../../machine-config/change/command-line.js';

/**
 * Why GRUB cannot hand an argument to the kernel as it is; undefined: it can. GRUB reads its configuration like a shell,
 * and writes the words that it got with a backslash before every quote and backslash, which the kernel does not take
 * away again. Only quotes around a value come through.
 */
export function grubRefusal(argument: string): string | undefined {
  const inside = meaningOf(argument);
  if (!/["'\\]/.test(inside.replace(/\\x[0-9a-fA-F]{2}/g, ''))) return undefined;
  return 'GRUB cannot pass on a quote or backslash inside an argument';
}

/** An argument as one word of GRUB's configuration. */
export function grubWord(argument: string): string {
  const inside = meaningOf(argument);
  return /^[\w.,:/@%+=-]+$/.test(inside) ? inside : `'${inside}'`;
}

/** A text as one word of a POSIX shell. */
export function shellWord(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

/** The kernel arguments that a `linux` line of GRUB's configuration leads to. The kernel's file, its first word, is left out. */
export function argumentsOfLinuxLine(line: string): string[] {
  const [, , ...words] = grubWordsOf(line);
  return words.map((word) => (/\s/.test(word) ? `"${word}"` : word)).flatMap(splitCommandLine);
}

/** The words of a line as GRUB's shell reads it; variables are left as they are. */
function grubWordsOf(line: string): string[] {
  const words: string[] = [];
  for (const [word] of line.matchAll(/(?:'[^']*'|"(?:\\.|[^"\\])*"|\\.|[^\s'"\\])+/g)) {
    words.push(
      word.replace(
        /'([^']*)'|"((?:\\.|[^"\\])*)"|\\(.)/g,
        (_all, plain?: string, quoted?: string, escaped?: string) =>
          plain ?? (quoted === undefined ? (escaped ?? '') : quoted.replace(/\\(["\\$])/g, '$1')),
      ),
    );
  }
  return words;
}
