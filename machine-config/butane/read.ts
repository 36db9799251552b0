import { isAlias, isMap, isScalar, isSeq, LineCounter, parseAllDocuments, type Document, type YAMLMap } from 'yaml';
import { z } from 'zod';
import { explainUnknownKey, fieldsOf, unwrapped } from '../api/unknown-key.js';
import { hasLoneSurrogate, isRecord, type FieldPath } from '../ignition/findings.js';
import { parseTyped } from '../ignition/typing.js';
import { Findings } from '../ignition/findings.js';
import type { ButaneFindings } from './places.js';
import { whyRefused } from './rules.js';
import { readPlainBoolean, readPlainInteger, isPlainNull } from './scalars.js';
import { butaneSchema } from './schema.js';
import { findSpec, type ButaneSpec } from './specs.js';

/** Deeper nesting than any Butane file has, and more values: aliases of aliases can stand for millions. */
const MAX_DEPTH = 40;
const MAX_VALUES = 200_000;

/** What a Butane file says: the spec, and the values in the words of Butane, of the types that the schema demands. */
export interface ReadButane {
  readonly spec: ButaneSpec;
  readonly value: z.output<typeof butaneSchema>;
}

/** Reads the text of a Butane file strictly. Undefined: what is wrong is in `findings`. Never throws. */
export function readButane(text: string, findings: ButaneFindings): ReadButane | undefined {
  const lines = new LineCounter();
  const document = readDocument(text, lines, findings);
  if (document === undefined) return undefined;
  if (!isMap(document.contents)) {
    findings.refuseAt({ line: 1, column: 1 }, 'is no Butane file; begin it with variant and version');
    return undefined;
  }
  const reader = new Reader(document, lines, findings);
  const lookup = findSpec(headerOf(document.contents, 'variant'), headerOf(document.contents, 'version'));
  if (!lookup.ok) {
    reader.notePlace([lookup.field], headerNode(document.contents, lookup.field)?.key);
    findings.refuse([lookup.field], lookup.message);
    return undefined;
  }
  const { spec } = lookup;
  const raw = reader.readMap(document.contents, butaneSchema, [], spec);
  findings.root = raw;
  const value = checkTypes(raw, findings);
  return value === undefined || findings.isRefused() ? undefined : { spec, value };
}

function readDocument(text: string, lines: LineCounter, findings: ButaneFindings): Document | undefined {
  try {
    // All scalars stay text: what they mean depends on what the place takes, as in Butane itself.
    const documents = parseAllDocuments(text, { schema: 'failsafe', prettyErrors: false, lineCounter: lines });
    const all = Array.isArray(documents) ? documents : [];
    for (const document of all) {
      const [error] = [...document.errors, ...document.warnings];
      if (error === undefined) continue;
      const { line, col } = lines.linePos(error.pos[0]);
      findings.refuseAt({ line, column: col }, `is not valid YAML: ${error.message}`);
      return undefined;
    }
    if (all.length === 1) return all[0];
    const said = all.length === 0 ? 'is empty; begin it with variant and version' : 'has several YAML documents';
    findings.refuseAt({ line: 1, column: 1 }, all.length === 0 ? said : `${said}; a Butane file is one`);
  } catch (error) {
    findings.refuseAt(
      { line: 1, column: 1 },
      `is not valid YAML: ${error instanceof Error ? error.message : 'unknown'}`,
    );
  }
  return undefined;
}

function headerNode(map: YAMLMap, name: string) {
  return map.items.find(({ key }) => isScalar(key) && key.value === name);
}

function headerOf(map: YAMLMap, name: string): string | undefined {
  const value = headerNode(map, name)?.value;
  return isScalar(value) && typeof value.value === 'string' && !isPlainNull(value) ? value.value : undefined;
}

class Reader {
  readonly #document: Document;
  readonly #lines: LineCounter;
  readonly #findings: ButaneFindings;
  #values = 0;

  constructor(document: Document, lines: LineCounter, findings: ButaneFindings) {
    this.#document = document;
    this.#lines = lines;
    this.#findings = findings;
  }

  notePlace(path: FieldPath, node: unknown): void {
    const range = isScalar(node) || isMap(node) || isSeq(node) || isAlias(node) ? node.range : undefined;
    if (!range) return;
    const { line, col } = this.#lines.linePos(range[0]);
    this.#findings.places.set(path, { line, column: col });
  }

  /** The fields that this spec has; of all others it is said what is wrong with them. */
  readMap(map: YAMLMap, schema: z.core.$ZodType, path: FieldPath, spec: ButaneSpec): unknown {
    const fields = fieldsOf(schema);
    const inner = unwrapped(schema);
    const kept: [string, unknown][] = [];
    for (const { key, value } of this.#pairs(map)) {
      const name = isScalar(key) && typeof key.value === 'string' ? key.value : '';
      const at = [...path, name];
      this.notePlace(at, key);
      const field = inner instanceof z.ZodRecord ? inner.valueType : fields?.get(name);
      if (field === undefined) {
        this.#findings.refuse(at, this.#explainUnknown(path, name));
        continue;
      }
      const read = this.#read(value, field, at, spec);
      if (read === undefined) continue;
      const refused = whyRefused(spec, placeOf(at), sinceOf(field));
      if (refused === undefined) kept.push([name, read]);
      else this.#findings.refuse(at, refused);
    }
    return Object.fromEntries(kept);
  }

