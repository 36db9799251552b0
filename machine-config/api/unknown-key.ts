import { z } from 'zod';

/** The schema without the wrappers that only say that a value may be absent or null. */
export function unwrapped(schema: z.core.$ZodType): z.core.$ZodType {
  if (schema instanceof z.ZodExactOptional || schema instanceof z.ZodOptional || schema instanceof z.ZodNullable) {
    return unwrapped(schema.def.innerType);
  }
  return schema;
}

/** The keys that an object may have, with their schemas; undefined for what is not an object of known keys. */
export function fieldsOf(schema: z.core.$ZodType): ReadonlyMap<string, z.core.$ZodType> | undefined {
  const here = unwrapped(schema);
  return here instanceof z.ZodObject ? new Map(Object.entries<z.core.$ZodType>(here.shape)) : undefined;
}

/** The schema of the value at `path`; undefined where the path leads into what no schema describes. */
function schemaAt(schema: z.core.$ZodType, path: readonly PropertyKey[]): z.core.$ZodType | undefined {
  const [step, ...rest] = path;
  const here = unwrapped(schema);
  if (step === undefined) return here;
  const next = here instanceof z.ZodArray ? here.def.element : fieldsOf(here)?.get(String(step));
  return next === undefined ? undefined : schemaAt(next, rest);
}

/** Number of inserted, removed, replaced or swapped neighbouring characters that make `a` into `b`. */
function editDistance(a: string, b: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const steps = [(last[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1), (last[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1];
      const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      if (swapped) steps.push((beforeLast[j - 2] ?? 0) + 1);
      row.push(Math.min(...steps));
    }
    beforeLast = last;
    last = row;
  }
  return last[b.length] ?? 0;
}

/**
 * The candidate that was probably meant by `name`: the nearest one, case aside, at most a third of its letters away.
 * Undefined when none is that near.
 */
export function closestName(name: string, candidates: readonly string[]): string | undefined {
  const ranked = candidates
    .map((candidate) => ({ candidate, distance: editDistance(name.toLowerCase(), candidate.toLowerCase()) }))
    .filter(({ candidate, distance }) => distance <= Math.floor(candidate.length / 3))
    .sort((a, b) => a.distance - b.distance);
  return ranked[0]?.candidate;
}

/** Where in the schema, at any depth outside lists, an object has the key `key`; outer places first. */
function placesOf(schema: z.core.$ZodType, key: string, path = ''): string[] {
  const fields = fieldsOf(schema);
  if (fields === undefined) return [];
  const deeper = [...fields].flatMap(([name, child]) => placesOf(child, key, `${path}${name}.`));
  return fields.has(key) ? [`${path}${key}`, ...deeper] : deeper;
}

/** The top-level keys of an Ignition config; people write them one level too high. */
const IGNITION_SECTIONS = ['ignition', 'storage', 'systemd', 'passwd', 'networkd'];

/** One clause for the person who wrote the unknown key `key` at `path`: that it is unknown, and what may be meant. */
export function explainUnknownKey(schema: z.ZodType, path: readonly PropertyKey[], key: string): string {
  const place = schemaAt(schema, path);
  const allowed = [...((place && fieldsOf(place))?.keys() ?? [])];
  const near = closestName(key, allowed);
  if (near !== undefined) return `unknown key; did you mean "${near}"?`;
  const carriesIgnition = schemaAt(schema, ['spec', 'config']) !== undefined;
  if (carriesIgnition && IGNITION_SECTIONS.includes(key)) return 'unknown key; it belongs in spec.config';
  const elsewhere = placesOf(schema, key).find((name) => name.startsWith('spec.') || name.startsWith('metadata.'));
  if (elsewhere !== undefined) return `unknown key; did you mean ${elsewhere}?`;
  return `unknown key; known here: ${allowed.join(', ')}`;
}
