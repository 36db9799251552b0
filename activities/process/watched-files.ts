import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';

/**
 * Looked at, not watched: Secrets that are mounted come and go by renamed folders, and some file systems tell nothing.
 * A few small files cost nothing.
 */
const LOOK_EVERY_MS = 2_000;

export interface WatchedFilesOptions {
  readonly signal: AbortSignal;
  /** Called with the new contents, in the order of the files; never for the first ones. */
  readonly onChange: (contents: readonly Buffer[]) => void;
  /** They could not be read; what was read last still counts. */
  readonly onError: (error: Error) => void;
  readonly everyMs?: number;
}

/**
 * Reads files that belong together, and again whenever one has changed.
 *
 * @throws when they cannot be read at first.
 */
export async function watchFiles(files: readonly string[], options: WatchedFilesOptions): Promise<readonly Buffer[]> {
  const first = await readAll(files);
  void keepLooking(files, first, options);
  return first;
}

async function keepLooking(
  files: readonly string[],
  first: readonly Buffer[],
  { signal, onChange, onError, everyMs = LOOK_EVERY_MS }: WatchedFilesOptions,
): Promise<void> {
  let known = first;
  let last = first;
  let told = '';
  while (!signal.aborted) {
    await sleep(everyMs, undefined, { signal, ref: false }).catch(() => undefined);
    try {
      const found = await readAll(files);
      told = '';
      // Files that are exchanged one after the other, or are written just now, are let come to rest.
      const isAtRest = isSame(found, last);
      last = found;
      if (!isAtRest || isSame(found, known)) continue;
      known = found;
      onChange(found);
    } catch (error) {
      const problem = error instanceof Error ? error : new Error(String(error));
      if (problem.message !== told) onError(problem);
      told = problem.message;
    }
  }
}

function isSame(some: readonly Buffer[], others: readonly Buffer[]): boolean {
  return some.every((contents, index) => others[index]?.equals(contents));
}

async function readAll(files: readonly string[]): Promise<Buffer[]> {
  return Promise.all(
    files.map(async (file) => {
      try {
        return await readFile(file);
      } catch (cause) {
        const why = cause instanceof Error ? cause.message : String(cause);
        throw new Error(`${file} cannot be read: ${why}`, { cause });
      }
    }),
  );
}
