import { access, constants, readFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import type { UnitFindings } from './host.js';
import { resolveInRoot } from './root-path.js';
import { flatPath, type PlannedFiles } from './staged-units.js';
import { templateOf } from './units.js';

export interface JudgeContext {
  /** Every name under which systemd may speak of a unit, to the name that was asked for. */
  readonly names: ReadonlyMap<string, string>;
  readonly planned: { readonly files: PlannedFiles; readonly others: ReadonlySet<string> };
  readonly stage: string;
  readonly root: string;
}

const SEARCH_PATH = ['/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin', '/sbin', '/bin'];
/** From files like these come units that nobody sees before the reload. */
const GENERATOR_INPUT =
  /^\/etc\/(containers\/systemd\/|init\.d\/|fstab$|crypttab$)|^\/usr\/share\/containers\/systemd\//;
const QUADLETS = '/etc/containers/systemd';

/** `/path/of/x.service:3: words` */
const SYNTAX = /^(\/.+?):(\d+): (.*)$/;
/** `x.service: words` and `Unit x.service words` */
const ABOUT_UNIT = /^(?:Unit )?([^\s:]+\.[a-z]+):? (.*)$/;
const NOT_EXECUTABLE = /^Command (.+) is not executable: /;
const MISSING_UNIT = /\bnot (?:found|loaded)\b/;
/** Lines that follow one which has said it. */
const REPEATED = /^(Found dependency on|Unable to break cycle|is masked)/;

/** A line for people, or nothing. */
type Judgement = { readonly error: string } | { readonly warning: string } | undefined;

/** Sorts what `systemd-analyze verify` said into errors and warnings, each once; what is about other units is left out. */
export async function judgeLines(lines: readonly string[], context: JudgeContext): Promise<UnitFindings> {
  const errors = new Set<string>();
  const warnings = new Set<string>();
  for (const line of lines) {
    const judgement = await judge(line, context);
    if (judgement === undefined) continue;
    if ('error' in judgement) errors.add(judgement.error);
    else warnings.add(judgement.warning);
  }
  return { errors: [...errors], warnings: [...warnings] };
}

async function judge(line: string, context: JudgeContext): Promise<Judgement> {
  const syntax = SYNTAX.exec(line);
  if (syntax !== null) {
    const [, path = '', number, words = ''] = syntax;
    return judgeSyntax({ path, number: Number(number), words }, context);
  }
  const [, name = '', words = ''] = ABOUT_UNIT.exec(line) ?? [];
  const unit = context.names.get(name);
  return unit === undefined || REPEATED.test(words) ? undefined : judgeUnit(unit, words, context);
}

async function judgeUnit(unit: string, words: string, context: JudgeContext): Promise<Judgement> {
  const program = NOT_EXECUTABLE.exec(words)?.[1];
  if (program !== undefined) {
    return (await willBeThere(program, context)) ? undefined : { error: `${unit}: there is no program ${program}` };
  }
  const isPassedOver = /\bignoring\b/i.test(words) || (MISSING_UNIT.test(words) && (await mayBeGenerated(context)));
  return isPassedOver ? { warning: `${unit}: ${words}` } : { error: `${unit}: ${words}` };
}

interface SyntaxLine {
  readonly path: string;
  readonly number: number;
  readonly words: string;
}

/** systemd passes over a line that it does not understand; only a header that is none keeps it from loading the file. */
async function judgeSyntax({ path, number, words }: SyntaxLine, context: JudgeContext): Promise<Judgement> {
  const { planned, stage, names } = context;
  // What the host brings is not the config's fault.
  const file = [...planned.files.keys()].find((candidate) =>
    [join(stage, candidate), join(stage, flatPath(candidate))].includes(path),
  );
  if (file === undefined) return undefined;
  const folder = basename(dirname(file));
  const unit = folder.endsWith('.d') ? folder.slice(0, -'.d'.length) : basename(file);
  const asked = names.get(unit) ?? names.get(templateOf(unit));
  if (asked === undefined) return undefined;
  const where = `${asked}: ${file} line ${number}`;
  if (words.startsWith('Invalid section header')) return { error: `${where} is no section header` };
  if (/^Unknown (lvalue|key|section)/.test(words)) return { warning: `${where}: ${words}` };
  return { warning: `${where}: ${await keyOf(path, number)} is not understood and has no effect` };
}

/** The key of a line, and never its value. */
async function keyOf(path: string, number: number): Promise<string> {
  const line = (await readFile(path, 'utf8')).split('\n')[number - 1] ?? '';
  const key = /^\s*([A-Za-z][A-Za-z0-9-]*)\s*=/.exec(line)?.[1];
  return key === undefined ? 'the line' : `the value of ${key}=`;
}

/** On the host, or created by the update. */
async function willBeThere(program: string, { planned, root }: JudgeContext): Promise<boolean> {
  const candidates = program.startsWith('/') ? [program] : SEARCH_PATH.map((folder) => `${folder}/${program}`);
  for (const candidate of candidates) {
    if (planned.others.has(candidate) || planned.others.has(await resolved(root, candidate))) return true;
    try {
      await access(join(root, candidate), constants.X_OK);
      return true;
    } catch {
      // Not this one.
    }
  }
  return false;
}

/** On hosts where /bin is a link to /usr/bin, the update may speak of the one and the unit of the other. */
async function resolved(root: string, path: string): Promise<string> {
  return resolveInRoot(root, path).catch(() => path);
}

async function mayBeGenerated({ planned, root }: JudgeContext): Promise<boolean> {
  if ([...planned.others].some((path) => GENERATOR_INPUT.test(path))) return true;
  return access(join(root, QUADLETS)).then(
    () => true,
    () => false,
  );
}
