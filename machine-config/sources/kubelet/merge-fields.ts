import { parse } from 'yaml';
import { isRecord } from '../../ignition/findings.js';
import { compareText } from '../../render/select.js';

export type Fields = Readonly<Record<string, unknown>>;

/**
 * What stands in `over` wins, also where it is false, zero or empty; objects are merged by key, lists are replaced. So
 * does the kubelet with its drop-ins.
 */
export function mergeFields(under: Fields, over: Fields): Fields {
  const merged = Object.entries(over).map(([key, value]): [string, unknown] => {
    const present = under[key];
    return [key, isRecord(value) && isRecord(present) ? mergeFields(present, value) : value];
  });
  return { ...under, ...Object.fromEntries(merged) };
}

/** A kubelet's configuration as YAML or JSON text; undefined: it is none. */
export function readFields(text: string): Fields | undefined {
  try {
    const value: unknown = parse(text);
    return isRecord(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/**
 * As JSON, which is YAML too, with sorted keys: the bytes hang on no library and no order, since other bytes of the same
 * meaning would be a rollout.
 */
export function writeFields(fields: Fields): string {
  return `${JSON.stringify(sorted(fields), null, 2)}\n`;
}

/** Whether two configurations mean the same, whatever their bytes. */
export function sameFields(one: Fields, other: Fields): boolean {
  return writeFields(one) === writeFields(other);
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (!isRecord(value)) return value;
  const entries = Object.entries(value).filter(([, each]) => each !== undefined);
  return Object.fromEntries(
    entries.toSorted(([one], [other]) => compareText(one, other)).map(([key, each]) => [key, sorted(each)]),
  );
}
