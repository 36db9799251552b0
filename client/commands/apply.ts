import { failedWith } from '../../activities/kubernetes/failures.js';
import { applyFiles, type AppliedObject } from '../apply-files.js';
import { CommandError, lineOf } from '../command-error.js';
import type { ExitName } from '../exit-codes.js';
import type { Session } from '../session.js';
import { renderTable } from '../table.js';

export interface ApplyOptions {
  readonly files: readonly string[];
  readonly filesDir?: string | undefined;
  readonly role?: string | undefined;
  readonly dryRun: boolean;
  readonly forceConflicts: boolean;
}

/** What became of each object; warnings and every further problem on stderr. */
export async function apply(session: Session, options: ApplyOptions): Promise<ExitName> {
  const { kubernetes: client, flavour } = await session.cluster();
  const result = await applyFiles({ ...options, client, flavour }).catch((error: unknown) => {
    if (!failedWith(error, 'Conflict') || options.forceConflicts) throw error;
    const message = `${lineOf(error)}; change the file, or take the field over with --force-conflicts`;
    throw new CommandError('refused', message, { cause: error });
  });
  for (const warning of result.warnings) session.note(`warning: ${warning}`);
  if (result.outcome === 'refused') {
    const { problems } = result;
    for (const problem of problems.slice(1)) session.note(problem);
    const more = problems.length > 1 ? ` (and ${problems.length - 1} more)` : '';
    throw new CommandError('refused', `${problems[0] ?? ''}${more}`);
  }
  session.print(result.objects, () => {
    const columns = [
      { title: 'KIND', value: ({ kind }: AppliedObject) => kind },
      { title: 'NAME', value: ({ name }: AppliedObject) => name },
      { title: 'ACTION', value: ({ action }: AppliedObject) => `${action}${options.dryRun ? ' (dry run)' : ''}` },
    ];
    return renderTable(columns, result.objects, session.paint);
  });
  return 'ok';
}
