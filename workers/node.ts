import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { Runtime, type NativeConnection } from '@temporalio/worker';
import type { Logger } from 'pino';
import { isLockedByThisProcess } from '../activities/host/lock.js';
import { runProgram } from '../activities/host/run-program.js';
import { createKubernetesClient } from '../activities/kubernetes/rest.js';
import type { ClusterSource } from '../activities/kubernetes/kubeconfig.js';
import { apiFlavour } from '../machine-config/api/flavour.js';
import {
  CLUSTER_SETTINGS,
  EnvironmentError,
  LOG_SETTINGS,
  NODE_SETTINGS,
  parseEnvironment,
  redacted,
  SERVICE_SETTINGS,
} from './config.js';
import { connectTemporal, temporalConfig } from './connection.js';
import { findNodeKubeconfig } from './credentials.js';
import { lastingMeter } from './lasting-meter.js';
import { openNodeHost } from './node-host.js';
import { NODE_WORKER_VERSION, startNodeWorker, type NodeWorkerOptions } from './node-worker.js';
import { markPolling, removePollingMark } from './polling-mark.js';
import { hostProbes } from './probes.js';
import { createLogger, installRuntime } from './runtime.js';
import { notifyServiceManager, type ServiceManager } from './systemd-notify.js';

const SETTINGS = { ...LOG_SETTINGS, flavour: CLUSTER_SETTINGS.flavour, ...NODE_SETTINGS, ...SERVICE_SETTINGS };
type Settings = ReturnType<typeof parseEnvironment<typeof SETTINGS>>;

/** Then waiting steps end, and are tried again by the next worker; one that changes the host puts it back. */
const CANCEL_AFTER_SECONDS = 1;
/** For the last answers to Temporal, which may be away. */
const GOODBYE_MS = 5_000;
/**
 * For putting back what is half-done. What still goes on then, such as a service that is slow to start with its old
 * files, is begun again at the next start. Less than the unit's TimeoutStopSec.
 */
const LONGEST_STOP_MS = 20_000;

/**
 * The worker of one node. `DRYDOCK_ROOT` is `/` for the machine in which it runs; another folder plays one, whose reboot
 * ends the process: whatever started it boots the folder and starts it again. Temporal by its usual environment.
 *
 * Neither Temporal nor the API server nor the kubelet's credentials need to be there at the start: they are waited for,
 * and what guards the node runs meanwhile.
 */
async function main(): Promise<void> {
  if (process.argv.includes('--version')) {
    process.stdout.write(`${NODE_WORKER_VERSION}\n`);
    return;
  }
  const settings = parseEnvironment(SETTINGS);
  // Played by a fleet: without it nobody would boot this machine again.
  if (process.send !== undefined) process.once('disconnect', () => process.exit(1));
  const logger = createLogger('drydock-node', settings.logLevel);
  const { metricsAddress } = settings;
  // Not the SDK's own signals: they would be heard by its workers only, and there may be none yet.
  installRuntime({ logger, shutdownSignals: [], ...(metricsAddress === undefined ? {} : { metricsAddress }) });
  logger.info({ ...redacted(SETTINGS, settings), version: NODE_WORKER_VERSION }, 'node worker starts');
  const stopping = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => stopping.abort());
  try {
    await Promise.race([serve(settings, logger, stopping.signal), endOfPatience(settings.root, stopping.signal)]);
  } catch (error) {
    if (!stopping.signal.aborted) throw error;
  }
  logger.info('node worker ends');
}

