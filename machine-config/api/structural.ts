import { z } from 'zod';

/**
 * A rule that spans several fields, said once for both who check it: in CEL for the API server and as a function for
 * our own parser. The two must mean the same.
 */
export interface Rule<T> {
  readonly cel: string;
  readonly holds: (value: T) => boolean;
  /** What is required, as a clause: `reload is set if and only if type is Reload`. */
  readonly message: string;
}

/** Attaches rules to a schema; they appear as `x-kubernetes-validations` in the CRD. */
export function withRules<S extends z.ZodType>(schema: S, ...rules: Rule<z.output<S>>[]): S {
  const checked = rules.reduce<S>((result, rule) => result.refine(rule.holds, { error: rule.message }), schema);
  return checked.meta({
    'x-kubernetes-validations': rules.map(({ cel, message }) => ({ rule: cel, message })),
  });
}

/** A rule between the stored and the new value: only the API server, which has both, can check it. */
export function withTransitionRule<S extends z.ZodType>(schema: S, cel: string, message: string): S {
  return schema.meta({ 'x-kubernetes-validations': [{ rule: cel, message }] });
}

/** A list that is replaced as a whole by server-side apply. */
export function atomicList<S extends z.ZodType>(item: S): z.ZodArray<S> {
  return z.array(item).meta({ 'x-kubernetes-list-type': 'atomic' });
}

/** A list whose items are told apart by `keys`; the API server refuses duplicates, and so does our parser. */
export function keyedList<S extends z.ZodType<object>>(
  item: S,
  keys: readonly string[],
  maxItems?: number,
): z.ZodArray<S> {
  const list = maxItems === undefined ? z.array(item) : z.array(item).max(maxItems);
  const identity = (value: object) => JSON.stringify(keys.map((key) => Object.entries(value).find(([k]) => k === key)));
  return list
    .refine((items) => new Set(items.map(identity)).size === items.length, {
      error: `two entries have the same ${keys.join(' and ')}`,
    })
    .meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': [...keys] });
}

/** A list without duplicates and without order. */
export function setList<S extends z.ZodType>(item: S, limits: { min: number; max: number }): z.ZodArray<S> {
  return z
    .array(item)
    .min(limits.min)
    .max(limits.max)
    .refine((items) => new Set(items).size === items.length, { error: 'the same value is listed twice' })
    .meta({ 'x-kubernetes-list-type': 'set' });
}

/** An object of which only the outside is ours to describe: stored and handed on as it is. */
export function openObject(description: string) {
  return z
    .record(z.string(), z.unknown(), { error: 'expected an object' })
    .meta({ description, 'x-kubernetes-preserve-unknown-fields': true });
}

export const intOrString = z
  .union([z.int32(), z.string()], { error: 'expected an integer or a percentage such as "10%"' })
  .meta({ 'x-kubernetes-int-or-string': true });

/** RFC 3339. A string, never a Date: it goes back to the API as it came. */
export const timestamp = z.string().meta({ format: 'date-time' });

const DNS_SUBDOMAIN = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;

/** Name of a Kubernetes object (RFC 1123 subdomain). */
export const objectName = z
  .string()
  .min(1, { error: 'must not be empty' })
  .max(253, { error: 'has more than 253 characters' })
  .regex(DNS_SUBDOMAIN, {
    error: 'must consist of lower-case letters, digits, "-" and ".", and begin and end with a letter or digit',
  });