  #explainUnknown(path: FieldPath, name: string): string {
    const nearby = name === 'user' && /users\[\]$/.test(placeOf(path)) ? 'name' : undefined;
    if (nearby !== undefined) return `unknown key; did you mean "${nearby}"?`;
    return explainUnknownKey(butaneSchema, path, name);
  }

  /** With what `<<` brings in, which counts for less than what stands there itself. */
  *#pairs(map: YAMLMap): Iterable<{ key: unknown; value: unknown }> {
    const own = new Set(map.items.map(({ key }) => (isScalar(key) ? key.value : undefined)));
    for (const pair of map.items) {
      if (!isScalar(pair.key) || pair.key.value !== '<<' || pair.key.type !== 'PLAIN') {
        yield pair;
        continue;
      }
      const merged = this.#resolve(pair.value);
      for (const source of isSeq(merged) ? merged.items.map((item) => this.#resolve(item)) : [merged]) {
        if (!isMap(source)) continue;
        for (const inherited of this.#pairs(source)) {
          const name = isScalar(inherited.key) ? inherited.key.value : undefined;
          if (own.has(name)) continue;
          own.add(name);
          yield inherited;
        }
      }
    }
  }

  #resolve(node: unknown): unknown {
    return isAlias(node) ? node.resolve(this.#document) : node;
  }

  /** Undefined where the file says nothing: absent, null, an empty list or object. */
  #read(given: unknown, schema: z.core.$ZodType, path: FieldPath, spec: ButaneSpec): unknown {
    const node = this.#resolve(given);
    this.#values += 1;
    if (this.#values > MAX_VALUES || path.length > MAX_DEPTH) {
      if (this.#values <= MAX_VALUES + 1)
        this.#findings.refuse(path, 'has more values than a config can have; split it');
      return undefined;
    }
    const inner = unwrapped(schema);
    if (isMap(node)) {
      const isKnown = inner instanceof z.ZodObject || inner instanceof z.ZodRecord;
      const map = isKnown ? this.readMap(node, schema, path, spec) : {};
      return isKnown && isRecord(map) && Object.keys(map).length === 0 ? undefined : map;
    }
    if (isSeq(node)) return this.#readList(node.items, inner, path, spec);
    return isScalar(node) ? this.#readScalar(node, inner, path) : undefined;
  }

  #readList(items: readonly unknown[], inner: z.core.$ZodType, path: FieldPath, spec: ButaneSpec): unknown {
    if (items.length === 0) return undefined;
    if (!(inner instanceof z.ZodArray)) return [];
    return items.map((item, index) => {
      this.notePlace([...path, index], item);
      // An item with nothing that is known is still one: its fields are missing.
      return this.#read(item, inner.element, [...path, index], spec) ?? (isMap(this.#resolve(item)) ? {} : null);
    });
  }

  /** As Butane decodes: what a plain word means depends on the type of the place, so `0644` is octal and `no` may be text. */
  #readScalar(node: { value: unknown; type?: string | undefined }, inner: z.core.$ZodType, path: FieldPath): unknown {
    if (isPlainNull(node)) return undefined;
    const text = String(node.value);
    if (hasLoneSurrogate(text)) {
      this.#findings.refuse(path, 'contains half a Unicode character (a lone surrogate); write the whole character');
      return undefined;
    }
    if (node.type !== 'PLAIN') return text;
    if (inner instanceof z.ZodNumber) return readPlainInteger(text) ?? text;
    if (inner instanceof z.ZodBoolean) return readPlainBoolean(text) ?? text;
    return text;
  }
}

function sinceOf(schema: z.core.$ZodType): number | undefined {
  const inner = unwrapped(schema);
  const since = inner instanceof z.ZodType ? inner.meta()?.since : undefined;
  return typeof since === 'number' ? since : undefined;
}

/** A path with `[]` for every list item, as the tables of rules name places. */
function placeOf(path: FieldPath): string {
  return path.reduce<string>((place, step) => {
    if (typeof step === 'number') return `${place}[]`;
    return place === '' ? step : `${place}.${step}`;
  }, '');
}

/** Every wrong type is a problem, and every missing field unless an unknown key beside it is the same mistake. */
function checkTypes(raw: unknown, findings: ButaneFindings): z.output<typeof butaneSchema> | undefined {
  const typing = new Findings(raw);
  const parsed = parseTyped(butaneSchema, raw, typing);
  const parentOf = (path: string) => path.slice(0, Math.max(path.lastIndexOf('.'), path.lastIndexOf('['), 0));
  const parents = new Set(findings.problems.map(({ path }) => parentOf(path)));
  for (const { at, path, message } of typing.problems) {
    const isConsequence = message.includes('is missing') && parents.has(parentOf(path));
    if (!isConsequence) findings.refuse(at, message);
  }
  return parsed;
}
