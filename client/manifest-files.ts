import { readdir, readFile, stat } from 'node:fs/promises';
import path from 'node:path';
import {
  isMap,
  isNode,
  isScalar,
  isSeq,
  LineCounter,
  parseAllDocuments,
  stringify,
  type Document,
  type DocumentOptions,
  type ScalarTag,
  type SchemaOptions,
  type Tags,
} from 'yaml';
import { apiFlavour } from '../machine-config/api/flavour.js';
import { BUTANE_EXTENSIONS, isButaneFile, translateButaneFile, type ButaneOptions } from './butane-file.js';

/** One Kubernetes object in a file; the items of a List are objects of their own. */
export interface Manifest {
  readonly value: unknown;
  /** `pools.yaml: document 2` */
  readonly place: string;
  /** Line (from 1) of the deepest part of the path that the file has; undefined where nothing is known. */
  readonly lineOf: (path: readonly (string | number)[]) => number | undefined;
}

export interface ReadManifests {
  readonly manifests: readonly Manifest[];
  /** What cannot be read, one line each, with file and line. */
  readonly errors: readonly string[];
  /** What is said of Butane files that are translated all the same, likewise. */
  readonly warnings?: readonly string[];
}

const FOLDER_EXTENSIONS = new Set(['.yaml', '.yml', '.json', ...BUTANE_EXTENSIONS]);
const MAX_FILE_BYTES = 32 * 1024 * 1024;

/**
 * Reads files as kubectl does, and folders with everything below them: .yaml, .yml, .json and Butane's .bu in order of their
 * names, hidden ones and links left out. A file given by name is read whatever its extension. Butane files become the
 * MachineConfigs that they stand for. Never throws.
 */
export async function readManifests(
  files: readonly string[],
  butane: ButaneOptions = { flavour: apiFlavour('openshift') },
): Promise<ReadManifests> {
  const manifests: Manifest[] = [];
  const errors: string[] = [];
  const warnings: string[] = [];
  for (const given of files) {
    try {
      for (const file of await listFiles(given)) {
        const read = await readManifestFile(file, butane);
        manifests.push(...read.manifests);
        errors.push(...read.errors);
        warnings.push(...(read.warnings ?? []));
      }
    } catch (error) {
      errors.push(`${given}: cannot be read: ${describeSystemError(error)}`);
    }
  }
  return { manifests, errors, warnings };
}

async function listFiles(given: string): Promise<string[]> {
  if (!(await stat(given)).isDirectory()) return [given];
  const entries = await readdir(given, { withFileTypes: true });
  entries.sort((left, right) => (left.name < right.name ? -1 : 1));
  const found: string[] = [];
  for (const entry of entries) {
    if (entry.name.startsWith('.')) continue;
    const child = path.join(given, entry.name);
    if (entry.isDirectory()) found.push(...(await listFiles(child)));
    else if (entry.isFile() && FOLDER_EXTENSIONS.has(path.extname(entry.name).toLowerCase())) found.push(child);
  }
  return found;
}

async function readManifestFile(file: string, butane: ButaneOptions): Promise<ReadManifests> {
  if ((await stat(file)).size > MAX_FILE_BYTES) {
    return { manifests: [], errors: [`${file}: is larger than ${MAX_FILE_BYTES / 1024 / 1024} MiB; split it`] };
  }
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(await readFile(file));
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    return { manifests: [], errors: [`${file}: is not UTF-8 text; save it as UTF-8`] };
  }
  return isButaneFile(file, text) ? butaneManifests(file, text, butane) : parseManifests(file, text);
}

function butaneManifests(file: string, text: string, butane: ButaneOptions): ReadManifests {
  const { result, problems, warnings } = translateButaneFile(file, text, butane);
  if (result.outcome === 'machineConfig') {
    const { machineConfig, placeOf } = result;
    const manifest = {
      value: machineConfig,
      place: file,
      lineOf: (path: readonly (string | number)[]) => placeOf(path).line,
    };
    // The warnings are those that rendering the MachineConfig gives, and would be given twice.
    return { manifests: [manifest], errors: [] };
  }
  if (result.outcome === 'refused') return { manifests: [], errors: problems, warnings };
  const { line, column } = result.place;
  const message = `this variant names no MachineConfig; give the role of its nodes with --role, or write variant: openshift with metadata`;
  return { manifests: [], errors: [`${file}:${line}:${column}: variant: ${message}`], warnings };
}

