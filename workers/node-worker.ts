import { setTimeout as sleep } from 'node:timers/promises';
import { Worker, type NativeConnection } from '@temporalio/worker';
import type { Logger } from 'pino';
import { createNodeActivities } from '../activities/node/activities.js';
import type { NodeDependencies } from '../activities/node/dependencies.js';
import { registerNode } from '../activities/node/register.js';
import { irreconcilable } from '../activities/node/irreconcilable.js';
import { openStateStore } from '../activities/host/state-store.js';
import type { Host } from '../activities/host/host.js';
import type { KubernetesClient } from '../activities/kubernetes/client.js';
import type { ApiFlavour } from '../machine-config/api/flavour.js';
import { verifyRenderedName } from '../machine-config/render/name.js';
import type { NodeActivities } from '../workflows/contract/activities.js';
import { nodeTaskQueue } from '../workflows/contract/ids.js';

/** Of the worker, as it is written on the Node. */
export const NODE_WORKER_VERSION = '0.1.0';

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

export interface NodeWorkerOptions {
  readonly node: string;
  readonly clusterUid: string;
  readonly flavour: ApiFlavour;
  readonly client: KubernetesClient;
  readonly host: Host;
  readonly connection: NativeConnection;
  readonly namespace: string;
  readonly logger: Logger;
  /** How long a shutdown waits for running steps; default 60. */
  readonly graceSeconds?: number;
  /** Ends the waiting at the start. */
  readonly signal?: AbortSignal;
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
  const { node, clusterUid, flavour, client, host } = options;
  return {
    node,
    clusterUid,
    flavour,
    client,
    host,
    store: openStateStore(host.root),
    version: NODE_WORKER_VERSION,
    now: () => new Date(),
    hasItsName: verifyRenderedName,
    irreconcilable: (old, next) => irreconcilable(old, next, flavour.sshUser),
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
  await registerNode(deps, {
    ...(signal === undefined ? {} : { signal }),
    onRetry: (err, delayMs) => logger.warn({ err, node, delayMs }, 'registration failed; trying again'),
  });
  let worker = await createWorker(options, activities);
  let isStopped = false;

  async function serve(): Promise<void> {
    for (;;) {
      try {
        await worker.run();
        return;
      } catch (err) {
        if (isStopped) return;
        logger.error({ err, node }, 'the worker failed; starting another');
        await sleep(RESTART_DELAY_MS);
        worker = await createWorker(options, activities);
      }
    }
  }

  return {
    finished: serve(),
    stop() {
      isStopped = true;
      if (worker.getState() === 'RUNNING') worker.shutdown();
    },
  };
}

function createWorker(options: NodeWorkerOptions, activities: NodeActivities): Promise<Worker> {
  const { node, connection, namespace } = options;
  return Worker.create({
    connection,
    namespace,
    identity: `node/${node}`,
    taskQueue: nodeTaskQueue(node),
    activities,
    maxConcurrentActivityTaskExecutions: ACTIVITIES_AT_ONCE,
    maxConcurrentActivityTaskPolls: 1,
    maxHeartbeatThrottleInterval: HEARTBEAT_EVERY,
    defaultHeartbeatThrottleInterval: HEARTBEAT_EVERY,
    shutdownGraceTime: `${options.graceSeconds ?? DEFAULT_GRACE_SECONDS}s`,
  });
}
