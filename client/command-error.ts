import { failedWith } from '../activities/kubernetes/failures.js';
import { EXIT_CODES, type ExitName } from './exit-codes.js';

/** Ends a command with an exit code and one line for the person who typed it. */
export class CommandError extends Error {
  override readonly name = 'CommandError';
  readonly exit: ExitName;

  constructor(exit: ExitName, message: string, options?: ErrorOptions) {
    super(message, options);
    this.exit = exit;
  }
}

/** The exit code of any error: what is not ours is a refusal, except an API server that did not answer. */
export function exitCodeOf(error: unknown): number {
  if (error instanceof CommandError) return EXIT_CODES[error.exit].code;
  return failedWith(error, 'ApiUnavailable') ? EXIT_CODES.unreachable.code : EXIT_CODES.refused.code;
}

/** Always one line. */
export function lineOf(error: unknown): string {
  const text = error instanceof Error ? error.message || error.name : String(error);
  return text.replace(/\s+/g, ' ').trim();
}
