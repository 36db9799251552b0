import { hostname } from 'node:os';
import { z } from 'zod';
import { setting } from '../activities/process/settings.js';
import { DEFAULT_STARTUP_TAINT } from '../machine-config/pool/startup-taint.js';

export {
  CLUSTER_SETTINGS,
  EnvironmentError,
  LOG_SETTINGS,
  parseEnvironment,
  redacted,
} from '../activities/process/settings.js';

const text = z.string().min(1);
const optionalText = z.string().min(1).optional();

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
  webhookAddress: setting(
    'DRYDOCK_WEBHOOK_ADDRESS',
    optionalText,
    'where the API server asks whether an object may be stored, host:port',
  ),
  webhookKeyFile: setting('DRYDOCK_WEBHOOK_KEY_FILE', optionalText, "the file with the webhook's key, in PEM"),
  webhookCertificateFile: setting(
    'DRYDOCK_WEBHOOK_CERTIFICATE_FILE',
    optionalText,
    "the file with the webhook's certificate, in PEM",
  ),
  temporalMetricsAddress: setting(
    'DRYDOCK_TEMPORAL_METRICS_ADDRESS',
    optionalText,
    "where Prometheus finds the metrics of Temporal's SDK, host:port",
  ),
  startupTaint: setting(
    'DRYDOCK_STARTUP_TAINT',
    z
      .string()
      .regex(/^drydock\/[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$/u, 'is not drydock/ and a name')
      .default(DEFAULT_STARTUP_TAINT),
    'key of the taint with which nodes come that are not configured yet; it is taken off once they are',
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
