import type { z } from 'zod';
import { isList, isRecord, quote, valueAt, type FieldPath, type Findings } from './findings.js';

/** Fields whose value is a secret or a file: never shown in a message. */
const NEVER_SHOWN = new Set<string | number>([
  'custom',
  'contents',
  'source',
  'passwordHash',
  'sshAuthorizedKeys',
  'hash',
  'thumbprint',
  'value',
]);

/** Parses a value whose keys are known already; each wrong type becomes a problem that says what to write. */
export function parseTyped<S extends z.ZodType>(
  schema: S,
  value: unknown,
  findings: Findings,
): z.output<S> | undefined {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  for (const issue of parsed.error.issues) {
    const path = issue.path.filter((step) => typeof step !== 'symbol');
    findings.refuse(path, describeIssue(issue, valueAt(value, path), path));
  }
  return undefined;
}

function describeIssue(issue: z.core.$ZodIssue, value: unknown, path: FieldPath): string {
  if (issue.code !== 'invalid_type') return issue.message;
  if (value === undefined) return `is missing and must be ${kindName(issue.expected)}`;
  const shown = path.some((step) => NEVER_SHOWN.has(step)) ? kindOf(value) : describeValue(value);
  return `is ${shown}, must be ${kindName(issue.expected)}${advice(issue.expected, value, path.at(-1))}`;
}

function kindName(expected: string): string {
  const names: Readonly<Record<string, string>> = {
    string: 'a string',
    int: 'a whole number',
    number: 'a whole number',
    boolean: 'true or false',
    array: 'a list',
    object: 'an object',
  };
  return names[expected] ?? expected;
}

function kindOf(value: unknown): string {
  if (value === null) return 'null';
  if (isList(value)) return 'a list';
  return isRecord(value) ? 'an object' : `a ${typeof value}`;
}

function describeValue(value: unknown): string {
  if (typeof value === 'string') return `the string ${quote(value)}`;
  return typeof value === 'number' || typeof value === 'boolean' ? quote(value) : kindOf(value);
}

function advice(expected: string, value: unknown, field: string | number | undefined): string {
  if (expected === 'boolean' && (value === 'true' || value === 'false')) return `; write ${value} without quotes`;
  if (expected === 'string' && (typeof value === 'number' || typeof value === 'boolean')) return '; put it in quotes';
  if (expected !== 'int' && expected !== 'number') return '';
  if (typeof value !== 'string') return '';
  const octal = field === 'mode' ? octalDigits(value) : undefined;
  if (octal !== undefined) return `; write ${Number.parseInt(octal, 8)} (decimal for octal 0${octal})`;
  return /^\d+$/.test(value) ? `; write ${Number.parseInt(value, 10)} without quotes` : '';
}

/** Digits of a mode that was meant in octal: with a leading 0 or 0o, or too large to be meant as a decimal number. */
function octalDigits(text: string): string | undefined {
  const marked = /^0o?([0-7]{3,4})$/.exec(text)?.[1];
  if (marked !== undefined) return marked;
  return /^[0-7]{3}$/.test(text) && Number.parseInt(text, 10) > 0o777 ? text : undefined;
}
