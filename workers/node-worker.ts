import { setTimeout as sleep } from 'node:timers/promises';
import type { MetricMeter } from '@temporalio/common';
import { Worker, type NativeConnection } from '@temporalio/worker';
import type { Logger } from 'pino';
import { createNodeActivities } from '../activities/node/activities.js';
import { startCertificateKeeper } from '../activities/node/certificates.js';
import type { NodeDependencies } from '../activities/node/dependencies.js';
import { startDriftMonitor } from '../activities/node/drift.js';
import { createNodeEvents } from '../activities/node/events.js';
import { createNodeMetrics } from '../activities/node/metrics.js';
import { DEFAULT_GUARD_TIMES, type Probes } from '../activities/node/guard.js';
import { keepRegistered } from '../activities/node/keep-registered.js';
import { NodeMemory } from '../activities/node/node-memory.js';
import { registerNode } from '../activities/node/register.js';
import { irreconcilable } from '../activities/node/irreconcilable.js';
import { openStateStore } from '../activities/host/state-store.js';
import type { Host } from '../activities/host/host.js';
import type { KubernetesClient } from '../activities/kubernetes/client.js';
import type { ApiFlavour } from '../machine-config/api/flavour.js';
import type { OwnPod } from '../machine-config/drain/drain-pods.js';
import { verifyRenderedName } from '../machine-config/render/name.js';
import type { NodeActivities } from '../workflows/contract/activities.js';
import { nodeTaskQueue } from '../workflows/contract/ids.js';
import { runNodeGuard } from './node-guard.js';
import { VERSION } from './version.js';

/** Of the worker, as it is written on the Node. */
export const NODE_WORKER_VERSION = VERSION;

/**
 * Two: an attempt that Temporal has given up, and that still hangs, must not keep the next one from starting; the host's
 * lock keeps them apart.
 */
const ACTIVITIES_AT_ONCE = 2;
/** How soon a cancellation reaches an activity that heartbeats. */
const HEARTBEAT_EVERY = '5s';
/** A shutdown lets a running apply finish. */
const DEFAULT_GRACE_SECONDS = 60;
const RESTART_DELAY_MS = 1_000;

/** How long a node waits before it helps itself, and how often it looks; in seconds, 0 turns each off. */
export interface NodeTimes {
  readonly probationSeconds: number;
  readonly selfUncordonSeconds: number;
  readonly idleCordonSeconds: number;
  readonly scanSeconds: number;
}

export interface NodeWorkerOptions {
  readonly node: string;
  readonly clusterUid: string;
  readonly flavour: ApiFlavour;
  readonly client: KubernetesClient;
  readonly host: Host;
  /** Or how to connect, which may last as long as Temporal is away. */
  readonly connection: NativeConnection | (() => Promise<NativeConnection>);
  readonly namespace: string;
  readonly logger: Logger;
  /** By which Temporal knows this worker; default `node/<node>`. */
  readonly identity?: string;
  /** Absent: a host that is played, which nobody guards. */
  readonly times?: NodeTimes;
  /** Of the process; absent: nothing is measured. */
  readonly meter?: MetricMeter;
  /** How long a shutdown waits for running steps; default 60. */
  readonly graceSeconds?: number;
  /** The end is near: it ends the waiting at the start, and a change of the host that is under way is put back. */
  readonly signal?: AbortSignal;
  /** What the guard of a real host looks at; absent: the node is left to the engine alone. */
  readonly probes?: Probes;
  /** The pod that this worker runs in; absent: it is a service of the host. */
  readonly ownPod?: OwnPod;
  /** How often it looks whether its Node still knows this worker; default 5 minutes. */
  readonly registrationEveryMs?: number;
  /** For simulated hosts, which stop to answer when they go down. */
  readonly wrap?: (activities: NodeActivities) => NodeActivities;
}

export interface RunningNodeWorker {
  /** Settles when the worker has stopped. */
  readonly finished: Promise<void>;
  /** Takes no more tasks; running ones get their grace. */
  stop(): void;
}

