import { CommandError } from '../command-error.js';
import type { ExitName } from '../exit-codes.js';
import { offlineRender } from '../offline-render.js';
import type { Session } from '../session.js';

export interface RenderOptions {
  readonly files: readonly string[];
  readonly pool?: string | undefined;
  readonly filesDir?: string | undefined;
  readonly role?: string | undefined;
}

/** YAML on stdout, warnings and every further problem on stderr, so that the output can be piped on. */
export async function render(session: Session, { files, pool, filesDir, role }: RenderOptions): Promise<ExitName> {
  const flavour = session.givenFlavour;
  const result = await offlineRender({
    files,
    ...(pool === undefined ? {} : { pool }),
    ...(flavour === undefined ? {} : { flavour }),
    ...(filesDir === undefined ? {} : { filesDir }),
    ...(role === undefined ? {} : { role }),
  });
  for (const warning of result.warnings) session.note(`warning: ${warning}`);
  if (result.outcome === 'rendered') {
    session.print(result.config, () => result.yaml.trimEnd());
    return 'ok';
  }
  for (const problem of result.problems.slice(1)) session.note(problem);
  if (session.format === 'json') session.print(result, () => '');
  throw new CommandError('refused', result.reason);
}
