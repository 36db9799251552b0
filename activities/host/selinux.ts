import { lstat } from 'node:fs/promises';
import { join } from 'node:path';
import { isErrno } from './durable.js';
import type { Host } from './host.js';
import { ProgramFailed, type RunProgram } from './run-program.js';
import { reasonIn } from './systemctl.js';
import { isThere } from './units.js';

/** There only while a policy is loaded, in enforcing and in permissive mode. */
const SELINUX = 'sys/fs/selinux/enforce';

/** The kinds of what is labelled, as matchpathcon names them. */
type Kind = 'file' | 'dir' | 'lnk_file';

/**
 * Gives files their SELinux context before they take the place of others: that of the file that is there, or what the
 * policy says of the path. Links and new folders get what the policy says. Where SELinux is off, nothing.
 */
export function createLabeller({ root, run }: { readonly root: string; readonly run: RunProgram }): Host['label'] {
  return async (temporary, path) => {
    if (!(await isThere(join(root, SELINUX)))) return;
    const kind = await kindOf(temporary);
    const place = join(root, path);
    // Of a link chcon would take the context of what it leads to: for a mask, that of /dev/null.
    if (kind === 'file' && (await kindOf(place)) === 'file') {
      await change(run, [`--reference=${place}`, '--', temporary], path);
      return;
    }
    const context = await contextOf(path, kind ?? 'file', run);
    if (context !== undefined) await change(run, ['--no-dereference', context, '--', temporary], path);
  };
}

/** Undefined: there is nothing, or something else. */
async function kindOf(path: string): Promise<Kind | undefined> {
  try {
    const stats = await lstat(path);
    if (stats.isFile()) return 'file';
    if (stats.isDirectory()) return 'dir';
    return stats.isSymbolicLink() ? 'lnk_file' : undefined;
  } catch (error) {
    if (isErrno(error, 'ENOENT', 'ENOTDIR')) return undefined;
    throw error;
  }
}

async function change(run: RunProgram, args: readonly string[], path: string): Promise<void> {
  const result = await run('chcon', args);
  // A file system that keeps no labels has one for all of its files.
  if (result.code === 0 || result.stderr.includes('Operation not supported')) return;
  throw new Error(`${path}: chcon could not give it its SELinux context: ${reasonIn(result)}`);
}

/** What the policy says; undefined: it says nothing, and the new file keeps what its folder gave it. */
async function contextOf(path: string, kind: Kind, run: RunProgram): Promise<string | undefined> {
  try {
    // The kind is said: of a path that is not there yet, matchpathcon would take the rule for any.
    const result = await run('matchpathcon', ['-n', '-m', kind, path]);
    const context = result.stdout.trim();
    return result.code === 0 && context.includes(':') ? context : undefined;
  } catch (error) {
    if (error instanceof ProgramFailed && error.isMissing) return undefined;
    throw error;
  }
}
