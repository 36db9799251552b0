import type { RunOptions, RunProgram } from '../run-program.js';

/** The standard output of a program; throws, with its last words, where it does not end with 0. */
export async function runOrThrow(
  run: RunProgram,
  program: string,
  args: readonly string[],
  options?: RunOptions,
): Promise<string> {
  const { code, stdout, stderr } = await run(program, args, options);
  if (code === 0) return stdout;
  const command = [program, ...args.slice(0, 2)].join(' ');
  throw new Error(`${command}: ended with ${code}: ${lastWords(stderr) || lastWords(stdout) || 'without a word'}`);
}

const MOST_WORDS = 400;

/** What a program said last, on one line. */
function lastWords(output: string): string {
  const lines = output.split(/\s*\n/).filter((line) => line.trim() !== '');
  return lines.slice(-3).join(' | ').trim().slice(-MOST_WORDS);
}
