import { WorkflowNotFoundError, type Client } from '@temporalio/client';
import { Worker, type NativeConnection, type WorkerOptions } from '@temporalio/worker';
import { setMaxListeners } from 'node:events';
import { hostname } from 'node:os';
import type { Logger } from 'pino';
import type {
  MachineConfigResource,
  MachineConfigurationResource,
  NodeResource,
  PoolResource,
  RunningUpdates,
} from '../activities/cluster/control-dependencies.js';
import { createControlActivities } from '../activities/cluster/create-control-activities.js';
import {
  hintsOfMachineConfig,
  hintsOfMachineConfiguration,
  hintsOfNode,
  hintsOfPool,
} from '../activities/cluster/pool-hints.js';
import type { ControllerConfigResource } from '../activities/cluster/controller-config.js';
import type { SourceResource } from '../activities/cluster/source.js';
import { CLUSTER_MEMO } from '../activities/cluster/signal-pool.js';
import { removeStartupTaints } from '../activities/cluster/startup-taint.js';
import { removeLeftTaints } from '../activities/cluster/waiting-taints.js';
import { KINDS, type KubernetesClient, type KubernetesObject } from '../activities/kubernetes/client.js';
import { failedWith } from '../activities/kubernetes/failures.js';
import { WatchCache } from '../activities/kubernetes/watch-cache.js';
import { CONTROLLER_CONFIG_NAME } from '../machine-config/api/controller-config.js';
import type { ApiFlavour, ResourceKind } from '../machine-config/api/flavour.js';
import { IMAGE_DIGEST_MIRROR_SET, IMAGE_TAG_MIRROR_SET } from '../machine-config/api/image-mirrors.js';
import { DEFAULT_STARTUP_TAINT } from '../machine-config/pool/startup-taint.js';
import { CONTROL_TASK_QUEUE, updateNodeId } from '../workflows/contract/ids.js';
import type { PoolTuning } from '../workflows/contract/inputs.js';
import { serveAdmission, type AdmissionWebhook, type AdmissionWebhookOptions } from './admission-webhook.js';
import { ensureBootstrapTokenKept } from './bootstrap-token.js';
import { controlReports } from './control-reports.js';
import { controlStatus } from './control-status.js';
import { PoolSignaller } from './pool-signaller.js';
import { SourceSignaller } from './source-signaller.js';
import { hintOfSources } from './source-watches.js';
import { watchTemplates } from './template-watch.js';
import { serveStatus, type StatusServer, type StatusSource } from './status-server.js';

/**
 * Every control worker starts and tells every pool's workflow this often. This, not a timer inside Temporal, is what
 * sets things going again after Temporal lost its data.
 */
const REPEAT_MILLISECONDS = 5 * 60_000;

export interface ControlWorkerOptions {
  readonly kubernetes: KubernetesClient;
  readonly flavour: ApiFlavour;
  /** For the workflows and activities. */
  readonly connection: NativeConnection;
  /** For signals and describe, on the same namespace. */
  readonly temporal: Client;
  readonly workflows: Pick<WorkerOptions, 'workflowBundle' | 'workflowsPath'>;
  readonly tuning: PoolTuning;
  readonly logger: Logger;
  /** The Node that this process runs on, if it runs in a pod. */
  readonly ownNode?: string;
  /** Where metrics and health are served, `host:port`; absent: nowhere. */
  readonly metricsAddress?: string;
  /** Where the API server asks about changes, and with which key and certificate; absent: it does not. */
  readonly webhook?: Pick<AdmissionWebhookOptions, 'address' | 'keyFile' | 'certificateFile'>;
  /** Key of the taint that nodes lose once they are configured; default: `drydock/not-configured`. */
  readonly startupTaint?: string;
  /** Shows every change to the watches this much later; for tests of lagging watches. */
  readonly watchDelayMs?: number;
}

export interface ControlWorker {
  /** Resolves when the worker has stopped; rejects when it failed. */
  readonly finished: Promise<void>;
  stop(): void;
}

