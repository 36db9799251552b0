import { join } from 'node:path';
import type { Host } from './host.js';
import { ProgramFailed, type RunProgram } from './run-program.js';
import { reasonIn } from './systemctl.js';
import { isThere } from './units.js';

/** There only while a policy is loaded, in enforcing and in permissive mode. */
const SELINUX = 'sys/fs/selinux/enforce';

/**
 * Gives files their SELinux context before they take the place of others: that of the file that is there, or what the
 * policy says of the path. Where SELinux is off, nothing.
 */
export function createLabeller({ root, run }: { readonly root: string; readonly run: RunProgram }): Host['label'] {
  return async (temporary, path) => {
    if (!(await isThere(join(root, SELINUX)))) return;
    if (await isThere(join(root, path))) {
      // A link has a context of its own.
      await change(run, ['--no-dereference', `--reference=${join(root, path)}`, '--', temporary], path);
      return;
    }
    const context = await contextOf(path, run);
    if (context !== undefined) await change(run, ['--no-dereference', context, '--', temporary], path);
  };
}

async function change(run: RunProgram, args: readonly string[], path: string): Promise<void> {
  const result = await run('chcon', args);
  // A file system that keeps no labels has one for all of its files.
  if (result.code === 0 || result.stderr.includes('Operation not supported')) return;
  throw new Error(`${path}: chcon could not give it its SELinux context: ${reasonIn(result)}`);
}

/** What the policy says; undefined: it says nothing, and the new file keeps what its folder gave it. */
async function contextOf(path: string, run: RunProgram): Promise<string | undefined> {
  try {
    const result = await run('matchpathcon', ['-n', path]);
    const context = result.stdout.trim();
    return result.code === 0 && context.includes(':') ? context : undefined;
  } catch (error) {
    if (error instanceof ProgramFailed && error.isMissing) return undefined;
    throw error;
  }
}
