import path from 'node:path';
import type { ApiFlavour } from '../machine-config/api/flavour.js';
import { formatButaneFinding } from '../machine-config/butane/places.js';
import { translateButane, type Translated } from '../machine-config/butane/translate.js';
import { localFolder } from './local-folder.js';

/** How Butane files among others are to be read. */
export interface ButaneOptions {
  readonly flavour: ApiFlavour;
  /** Default: the folder in which the Butane file is. */
  readonly filesDir?: string | undefined;
  /** For variants that name none; without it those files become Ignition configs. */
  readonly role?: string | undefined;
  /** Default: `99-<role>-<name of the file>`. */
  readonly name?: string | undefined;
}

/** One translated file, with all findings as lines that begin with file, line and column. */
export interface TranslatedFile {
  readonly result: Translated;
  readonly problems: readonly string[];
  readonly warnings: readonly string[];
}

export const BUTANE_EXTENSIONS: ReadonlySet<string> = new Set(['.bu', '.butane', '.fcc']);

/** By its name, or because it says a variant and no kind. */
export function isButaneFile(file: string, text: string): boolean {
  if (BUTANE_EXTENSIONS.has(path.extname(file).toLowerCase())) return true;
  return /^variant[ \t]*:/m.test(text) && !/^(?:apiVersion|kind)[ \t]*:/m.test(text);
}

export function translateButaneFile(file: string, text: string, options: ButaneOptions): TranslatedFile {
  const { flavour, filesDir = path.dirname(file), role, name } = options;
  const result = translateButane({
    text,
    flavour,
    files: localFolder(filesDir),
    ...(role === undefined ? {} : { machineConfig: { name: name ?? nameFor(file, role), role } }),
  });
  const lines = (findings: Translated['warnings']) => findings.map((finding) => formatButaneFinding(file, finding));
  return {
    result,
    problems: result.outcome === 'refused' ? lines(result.problems) : [],
    warnings: lines(result.warnings),
  };
}

/** `99-worker-chrony` for `chrony.bu`, in the letters that names of objects have. */
function nameFor(file: string, role: string): string {
  const base = path.basename(file, path.extname(file)).toLowerCase();
  return `99-${role}-${base.replaceAll(/[^a-z0-9.-]+/g, '-')}`.replaceAll(/\.-|-\.|\.\./g, '-').replace(/[.-]+$/, '');
}
