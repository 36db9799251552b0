import { readFile, stat } from 'node:fs/promises';
import { translateButaneFile, type TranslatedFile } from '../butane-file.js';
import { CommandError, lineOf } from '../command-error.js';
import type { ExitName } from '../exit-codes.js';
import { writeManifest } from '../manifest-files.js';
import type { Session } from '../session.js';

export interface ButaneCommandOptions {
  readonly filesDir?: string | undefined;
  readonly role?: string | undefined;
  readonly name?: string | undefined;
  /** A warning is a refusal. */
  readonly strict: boolean;
}

const MAX_BYTES = 16 * 1024 * 1024;

/** The config on stdout, warnings and every further problem on stderr. */
export async function butane(session: Session, file: string, options: ButaneCommandOptions): Promise<ExitName> {
  const { strict, ...given } = options;
  if (given.name !== undefined && given.role === undefined) {
    throw new CommandError('usage', '--name needs --role, the role of the nodes that the MachineConfig is for');
  }
  const translated = translateButaneFile(file, await readText(file), { ...given, flavour: session.flavour });
  const config = acceptedConfig(session, translated, strict);
  session.print(config, () => writeManifest(config).trimEnd());
  return 'ok';
}

function acceptedConfig(session: Session, { result, problems, warnings }: TranslatedFile, strict: boolean): object {
  const refusals = strict ? [...problems, ...warnings] : problems;
  if (!strict) for (const warning of warnings) session.note(`warning: ${warning}`);
  const [first] = refusals;
  if (result.outcome !== 'refused' && first === undefined) {
    return result.outcome === 'ignition' ? result.config : result.machineConfig;
  }
  for (const problem of refusals.slice(1)) session.note(problem);
  const more = refusals.length > 1 ? ` (and ${refusals.length - 1} more)` : '';
  throw new CommandError('refused', `${first ?? ''}${more}`);
}

async function readText(file: string): Promise<string> {
  try {
    if ((await stat(file)).size > MAX_BYTES) throw new CommandError('refused', `${file}: is larger than 16 MiB`);
    return new TextDecoder('utf-8', { fatal: true }).decode(await readFile(file));
  } catch (error) {
    if (error instanceof CommandError) throw error;
    if (error instanceof TypeError) throw new CommandError('refused', `${file}: is not UTF-8 text; save it as UTF-8`);
    throw new CommandError('refused', `${file}: cannot be read: ${lineOf(error)}`, { cause: error });
  }
}
