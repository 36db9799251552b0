import { join } from 'node:path';
import { Client, Connection } from '@temporalio/client';
import pMap from 'p-map';
import { writeDurably } from '../../../activities/host/durable.js';
import { CURRENT_CONFIG_FILE } from '../../../activities/host/state-store.js';
import { createKubernetesClient } from '../../../activities/kubernetes/rest.js';
import { KINDS, type KubernetesClient, type KubernetesObject } from '../../../activities/kubernetes/client.js';
import { install } from '../../../client/install.js';
import { reportPool } from '../../../client/pool-report.js';
import { apiFlavour, DRYDOCK_ANNOTATIONS } from '../../../machine-config/api/flavour.js';
import type { MachineConfigPool } from '../../../machine-config/api/machine-config-pool.js';
import { startDrydock, type DrydockProcesses } from '../../drydock-processes.js';
import { auditLogOf } from '../../kubernetes/audit.js';
import type { Lab } from '../../lab.js';
import { waitUntil } from '../../processes/wait-until.js';
import type { Log } from '../../tools/cache.js';
import { readHistories, type Histories } from './histories.js';
import type { RolloutBenchOptions } from './options.js';
import { createPods } from './pods.js';
import { watchByName, watchProcesses, type ProcessUse } from './process-use.js';
import { countRequests, type RequestCounts } from './requests.js';

const flavour = apiFlavour('openshift');
const POOL = 'worker';
const ROLE_LABEL = 'node-role.kubernetes.io/worker';
const CONFIG = '60-bench';
/** Besides the step, a node needs what simulated machines take to go down in order. */
const GOING_DOWN_SECONDS = 1;
const NODES_PER_FLEET = 500;
const NODES_CREATED_AT_ONCE = 8;
/** Of each fleet. */
const STARTS_AT_ONCE = 4;
const REGISTRATION_EVERY_MS = 24 * 3_600_000;
const START_TIMEOUT_MS = 120_000;
/** Of registration, on a machine that has all of them on it. */
const SECONDS_PER_NODE = 0.5;
const LOOK_EVERY_MS = 2_000;
const LOOK_EVERY_MS_PER_NODE = 2;
/** Of an update with nothing to wait for, there. */
const UPDATE_SECONDS_PER_NODE = 2;

export interface ProductRun {
  readonly histories: Histories;
  readonly requests: RequestCounts;
  readonly control: ProcessUse;
  readonly fleet: ProcessUse;
  /** What the lab took for it, by name of the process. */
  readonly lab: ReadonlyMap<string, ProcessUse>;
}

/** Rolls one changed file out over simulated nodes that reboot, through the product's own processes. */
export async function measureProduct(lab: Lab, options: RolloutBenchOptions, log: Log): Promise<ProductRun> {
  const client = createKubernetesClient(
    { kubeconfigPath: lab.kubernetes.kubeconfigPath },
    { userAgent: 'drydock-bench', timeoutSeconds: 60 },
  );
  const connection = await Connection.connect({ address: lab.temporal.address });
  try {
    const names = Array.from({ length: options.nodes }, (_, index) => `bench-${index + 1}`);
    const processes = await startFleet({ lab, client, names, options, log });
    await createPods({ client, names, perNode: options.pods, log });
    log(`rolling out to ${options.nodes} nodes, ${options.maxUnavailable} at once`);
    const usedBy = await Promise.all([
      watchProcesses([processes.control.pid]),
      watchProcesses(processes.fleets.map(({ pid }) => pid)),
      watchByName(pidsOf(lab)),
    ]);
    const since = Date.now();
    await client.create(flavour.machineConfig, benchConfig());
    await untilRolledOut({ client, processes, options, log });
    const temporal = new Client({ connection, namespace: lab.temporal.namespace });
    const histories = await readHistories({ client: temporal, pool: POOL, nodes: options.nodes, since });
    const [ofControl, ofFleet, ofLab] = usedBy;
    const [control, fleet, inLab] = await Promise.all([ofControl(), ofFleet(), ofLab()]);
    const requests = await countRequests(auditLogOf(lab.directory), since, histories.endedAt);
    return { histories, requests, control, fleet, lab: inLab };
  } finally {
    await client.close();
    await connection.close();
  }
}

function pidsOf({ temporal, kubernetes }: Lab) {
  const { etcd, apiServer, controllerManager, scheduler, kwok } = kubernetes.processes;
  return {
    Temporal: [temporal.pid],
    'API server': [apiServer?.pid],
    etcd: [etcd?.pid],
    'controllers, scheduler and kubelets': [controllerManager?.pid, scheduler?.pid, kwok?.pid],
    'the measuring itself': [process.pid],
  };
}

interface FleetStart {
  readonly lab: Lab;
  readonly client: KubernetesClient;
  readonly names: readonly string[];
  readonly options: RolloutBenchOptions;
  readonly log: Log;
}