export function nodeDependencies(options: NodeWorkerOptions): NodeDependencies {
  const { node, clusterUid, flavour, client, host, meter, logger, signal, ownPod } = options;
  const now = () => new Date();
  const onError = (err: unknown) => logger.debug({ err, node }, 'an Event could not be written');
  return {
    node,
    clusterUid,
    flavour,
    client,
    host,
    store: openStateStore(host.root),
    version: NODE_WORKER_VERSION,
    now,
    hasItsName: verifyRenderedName,
    irreconcilable: (old, next) => irreconcilable(old, next, flavour.sshUser),
    memory: new NodeMemory(),
    events: createNodeEvents({ client, node, now, onError }),
    ...(signal === undefined ? {} : { stopping: signal }),
    ...(ownPod === undefined ? {} : { ownPod }),
    ...(meter === undefined ? {} : { metrics: createNodeMetrics(meter, flavour, node) }),
  };
}

/**
 * Registers the node, which waits for its Node and the API server, then serves its queue until stopped; a worker that
 * fails is replaced by a new one. Resolves once it polls. Rejects only if the signal ends the waiting.
 */
export async function startNodeWorker(options: NodeWorkerOptions): Promise<RunningNodeWorker> {
  const { node, logger, signal } = options;
  const deps = nodeDependencies(options);
  const activities = (options.wrap ?? ((same) => same))(createNodeActivities(deps));
  const guard = startGuard(options, deps);
  const onRetry = (err: unknown, delayMs: number) =>
    logger.warn({ err, node, delayMs }, 'registration failed; trying again');
  await registerNode(deps, { ...(signal === undefined ? {} : { signal }), onRetry });
  const drift = options.times && startDriftMonitor(deps, { scanSeconds: options.times.scanSeconds, signal, logger });
  const certificates = options.times && startCertificateKeeper(deps, { signal, logger });
  const connection = typeof options.connection === 'function' ? await options.connection() : options.connection;
  let worker = await createWorker({ ...options, connection }, activities);
  let isStopped = false;
  const serving = new AbortController();
  // Not awaited at the end: on a machine that has lost its power its read of the Node hangs for ever.
  void keepRegistered(deps, {
    signal: AbortSignal.any([serving.signal, ...(signal ? [signal] : [])]),
    onRetry,
    ...(options.registrationEveryMs === undefined ? {} : { everyMs: options.registrationEveryMs }),
  });

  async function serve(): Promise<void> {
    for (;;) {
      try {
        await worker.run();
        return;
      } catch (err) {
        if (isStopped) return;
        logger.error({ err, node }, 'the worker failed; starting another');
        await sleep(RESTART_DELAY_MS);
        worker = await createWorker({ ...options, connection }, activities);
      }
    }
  }

  return {
    finished: serve().finally(async () => {
      guard.abort();
      serving.abort();
      await drift?.stop();
      await certificates?.stop();
    }),
    stop() {
      isStopped = true;
      if (worker.getState() === 'RUNNING') worker.shutdown();
    },
  };
}

/** Before anything that waits for Temporal or the API server, since it is there for the time without them. */
function startGuard({ probes, times, logger, signal }: NodeWorkerOptions, deps: NodeDependencies): AbortController {
  const stopping = new AbortController();
  if (probes !== undefined) {
    const signals = signal === undefined ? stopping.signal : AbortSignal.any([stopping.signal, signal]);
    void runNodeGuard({ deps, probes, times: { ...DEFAULT_GUARD_TIMES, ...times }, logger, signal: signals });
  }
  return stopping;
}

function createWorker(
  options: NodeWorkerOptions & { readonly connection: NativeConnection },
  activities: NodeActivities,
): Promise<Worker> {
  const { node, connection, namespace } = options;
  return Worker.create({
    connection,
    namespace,
    identity: options.identity ?? `node/${node}`,
    taskQueue: nodeTaskQueue(node),
    activities,
    maxConcurrentActivityTaskExecutions: ACTIVITIES_AT_ONCE,
    maxConcurrentActivityTaskPolls: 1,
    maxHeartbeatThrottleInterval: HEARTBEAT_EVERY,
    defaultHeartbeatThrottleInterval: HEARTBEAT_EVERY,
    shutdownGraceTime: `${options.graceSeconds ?? DEFAULT_GRACE_SECONDS}s`,
  });
}
