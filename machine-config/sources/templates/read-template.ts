import { parseDocument, type DocumentOptions, type ParseOptions, type SchemaOptions } from 'yaml';
import type { IgnitionFile, IgnitionUnit } from '../../ignition/config.js';
import { isRecord, oneLine } from '../../ignition/findings.js';
import { generatedFile } from '../generated-config.js';

/** `mode: 0644` is octal, as everywhere in this API. */
const YAML_OPTIONS: ParseOptions & DocumentOptions & SchemaOptions = {
  version: '1.1',
  schema: 'yaml-1.1',
  prettyErrors: false,
};

/** @throws an Error whose message is one line that says what is wrong with the YAML. */
export function readYaml(text: string): unknown {
  const document = parseDocument(text, YAML_OPTIONS);
  const [error] = document.errors;
  if (error !== undefined) throw new Error(`is no YAML once it is filled in: ${oneLine(error.message)}`);
  return document.toJS({ maxAliasCount: 100 });
}

/**
 * A file as templates write it: `contents.inline` is text, everything else as in Ignition. What is not as it should be
 * is found when the whole config is checked.
 *
 * @throws an Error whose message is one line.
 */
export function readFileTemplate(text: string): IgnitionFile {
  const file = readObject(text, 'file');
  const { contents } = file;
  if (!isRecord(contents) || contents.inline === undefined) return { overwrite: true, ...file } as IgnitionFile;
  const { inline, ...others } = contents;
  if (typeof inline !== 'string') throw new Error('contents.inline must be text; quote it, or begin it with "|"');
  const [other] = Object.keys(others);
  if (other !== undefined) throw new Error(`contents has inline and ${other}; write one of the two`);
  const { path, mode } = file;
  if (typeof path !== 'string') throw new Error('path is missing');
  if (mode !== undefined && typeof mode !== 'number') throw new Error('mode must be a number such as 0644');
  return { ...file, ...generatedFile(path, inline, mode) };
}

/** @throws an Error whose message is one line. */
export function readUnitTemplate(text: string): IgnitionUnit {
  return readObject(text, 'unit') as unknown as IgnitionUnit;
}

function readObject(text: string, what: string): Record<string, unknown> {
  const value = readYaml(text);
  if (!isRecord(value)) throw new Error(`must be one ${what} as an object with ${what === 'file' ? 'path' : 'name'}`);
  return { ...value };
}