async function serve(settings: Settings, logger: Logger, signal: AbortSignal): Promise<void> {
  const { node, root } = settings;
  const isRealHost = root === '/';
  if (isRealHost) await removePollingMark(root);
  const manager = serviceManager(settings, logger);
  signal.addEventListener('abort', () => void manager.stopping());
  const kubeconfigs = new Set<string>();
  const ownKubeconfigs = () => [...kubeconfigs];
  const host = await openNodeHost({ ...settings, ownKubeconfigs, onDown: goDown });
  const identity = `node/${node}/${NODE_WORKER_VERSION}/${randomUUID().slice(0, 8)}`;
  const { namespace } = temporalConfig();
  const temporal = lazyConnection(logger, signal);
  const client = createKubernetesClient(clusterSource(settings, kubeconfigs));
  const starting = startNodeWorker({
    node,
    clusterUid: settings.clusterUid,
    flavour: apiFlavour(settings.flavour),
    client,
    ...(isRealHost ? { probes: hostProbes({ client, node, temporal: temporal.present }) } : {}),
    host,
    connection: temporal.connect,
    namespace,
    identity,
    logger,
    signal,
    graceSeconds: CANCEL_AFTER_SECONDS,
    times: settings,
    ...ownPodOf(settings),
    ...(settings.metricsAddress === undefined ? {} : { meter: lastingMeter(() => Runtime.instance().metricMeter) }),
  });
  starting.catch(() => undefined);
  await manager.ready();
  const worker = await starting;
  signal.addEventListener('abort', () => worker.stop());
  if (signal.aborted) worker.stop();
  if (isRealHost) {
    const connection = await temporal.connect();
    const onRetry = (err: unknown) => logger.debug({ err }, 'Temporal does not say yet that this worker polls');
    void markPolling({ root, node, version: NODE_WORKER_VERSION, identity, connection, namespace, signal, onRetry });
  }
  await worker.finished;
  manager.close();
}

/** The downward API tells both or neither. */
function ownPodOf({ podName, podNamespace }: Settings): Pick<NodeWorkerOptions, 'ownPod'> {
  if (podName === undefined || podNamespace === undefined) return {};
  return { ownPod: { name: podName, namespace: podNamespace } };
}

function serviceManager(settings: Settings, logger: Logger): ServiceManager {
  const { notifySocket, watchdogMicroseconds } = settings;
  return notifyServiceManager({
    ...(notifySocket === undefined ? {} : { socket: notifySocket }),
    ...(watchdogMicroseconds === undefined ? {} : { watchdogMicroseconds }),
    onError: (err) => logger.warn({ err }, 'systemd could not be told'),
  });
}

/** Where the API server is, by the kubelet's own kubeconfig unless one is named; `used` collects which. */
function clusterSource({ nodeKubeconfig, root }: Settings, used: Set<string>): ClusterSource {
  return {
    async findKubeconfig() {
      const path = nodeKubeconfig ?? (await findNodeKubeconfig({ root, run: runProgram }));
      used.add(path);
      return path;
    },
  };
}

interface LazyConnection {
  readonly connect: () => Promise<NativeConnection>;
  /** Undefined: there has been none yet. */
  readonly present: () => NativeConnection | undefined;
}

/** One connection, made when it is first needed. */
function lazyConnection(logger: Logger, signal: AbortSignal): LazyConnection {
  let connecting: Promise<NativeConnection> | undefined;
  let connected: NativeConnection | undefined;
  const onRetry = (err: unknown) => logger.warn({ err }, 'Temporal does not answer; trying again');
  const connect = async () => {
    connected = (await connectTemporal({}, { signal, onRetry })).connection;
    return connected;
  };
  return { connect: () => (connecting ??= connect()), present: () => connected };
}

/** After the signal: as long as a step is at work on the host, and no longer than the limit. */
async function endOfPatience(root: string, signal: AbortSignal): Promise<void> {
  if (!signal.aborted) await once(signal, 'abort');
  const asked = performance.now();
  const waited = () => performance.now() - asked;
  while (waited() < GOODBYE_MS || (waited() < LONGEST_STOP_MS && (await isLockedByThisProcess(root)))) await sleep(250);
}

/** A machine without power closes no connection and says goodbye to nobody. The parent, if any, hears why. */
function goDown(why: string): void {
  const stop = (signal: NodeJS.Signals) => process.kill(process.pid, signal);
  if (process.send === undefined) stop('SIGKILL');
  else process.send({ down: why }, undefined, {}, () => stop('SIGSTOP'));
}

try {
  await main();
  process.exit(0);
} catch (error) {
  const isWrongSetting = error instanceof EnvironmentError;
  process.stderr.write(`drydock-node: ${isWrongSetting || !(error instanceof Error) ? String(error) : error.stack}\n`);
  process.exit(1);
}
