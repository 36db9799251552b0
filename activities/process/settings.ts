import { z } from 'zod';
import { FLAVOUR_NAMES } from '../../machine-config/api/flavour.js';

/** One value of the environment. */
export interface Setting<T> {
  readonly variable: string;
  readonly schema: z.ZodType<T>;
  /** For the error message: what it is. */
  readonly means: string;
  /** Never printed. */
  readonly isSecret?: boolean;
}

export type Settings = Readonly<Record<string, Setting<unknown>>>;
export type Values<S extends Settings> = { readonly [K in keyof S]: S[K] extends Setting<infer T> ? T : never };

/** The environment is not as the process needs it; one line a variable. */
export class EnvironmentError extends Error {
  override readonly name = 'EnvironmentError';
}

export function setting<T>(variable: string, schema: z.ZodType<T>, means: string): Setting<T> {
  return { variable, schema, means };
}

/** Every process. */
export const LOG_SETTINGS = {
  logLevel: setting(
    'DRYDOCK_LOG_LEVEL',
    z.enum(['trace', 'debug', 'info', 'warn', 'error']).default('info'),
    'the least severe level that is logged',
  ),
};

/** Every process that speaks to Kubernetes. */
export const CLUSTER_SETTINGS = {
  flavour: setting('DRYDOCK_FLAVOUR', z.enum(FLAVOUR_NAMES).default('openshift'), 'the flavour of the API'),
  kubeconfig: setting(
    'DRYDOCK_KUBECONFIG',
    z.string().min(1).optional(),
    'the file with the API server and the identity to use',
  ),
};

/**
 * Reads the settings from the environment, the only place where it is read. An empty variable counts as unset.
 * Throws EnvironmentError, which names every wrong variable.
 */
export function parseEnvironment<S extends Settings>(settings: S, environment = process.env): Values<S> {
  const problems: string[] = [];
  const values: Record<string, unknown> = {};
  for (const [key, { variable, schema, means }] of Object.entries(settings)) {
    const raw = environment[variable];
    const parsed = schema.safeParse(raw === '' ? undefined : raw);
    if (parsed.success) values[key] = parsed.data;
    else
      problems.push(
        `${variable} (${means}): ${raw ? z.prettifyError(parsed.error).replace(/\s+/g, ' ') : 'is not set'}`,
      );
  }
  if (problems.length > 0) throw new EnvironmentError(problems.join('\n'));
  return values as Values<S>;
}

/** The values as they may be logged. */
export function redacted(settings: Settings, values: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(values).map(([key, value]) => [key, settings[key]?.isSecret === true ? '(set)' : value]),
  );
}
