import { hostname } from 'node:os';
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
  ownNode: setting(
    'DRYDOCK_NODE_NAME',
    optionalText,
    'the Node that this worker itself runs on, which is updated last of the control plane',
  ),
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
          statusSeconds: seconds,
        }),
      ),
    'times of the pool workflows as a JSON object, in seconds',
  ),
  metricsAddress: setting(
    'DRYDOCK_METRICS_ADDRESS',
    optionalText,
    'where Prometheus finds the metrics of the pools and a probe the health, host:port',
  ),
  temporalMetricsAddress: setting(
    'DRYDOCK_TEMPORAL_METRICS_ADDRESS',
    optionalText,
    "where Prometheus finds the metrics of Temporal's SDK, host:port",
  ),
  watchDelayMs: setting(
    'DRYDOCK_WATCH_DELAY_MS',
    z.coerce.number().int().nonnegative().default(0),
    'shows every change to the watches this much later, for tests',
  ),
};

/** A host's name may have capitals, a Node's may not. */
const nodeName = z
  .string()
  .min(1)
  .default(() => hostname())
  .transform((name) => name.toLowerCase());
/** A whole number of seconds that may be 0, which turns off what it is for. */
const wholeSeconds = (byDefault: number) =>
  z
    .string()
    .regex(/^\d{1,7}$/, 'is not a whole number of seconds')
    .default(String(byDefault))
    .transform(Number);

/** The worker of one node. */
export const NODE_SETTINGS = {
  node: setting('DRYDOCK_NODE_NAME', nodeName, 'the name of the Node that this worker runs on'),
  nodeKubeconfig: setting('DRYDOCK_KUBECONFIG', optionalText, "the file with the node's own identity"),
  root: setting('DRYDOCK_ROOT', z.string().startsWith('/').default('/'), "the folder that is the host's root"),
  clusterUid: setting('DRYDOCK_CLUSTER_UID', text, 'the uid of the namespace kube-system'),
  sshAccount: setting('DRYDOCK_SSH_USER', optionalText, "the account of this host that gets the config's SSH keys"),
  osBackend: setting(
    'DRYDOCK_OS_BACKEND',
    z.enum(['auto', 'none', 'bootc', 'rpm-ostree', 'grub', 'grubby']).default('auto'),
    'what changes kernel arguments and the image of this host',
  ),
  podName: setting('DRYDOCK_POD_NAME', optionalText, 'the pod that this worker runs in, which a drain leaves alone'),
  podNamespace: setting('DRYDOCK_POD_NAMESPACE', optionalText, 'the namespace of that pod'),
  metricsAddress: setting('DRYDOCK_METRICS_ADDRESS', optionalText, 'where Prometheus finds the metrics, host:port'),
  probationSeconds: setting(
    'DRYDOCK_PROBATION_SECONDS',
    wholeSeconds(1_200),
    'how long after a reboot an unhealthy node undoes its update by itself; 0: never',
  ),
  selfUncordonSeconds: setting(
    'DRYDOCK_SELF_UNCORDON_SECONDS',
    wholeSeconds(300),
    'after how long without Temporal a node with a complete update lifts its own cordon; 0: never',
  ),
  idleCordonSeconds: setting(
    'DRYDOCK_IDLE_CORDON_SECONDS',
    wholeSeconds(900),
    'after how long a node that is cordoned with nothing applied lifts its own cordon; 0: never',
  ),
  scanSeconds: setting(
    'DRYDOCK_SCAN_SECONDS',
    wholeSeconds(300),
    'how often everything managed is compared with the disk; 0: only when something is seen to change',
  ),
};

/** What systemd tells a service of itself. */
export const SERVICE_SETTINGS = {
  notifySocket: setting('NOTIFY_SOCKET', optionalText, 'where systemd hears of the state of the service'),
  watchdogMicroseconds: setting(
    'WATCHDOG_USEC',
    z.coerce.number().int().positive().optional(),
    'how long the service may be silent, in microseconds',
  ),
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