/** Nodes that run the pool's config already, so that the measured rollout is the first. */
async function startFleet({ lab, client, names, options, log }: FleetStart): Promise<DrydockProcesses> {
  const { nodes, maxUnavailable, stepSeconds } = options;
  await install({ client, flavour });
  await client.patch(flavour.machineConfigPool, { name: POOL }, { spec: { maxUnavailable } });
  const processes = await startDrydock(lab, {
    nodes: names,
    awayMs: Math.max(0, stepSeconds - GOING_DOWN_SECONDS) * 1000,
    nodesPerFleet: NODES_PER_FLEET,
    // As systemd does it: the worker is stopped before the machine goes down.
    pollOutlivesMs: 0,
    sharesConnection: true,
    startsAtOnce: STARTS_AT_ONCE,
    // What a node worker asks every five minutes, whether or not anything is rolled out, is no part of an update.
    registrationEveryMs: REGISTRATION_EVERY_MS,
    beforeFleet: async (rootOf) => {
      const rendered = await waitUntil(async () => (await readPool(client)).spec.configuration?.name, {
        what: 'the control worker to render the first config',
        timeoutMs: START_TIMEOUT_MS,
      });
      log(`creating ${nodes} nodes`);
      const { currentConfig, desiredConfig, state } = flavour.annotations;
      const annotations = { [currentConfig]: rendered, [desiredConfig]: rendered, [state]: 'Done' };
      const labels = { [ROLE_LABEL]: '' };
      const record = JSON.stringify(await client.get(flavour.machineConfig, { name: rendered }));
      await pMap(names, (name) => writeDurably(join(rootOf(name), CURRENT_CONFIG_FILE), record), { concurrency: 50 });
      const parts = Array.from({ length: NODES_CREATED_AT_ONCE }, (_, part) =>
        names.filter((_name, index) => index % NODES_CREATED_AT_ONCE === part),
      );
      await Promise.all(
        parts.map((part) => lab.kubernetes.createNodes(part.map((name) => ({ name, labels, annotations })))),
      );
    },
  });
  await untilRegistered({ client, processes, options, log });
  await waitUntil(async () => reportPool(await readPool(client)).updatedMachineCount === nodes, {
    what: 'the pool to be Updated before the rollout',
    timeoutMs: START_TIMEOUT_MS,
    intervalMs: 1_000,
  });
  return processes;
}

/** A list of thousands of Nodes is work for the machine that they all are on, so it is asked for seldom. */
async function untilRegistered({ client, processes, options: { nodes }, log }: Rolling): Promise<void> {
  log('waiting until every node worker has registered');
  let told = 0;
  await waitUntil(
    async () => {
      const found = await client.list(KINDS.node);
      const registered = found.filter(({ metadata }) => metadata.annotations?.[DRYDOCK_ANNOTATIONS.worker]).length;
      if (registered !== told) log(`${registered} of ${nodes} registered`);
      told = registered;
      return registered === nodes;
    },
    {
      what: `${nodes} node workers to register`,
      timeoutMs: START_TIMEOUT_MS + nodes * SECONDS_PER_NODE * 1000,
      intervalMs: LOOK_EVERY_MS + nodes * LOOK_EVERY_MS_PER_NODE,
      check: () => assertRunning(processes),
    },
  );
}

interface Rolling extends Pick<FleetStart, 'client' | 'options' | 'log'> {
  readonly processes: DrydockProcesses;
}

async function untilRolledOut({ client, processes, options, log }: Rolling): Promise<void> {
  const before = (await readPool(client)).spec.configuration?.name;
  const waves = Math.ceil(options.nodes / slotsOf(options));
  let told = 0;
  await waitUntil(
    async () => {
      const pool = await readPool(client);
      const { updatedMachineCount: updated, degraded, message } = reportPool(pool);
      if (degraded) throw new Error(message);
      const isNew = pool.spec.configuration?.name !== before;
      if (isNew && updated !== told) log(`${updated} of ${options.nodes} updated`);
      if (isNew) told = updated;
      return isNew && updated === options.nodes;
    },
    {
      what: 'every node to be updated',
      timeoutMs: START_TIMEOUT_MS + (options.nodes * UPDATE_SECONDS_PER_NODE + 2 * waves * options.stepSeconds) * 1000,
      intervalMs: 5_000,
      check: () => assertRunning(processes),
    },
  );
}

/** How many nodes may be unavailable at once, as the product resolves it. */
export function slotsOf({ nodes, maxUnavailable }: Pick<RolloutBenchOptions, 'nodes' | 'maxUnavailable'>): number {
  if (typeof maxUnavailable === 'number') return Math.min(nodes, maxUnavailable);
  return Math.max(1, Math.floor((nodes * Number(maxUnavailable.slice(0, -1))) / 100));
}

function assertRunning({ control, fleets }: DrydockProcesses): void {
  control.assertRunning();
  for (const fleet of fleets) fleet.assertRunning();
}

function readPool(client: KubernetesClient) {
  return client.get<KubernetesObject & MachineConfigPool>(flavour.machineConfigPool, { name: POOL });
}

function benchConfig(): KubernetesObject {
  const file = { path: '/etc/drydock-bench.conf', contents: { source: 'data:,measured' } };
  const config = { ignition: { version: '3.4.0' }, storage: { files: [file] } };
  return { metadata: { name: CONFIG, labels: { [flavour.roleLabel]: POOL } }, spec: { config } } as KubernetesObject;
}
