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
import { watchProcesses, type ProcessUse } from './process-use.js';
import { countRequests, type RequestCounts } from './requests.js';

const flavour = apiFlavour('openshift');
const POOL = 'worker';
const ROLE_LABEL = 'node-role.kubernetes.io/worker';
const CONFIG = '60-bench';
/** Besides the step, a node needs what simulated machines take to go down in order. */
const GOING_DOWN_SECONDS = 1;
const NODES_PER_FLEET = 500;
const START_TIMEOUT_MS = 120_000;
/** Of registration, on a machine that has all of them on it. */
const SECONDS_PER_NODE = 0.5;
/** Of an update with nothing to wait for, there. */
const UPDATE_SECONDS_PER_NODE = 2;

export interface ProductRun {
  readonly histories: Histories;
  readonly requests: RequestCounts;
  readonly control: ProcessUse;
  readonly fleet: ProcessUse;
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
    ]);
    const since = Date.now();
    await client.create(flavour.machineConfig, benchConfig());
    await untilRolledOut({ client, processes, options, log });
    const temporal = new Client({ connection, namespace: lab.temporal.namespace });
    const histories = await readHistories({ client: temporal, pool: POOL, nodes: options.nodes, since });
    const [control, fleet] = await Promise.all(usedBy.map((used) => used()));
    if (control === undefined || fleet === undefined) throw new Error('no process was watched');
    const requests = await countRequests(auditLogOf(lab.directory), since, histories.endedAt);
    return { histories, requests, control, fleet };
  } finally {
    await client.close();
    await connection.close();
  }
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
      await lab.kubernetes.createNodes(names.map((name) => ({ name, labels, annotations })));
    },
  });
  log('waiting until every node worker has registered');
  await waitUntil(
    async () => {
      const found = await client.list(KINDS.node);
      return found.filter(({ metadata }) => metadata.annotations?.[DRYDOCK_ANNOTATIONS.worker]).length === nodes;
    },
    {
      what: `${nodes} node workers to register`,
      timeoutMs: START_TIMEOUT_MS + nodes * SECONDS_PER_NODE * 1000,
      intervalMs: 2_000,
      check: () => assertRunning(processes),
    },
  );
  await waitUntil(async () => reportPool(await readPool(client)).updatedMachineCount === nodes, {
    what: 'the pool to be Updated before the rollout',
    timeoutMs: START_TIMEOUT_MS,
    intervalMs: 1_000,
  });
  return processes;
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
