import { execFile } from 'node:child_process';

export interface ProgramOptions {
  readonly cwd?: string;
  readonly env?: NodeJS.ProcessEnv;
}

/** What a program that was run said; `missing` where there is no such program. */
export type ProgramResult =
  | { readonly outcome: 'ok'; readonly stdout: string }
  | { readonly outcome: 'failed'; readonly output: string }
  | { readonly outcome: 'missing' };

/** Runs a program to its end, with its output kept. */
export function runProgram(
  command: string,
  args: readonly string[],
  options: ProgramOptions = {},
): Promise<ProgramResult> {
  return new Promise((resolve) => {
    execFile(command, args, { ...options, maxBuffer: 64 * 1024 * 1024 }, (error, stdout, stderr) => {
      if (error === null) resolve({ outcome: 'ok', stdout });
      else if (error.code === 'ENOENT') resolve({ outcome: 'missing' });
      else resolve({ outcome: 'failed', output: `${stdout}${stderr}`.trim() || error.message });
    });
  });
}

/** The last lines of a program's output, which say what went wrong. */
export function tail(output: string, lines = 5): string {
  return output.trimEnd().split('\n').slice(-lines).join('\n');
}