/**
 * Starts the watches, the signals and the worker for workflows and cluster activities. Resolves once the watches have
 * seen everything and the worker polls.
 *
 * @throws when another cluster's workflows use the same Temporal namespace.
 */
export async function startControlWorker(options: ControlWorkerOptions): Promise<ControlWorker> {
  const { kubernetes, flavour, connection, temporal, tuning, logger } = options;
  const cluster = await readClusterUid(kubernetes);
  await refuseBesideOtherCluster(temporal, cluster);

  const watching = new AbortController();
  // Every watch listens to it, which is no leak however many there are.
  setMaxListeners(0, watching.signal);
  const broken = (err: unknown, watch: string) => logger.warn({ err, watch }, 'A watch broke and is begun again');
  const cache = <T extends KubernetesObject>(resource: ResourceKind, onError = broken) =>
    new WatchCache<T>(kubernetes, resource, {
      signal: watching.signal,
      delayMs: options.watchDelayMs ?? 0,
      onError: (error) => onError(error, resource.plural),
    });
  const nodes = cache<NodeResource>(KINDS.node);
  const pools = cache<PoolResource>(flavour.machineConfigPool);
  const machineConfigs = cache<MachineConfigResource>(flavour.machineConfig);
  // A cluster need not have these kinds: nobody waits for them, and their absence is no news.
  const optional = <T extends KubernetesObject>(resource: ResourceKind) =>
    cache<T>(resource, (error, watch) => {
      if (!failedWith(error, 'NotFound')) broken(error, watch);
    });
  const configurations = optional<MachineConfigurationResource>(flavour.machineConfiguration);
  const controllerConfigs = optional<ControllerConfigResource>(flavour.controllerConfig);
  const sources = new Map([
    ['KubeletConfig' as const, optional<SourceResource>(flavour.kubeletConfig)],
    ['ContainerRuntimeConfig' as const, optional<SourceResource>(flavour.containerRuntimeConfig)],
  ]);
  const mirrorSets = [IMAGE_DIGEST_MIRROR_SET, IMAGE_TAG_MIRROR_SET].map((kind) => optional<SourceResource>(kind));

  let worker: Worker | undefined;
  let server: StatusServer | undefined;
  let webhook: AdmissionWebhook | undefined;
  try {
    const status = controlStatus({ flavour, nodes, pools, workerState: () => worker?.getState(), now: Date.now });
    server = await served(options, status);
    await Promise.all([nodes.synced(), pools.synced(), machineConfigs.synced()]);
    webhook = await judged(options, () => ({
      flavour,
      nodes: nodes.list().map(({ metadata }) => ({ name: metadata.name, labels: metadata.labels ?? {} })),
      pools: pools.list(),
      machineConfigs: machineConfigs.list(),
      controllerConfig: controllerConfigs.get(CONTROLLER_CONFIG_NAME),
    }));
    const running = await Worker.create({
      connection,
      namespace: temporal.options.namespace,
      taskQueue: CONTROL_TASK_QUEUE,
      ...options.workflows,
      activities: createControlActivities({
        client: kubernetes,
        flavour,
        cluster,
        nodes,
        pools,
        configs: machineConfigs,
        configurations,
        controllerConfigs,
        ...(options.ownNode === undefined ? {} : { ownNode: options.ownNode }),
        updates: runningUpdates(temporal),
        ...controlReports({
          client: kubernetes,
          flavour,
          nodes,
          pools,
          now: Date.now,
          instance: hostname(),
          logger,
        }),
        now: Date.now,
      }),
      shutdownGraceTime: '20s',
    });
    worker = running;
    const signaller = new PoolSignaller({ client: temporal, cluster, tuning, logger });
    const everyPool = () =>
      signaller.hint(pools.list().map(({ metadata }) => ({ pool: metadata.name, what: 'config' as const })));
    nodes.onChange((change) => signaller.hint(hintsOfNode(change, pools.list(), flavour)));
    pools.onChange((change) => signaller.hint(hintsOfPool(change)));
    machineConfigs.onChange((change) => signaller.hint(hintsOfMachineConfig(change, pools.list())));
    configurations.onChange((change) => signaller.hint(hintsOfMachineConfiguration(change, pools.list())));
    const sourceSignaller = new SourceSignaller({ client: temporal, cluster, tuning, logger });
    const everySource = hintOfSources({ pools, machineConfigs, controllerConfigs, mirrorSets, sources }, (kind) =>
      sourceSignaller.hint(kind),
    );
    const templates = watchTemplates({
      client: kubernetes,
      source: () => controllerConfigs.get(CONTROLLER_CONFIG_NAME)?.spec.templates,
      onChange: () => sourceSignaller.hint('ControllerConfig'),
      logger,
    });
    const { startupTaint: taint = DEFAULT_STARTUP_TAINT } = options;
    const untaint = (some: readonly NodeResource[]) =>
      void removeStartupTaints(some, { client: kubernetes, flavour, pools, taint });
    nodes.onChange(({ type, object }) => type !== 'DELETED' && untaint([object]));
    const keepToken = () => void ensureBootstrapTokenKept({ kubernetes, temporal, cluster, logger });
    everyPool();
    everySource();
    keepToken();
    untaint(nodes.list());
    const repeat = setInterval(() => {
      everyPool();
      everySource();
      keepToken();
      untaint(nodes.list());
      void removeLeftTaints({ client: kubernetes, flavour, nodes, pools });
    }, REPEAT_MILLISECONDS);
    const finished = running.run().finally(() => {
      clearInterval(repeat);
      signaller.stop();
      sourceSignaller.stop();
      templates.stop();
      server?.close();
      webhook?.close();
      watching.abort();
    });
    return {
      finished,
      stop: () => {
        if (running.getState() === 'RUNNING') running.shutdown();
      },
    };
  } catch (error) {
    server?.close();
    webhook?.close();
    watching.abort();
    throw error;
  }
}