/** Parses the text of one file; `file` is only for messages. */
export function parseManifests(file: string, text: string): ReadManifests {
  const lines = new LineCounter();
  const manifests: Manifest[] = [];
  const errors: string[] = [];
  try {
    const documents = parseAllDocuments(text, { ...INPUT_OPTIONS, prettyErrors: false, lineCounter: lines });
    if (!Array.isArray(documents)) return { manifests, errors };
    documents.forEach((document, index) => {
      const place = documents.length > 1 ? `${file}: document ${index + 1}` : file;
      const [error] = document.errors;
      if (error === undefined) {
        manifests.push(...toManifests(document, place, lines));
      } else {
        errors.push(`${file}:${lines.linePos(error.pos[0]).line}: is not valid YAML: ${oneLine(error.message)}`);
      }
    });
  } catch (error) {
    // Nesting or aliases beyond what the parser takes on.
    errors.push(`${file}: is not valid YAML: ${error instanceof Error ? oneLine(error.message) : 'unknown error'}`);
  }
  return { manifests, errors };
}

/** `0o644`, which YAML 1.1 does not know; kubectl and YAML 1.2 read it as a number. */
const OCTAL_WITH_LETTER: ScalarTag = {
  identify: () => false,
  default: true,
  tag: 'tag:yaml.org,2002:int',
  test: /^0o[0-7]+$/,
  resolve: (text) => Number.parseInt(text.slice(2), 8),
};

/**
 * YAML as kubectl reads it: `0644` is octal, `yes` is true, as in YAML 1.1; `0o644` is octal too; dates and 12:30 are
 * text. Says so explicitly, since a `%YAML 1.2` line would otherwise turn 0644 into six hundred and forty-four.
 */
const INPUT_OPTIONS: DocumentOptions & SchemaOptions = {
  version: '1.1',
  schema: 'yaml-1.1',
  customTags: (tags) => [...tags.filter(isReadByKubectl), OCTAL_WITH_LETTER],
};

function isReadByKubectl(tag: Tags[number]): boolean {
  if (typeof tag === 'string' || !/^tag:yaml.org,2002:(map|seq|str|null|bool|int|float|merge)$/.test(tag.tag))
    return false;
  return !('format' in tag && tag.format === 'TIME');
}

/** One YAML document that old and new readers understand alike: what looks like a number, a date or yes is quoted. */
export function writeManifest(value: unknown): string {
  return stringify(value, {
    version: '1.1',
    customTags: (tags) => [...tags, OCTAL_WITH_LETTER],
    lineWidth: 0,
    aliasDuplicateObjects: false,
  });
}

function toManifests(document: Document, place: string, lines: LineCounter): Manifest[] {
  const value: unknown = document.toJS({ maxAliasCount: 100 });
  if (value === null || value === undefined) return [];
  const manifest = (part: unknown, where: string, prefix: readonly (string | number)[]): Manifest => ({
    value: part,
    place: where,
    lineOf: (steps) => lineAt(document, [...prefix, ...steps], lines),
  });
  const items = listItems(value);
  if (items === undefined) return [manifest(value, place, [])];
  return items.map((item, index) => manifest(item, `${place}: item ${index + 1}`, ['items', index]));
}

function listItems(value: unknown): readonly unknown[] | undefined {
  if (typeof value !== 'object' || value === null || !('kind' in value) || !('items' in value)) return undefined;
  const { kind, items } = value;
  return typeof kind === 'string' && kind.endsWith('List') && Array.isArray(items) ? items : undefined;
}

function lineAt(document: Document, steps: readonly (string | number)[], lines: LineCounter): number | undefined {
  let node: unknown = document.contents;
  let line: number | undefined;
  for (const step of [undefined, ...steps]) {
    if (step !== undefined) {
      const pair = isMap(node) ? node.items.find(({ key }) => isScalar(key) && key.value === step) : undefined;
      if (pair === undefined && !isSeq(node)) break;
      // The line of the key, which is where the reader looks; the value may begin on the next one.
      if (isNode(pair?.key) && pair.key.range) line = lines.linePos(pair.key.range[0]).line;
      node = isSeq(node) ? node.get(Number(step), true) : pair?.value;
      if (pair !== undefined) continue;
    }
    if (!isNode(node)) break;
    if (node.range) line = lines.linePos(node.range[0]).line;
  }
  return line;
}

function oneLine(text: string): string {
  return text.replaceAll(/\s+/g, ' ').trim();
}

function describeSystemError(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  if (code === 'ENOENT') return 'there is no such file or folder';
  if (code === 'EACCES') return 'permission denied';
  return error instanceof Error ? oneLine(error.message) : 'unknown error';
}
