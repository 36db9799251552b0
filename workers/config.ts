import { z } from 'zod';
import { FLAVOUR_NAMES } from '../machine-config/api/flavour.js';

/** One value of the environment. */
export interface Setting<T> {
  readonly variable: string;
  readonly schema: z.ZodType<T>;
  /** For the error message: what it is. */
  readonly means: string;
  /** Never printed. */
  readonly isSecret?: boolean;
}

type Settings = Readonly<Record<string, Setting<unknown>>>;
type Values<S extends Settings> = { readonly [K in keyof S]: S[K] extends Setting<infer T> ? T : never };

/** The environment is not as the process needs it; one line a variable. */
export class EnvironmentError extends Error {
  override readonly name = 'EnvironmentError';
}

function setting<T>(variable: string, schema: z.ZodType<T>, means: string): Setting<T> {
  return { variable, schema, means };
}

const text = z.string().min(1);
const optionalText = z.string().min(1).optional();

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
  kubeconfig: setting('DRYDOCK_KUBECONFIG', optionalText, 'the file with the API server and the identity to use'),
};

const seconds = z.number().nonnegative().exactOptional();

/** The control worker. */
export const CONTROL_SETTINGS = {
  tuning: setting(
    'DRYDOCK_TUNING',
    z
      .string()
      .default('{}')
      .transform((json, context): unknown => {
        try {
          return JSON.parse(json);
        } catch {
          context.addIssue('is not JSON');
          return z.NEVER;
        }
      })
      .pipe(
        z.strictObject({
          debounceSeconds: seconds,
          turnSeconds: seconds,
          tickSeconds: seconds,
          restSeconds: seconds,
          settleSeconds: seconds,
        }),
      ),
    'times of the pool workflows as a JSON object, in seconds',
  ),
  watchDelayMs: setting(
    'DRYDOCK_WATCH_DELAY_MS',
    z.coerce.number().int().nonnegative().default(0),
    'shows every change to the watches this much later, for tests',
  ),
};

/** The worker of one node. */
export const NODE_SETTINGS = {
  node: setting('DRYDOCK_NODE_NAME', text, 'the name of the Node that this worker runs on'),
  nodeKubeconfig: setting('DRYDOCK_KUBECONFIG', text, "the file with the node's own identity"),
  root: setting('DRYDOCK_ROOT', z.string().startsWith('/').default('/'), "the folder that is the host's root"),
  clusterUid: setting('DRYDOCK_CLUSTER_UID', text, 'the uid of the namespace kube-system'),
};

/** The simulated fleet. */
export const FLEET_SETTINGS = {
  fleetFile: setting('DRYDOCK_FLEET_FILE', text, 'the JSON file that describes the fleet'),
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
