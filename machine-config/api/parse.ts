import { z } from 'zod';
import { containerRuntimeConfigSchema, type ContainerRuntimeConfig } from './container-runtime-config.js';
import { controllerConfigSchema, type ControllerConfig } from './controller-config.js';
import {
  imageDigestMirrorSetSchema,
  imageTagMirrorSetSchema,
  type ImageDigestMirrorSet,
  type ImageTagMirrorSet,
} from './image-mirrors.js';
import { kubeletConfigSchema, type KubeletConfig } from './kubelet-config.js';
import { machineConfigPoolSchema, type MachineConfigPool } from './machine-config-pool.js';
import { machineConfigSchema, type MachineConfig } from './machine-config.js';
import { machineConfigurationSchema, type MachineConfiguration } from './machine-configuration.js';
import { explainUnknownKey, fieldsOf, unwrapped } from './unknown-key.js';

/** One thing that is wrong with an object. */
export interface Problem {
  /** `spec.maxUnavailable`, `spec.kernelArguments[0]`, `metadata.labels["a/b"]`; empty for the object itself. */
  readonly path: string;
  /** One line: what is wrong there, and what to write instead where that is known. */
  readonly message: string;
}

export type Parsed<T> =
  { readonly ok: true; readonly value: T } | { readonly ok: false; readonly problems: readonly Problem[] };

function formatPath(path: readonly PropertyKey[]): string {
  return path.reduce<string>((text, step) => {
    if (typeof step === 'number') return `${text}[${step}]`;
    const name = String(step);
    if (!/^[\w-]+$/.test(name)) return `${text}["${name}"]`;
    return text === '' ? name : `${text}.${name}`;
  }, '');
}

function isPlainObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * Leaves out every known key whose value is null, as the API server does when it stores an object: null and absent are
 * the same there. What no schema describes, such as an Ignition config, stays as it is.
 */
function withoutNulls(schema: z.core.$ZodType, value: unknown): unknown {
  const here = unwrapped(schema);
  if (here instanceof z.ZodArray && Array.isArray(value)) {
    return value.map((item) => withoutNulls(here.def.element, item));
  }
  const fields = fieldsOf(here);
  if (fields === undefined || !isPlainObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value)
      .map(([key, child]) => ({ key, child, field: fields.get(key) }))
      .filter(({ child, field }) => child !== null || field === undefined)
      .map(({ key, child, field }) => [key, field === undefined ? child : withoutNulls(field, child)]),
  );
}

function describe(value: unknown): string {
  if (Array.isArray(value)) return 'a list';
  if (isPlainObject(value)) return 'an object';
  // A long text may be a secret, and helps nobody.
  if (typeof value === 'string' && value.length > 40) return `a string of ${value.length} characters`;
  if (typeof value === 'string') return `the string ${JSON.stringify(value)}`;
  return typeof value === 'number' || typeof value === 'boolean' ? String(value) : 'null';
}

function valueAt(root: unknown, path: readonly PropertyKey[]): unknown {
  return path.reduce<unknown>((here, step) => {
    if (Array.isArray(here)) return here.at(Number(step)) as unknown;
    return isPlainObject(here) && Object.hasOwn(here, step) ? here[String(step)] : undefined;
  }, root);
}

const ARTICLES: Record<string, string> = {
  string: 'a string',
  number: 'a number',
  int: 'an integer',
  boolean: 'true or false',
  array: 'a list',
  object: 'an object',
  record: 'an object',
};

function explain(issue: z.core.$ZodIssue, root: unknown): string {
  const value = valueAt(root, issue.path);
  if (value === undefined && issue.code !== 'custom') return 'is missing';
  switch (issue.code) {
    case 'invalid_type':
      return `expected ${ARTICLES[issue.expected] ?? issue.expected}, found ${describe(value)}`;
    case 'invalid_value':
      return `expected ${issue.values.map((allowed) => JSON.stringify(allowed)).join(', ')}, found ${describe(value)}`;
    case 'too_big':
      return issue.origin === 'array' ? `has more than ${issue.maximum} entries` : issue.message;
    case 'invalid_union':
      return `${issue.message}, found ${describe(value)}`;
    default:
      return issue.message;
  }
}

function problemsOf(schema: z.ZodType, error: z.ZodError, root: unknown): Problem[] {
  return error.issues.flatMap((issue): Problem[] =>
    issue.code === 'unrecognized_keys'
      ? issue.keys.map((key) => ({
          path: formatPath([...issue.path, key]),
          message: explainUnknownKey(schema, issue.path, key),
        }))
      : [{ path: formatPath(issue.path), message: explain(issue, root) }],
  );
}

/** Reads a value by any schema: every key must be known, nulls count as absent. Never throws. */
export function parseStrictly<T>(schema: z.ZodType<T>, value: unknown): Parsed<T> {
  if (!isPlainObject(value)) {
    return { ok: false, problems: [{ path: '', message: `expected an object, found ${describe(value)}` }] };
  }
  const stored = withoutNulls(schema, value);
  const result = schema.safeParse(stored);
  return result.success
    ? { ok: true, value: result.data }
    : { ok: false, problems: problemsOf(schema, result.error, stored) };
}

/**
 * Reads a MachineConfig strictly: every key of metadata and spec must be known, nulls count as absent. The Ignition
 * config in `spec.config` is handed on unread. Never throws; all problems are returned.
 */
export function parseMachineConfig(value: unknown): Parsed<MachineConfig> {
  return parseStrictly(machineConfigSchema, value);
}

/** Reads a MachineConfigPool strictly, apart from its status: unknown keys there are left out. Never throws. */
export function parseMachineConfigPool(value: unknown): Parsed<MachineConfigPool> {
  return parseStrictly(machineConfigPoolSchema, value);
}

/** Reads a MachineConfiguration strictly, apart from its status: unknown keys there are left out. Never throws. */
export function parseMachineConfiguration(value: unknown): Parsed<MachineConfiguration> {
  return parseStrictly(machineConfigurationSchema, value);
}

/** Reads a KubeletConfig strictly, apart from its status. The kubelet's own fields in `spec.kubeletConfig` are handed on unread. */
export function parseKubeletConfig(value: unknown): Parsed<KubeletConfig> {
  return parseStrictly(kubeletConfigSchema, value);
}

/** Reads a ControllerConfig strictly, apart from its status. */
export function parseControllerConfig(value: unknown): Parsed<ControllerConfig> {
  return parseStrictly(controllerConfigSchema, value);
}

/** Reads a ContainerRuntimeConfig strictly, apart from its status. Limits that only code can check are not looked at. */
export function parseContainerRuntimeConfig(value: unknown): Parsed<ContainerRuntimeConfig> {
  return parseStrictly(containerRuntimeConfigSchema, value);
}

/** Reads an ImageDigestMirrorSet strictly. */
export function parseImageDigestMirrorSet(value: unknown): Parsed<ImageDigestMirrorSet> {
  return parseStrictly(imageDigestMirrorSetSchema, value);
}

/** Reads an ImageTagMirrorSet strictly. */
export function parseImageTagMirrorSet(value: unknown): Parsed<ImageTagMirrorSet> {
  return parseStrictly(imageTagMirrorSetSchema, value);
}