async function served(
  { metricsAddress, logger }: ControlWorkerOptions,
  source: StatusSource,
): Promise<StatusServer | undefined> {
  if (metricsAddress === undefined) return undefined;
  const server = await serveStatus(metricsAddress, source);
  logger.info({ url: server.url }, 'Metrics and health are served');
  return server;
}

async function judged(
  { webhook, logger }: ControlWorkerOptions,
  context: AdmissionWebhookOptions['context'],
): Promise<AdmissionWebhook | undefined> {
  if (webhook === undefined) return undefined;
  const served = await serveAdmission({ ...webhook, context, logger });
  logger.info({ url: served.url }, 'The API server can ask about changes');
  return served;
}

async function readClusterUid(kubernetes: KubernetesClient): Promise<string> {
  const { metadata } = await kubernetes.get(KINDS.namespace, { name: 'kube-system' });
  if (metadata.uid === undefined)
    throw new Error('The namespace kube-system has no uid: is this a Kubernetes API server?');
  return metadata.uid;
}

async function refuseBesideOtherCluster(temporal: Client, cluster: string): Promise<void> {
  const query = 'WorkflowType = "managePool" AND ExecutionStatus = "Running"';
  for await (const { workflowId, memo } of temporal.workflow.list({ query })) {
    const theirs = memo?.[CLUSTER_MEMO];
    if (theirs === undefined || theirs === cluster) continue;
    throw new Error(
      `The Temporal namespace ${temporal.options.namespace} is used by the Kubernetes cluster ${JSON.stringify(theirs)} ` +
        `(workflow ${workflowId}), this is ${cluster}: give each cluster a namespace of its own`,
    );
  }
}

function runningUpdates(temporal: Client): RunningUpdates {
  return {
    async isRunning(node, runId) {
      const handle = temporal.workflow.getHandle(updateNodeId(node), runId === '' ? undefined : runId);
      try {
        return (await handle.describe()).status.name === 'RUNNING';
      } catch (error) {
        if (error instanceof WorkflowNotFoundError) return false;
        throw error;
      }
    },
  };
}
