/** A place in a document, from its root: `['config', 'storage', 'files', 2, 'mode']`. */
export type FieldPath = readonly (string | number)[];

/** Something to say about one place of one object. `message` is one line and never shows contents, keys or hashes. */
export interface Finding {
  /** `spec.config.storage.files[2].mode` */
  readonly path: string;
  /** The same place, step by step, without the prefix. */
  readonly at: FieldPath;
  readonly message: string;
}

/** A place as people write it; keys that are no plain word are quoted. */
export function formatPath(path: FieldPath): string {
  let text = '';
  for (const step of path) {
    if (typeof step === 'number') text += `[${step}]`;
    else if (/^[A-Za-z_][\w-]*$/.test(step)) text += text === '' ? step : `.${step}`;
    else text += `[${quote(step)}]`;
  }
  return text;
}

/** A place as formatPath writes it, step by step. */
export function stepsOfPath(path: string): (string | number)[] {
  return [...path.matchAll(/\[(\d+)\]|\["([^"]*)"\]|([^.[\]]+)/g)].map(([, index, quoted, word]) =>
    index === undefined ? (quoted ?? word ?? '') : Number(index),
  );
}

/** A piece of input on one line: quoted, control characters escaped, long ones cut. */
export function quote(value: unknown): string {
  const text = JSON.stringify(value) as string | undefined;
  if (text === undefined) return typeof value;
  return text.length > 80 ? `${text.slice(0, 77)}...` : text;
}

export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function isList(value: unknown): value is readonly unknown[] {
  return Array.isArray(value);
}

/** Deeper nesting than any config has. */
const MAX_DEPTH = 40;

/** Whether a value is nested deeper than any config is; recursion over it could overflow the stack. */
export function isTooDeep(value: unknown): boolean {
  let level: unknown[] = [value];
  for (let depth = 0; level.length > 0; depth += 1) {
    if (depth > MAX_DEPTH) return true;
    level = level.flatMap((entry) => (isList(entry) ? [...entry] : isRecord(entry) ? Object.values(entry) : []));
  }
  return false;
}

/** Half a Unicode character: no text, and without a canonical form to hash. */
export function hasLoneSurrogate(text: string): boolean {
  return /\p{Surrogate}/u.test(text);
}

/** What stands at a place; undefined where there is nothing. */
export function valueAt(root: unknown, path: FieldPath): unknown {
  let value = root;
  for (const step of path) {
    if (isList(value) && typeof step === 'number') value = value[step];
    else if (isRecord(value) && Object.hasOwn(value, step)) value = value[step];
    else return undefined;
  }
  return value;
}

/** The innermost list entry around a place, by what people call it: a file's path, a unit's name, a disk's device. */
export function entryLabel(root: unknown, path: FieldPath): string | undefined {
  for (let length = path.length; length > 0; length -= 1) {
    if (typeof path[length - 1] !== 'number') continue;
    const entry = valueAt(root, path.slice(0, length));
    if (!isRecord(entry)) continue;
    const label = [entry.path, entry.name, entry.device].find((value) => typeof value === 'string' && value !== '');
    if (typeof label === 'string') return label;
  }
  return undefined;
}

/** Collects what is wrong (problems: the object is refused) and what is odd (warnings) about one document. */
export class Findings {
  readonly problems: Finding[] = [];
  readonly warnings: Finding[] = [];
  private readonly root: unknown;
  private readonly prefix: FieldPath;

  /** `root` is the document that paths start in, `prefix` the place of that document in the whole object. */
  constructor(root: unknown, prefix: FieldPath = []) {
    this.root = root;
    this.prefix = prefix;
  }

  refuse(path: FieldPath, message: string): void {
    this.problems.push(this.finding(path, message));
  }

  warn(path: FieldPath, message: string): void {
    this.warnings.push(this.finding(path, message));
  }

  get refused(): boolean {
    return this.problems.length > 0;
  }

  private finding(path: FieldPath, message: string): Finding {
    const label = entryLabel(this.root, path);
    return {
      path: formatPath([...this.prefix, ...path]),
      at: path,
      message: oneLine(label === undefined ? message : `${labelText(label)}: ${message}`),
    };
  }
}

/** Control characters can only come from the input; a message stays on one line whatever is in it. */
export function oneLine(text: string): string {
  return text.replaceAll(/\p{Cc}+/gu, ' ');
}

function labelText(label: string): string {
  return /^[\x21-\x7e]{1,120}$/.test(label) ? label : quote(label);
}
