import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { bootsOf } from '../../activities/host/simulated-host.js';
import type { KubernetesClient, KubernetesObject } from '../../activities/kubernetes/client.js';
import { createKubernetesClient } from '../../activities/kubernetes/rest.js';
import { install } from '../../client/install.js';
import { readManifests } from '../../client/manifest-files.js';
import { isFullyUpdated, reportPool, type PoolReport } from '../../client/pool-report.js';
import { apiFlavour } from '../../machine-config/api/flavour.js';
import type { MachineConfigPool } from '../../machine-config/api/machine-config-pool.js';
import { startDrydock, type DrydockProcesses } from '../drydock-processes.js';
import { startLab, type Lab, type LabNode } from '../lab.js';
import { waitUntil } from '../processes/wait-until.js';
import { diskDifferences } from './expected-disk.js';
import { NodeObserver } from './observer.js';
import { describeNode, describePools } from './view.js';
import { createWorkloads } from './workloads.js';

export interface DemoOptions {
  readonly keep: boolean;
  readonly directory?: string | undefined;
  /** Called once, before a lab that is kept waits for its end. */
  readonly onSummary: (summary: DemoSummary) => void;
}

export interface DemoSummary {
  /** Everything is as it shall be. */
  readonly ok: boolean;
  readonly seconds: number;
  readonly temporalUi: string | null;
  readonly kubeconfig: string;
  readonly pools: readonly {
    readonly name: string;
    readonly maxUnavailable: number | string;
    readonly machineCount: number;
    readonly updatedMachineCount: number;
    readonly degradedMachineCount: number;
    readonly updated: boolean;
    readonly maxOverlap: number;
  }[];
  readonly nodes: readonly {
    readonly name: string;
    readonly pool: string;
    readonly zone: string;
    readonly createdAt: string;
    readonly startedAt: string | null;
    readonly finishedAt: string | null;
    readonly bootsBefore: number;
    readonly bootsAfter: number;
    readonly state: string;
    readonly diskVerified: boolean;
  }[];
}

type Say = (line: string) => void;

const flavour = apiFlavour('openshift');
const WORKER_MAX_UNAVAILABLE = 2;
const CONFIGS = fileURLToPath(new URL('machine-configs', import.meta.url));
/** A rollout of six machines that reboot, on a busy machine. */
const ROLLOUT_TIMEOUT_MS = 10 * 60_000;
const CONTROL_PLANE_LABEL = 'node-role.kubernetes.io/control-plane';

/** Younger nodes have lower numbers, so that the order by age is seen to be no order by name. */
function demoNodes(): LabNode[] {
  const age = (days: number) => new Date(Date.now() - days * 24 * 3600_000);
  const zone = (index: number) => ({ 'topology.kubernetes.io/zone': `zone-${'abc'.charAt(index % 3)}` });
  const controlPlane = [1, 2, 3].map((number) => ({
    name: `control-${number}`,
    labels: { [CONTROL_PLANE_LABEL]: '', ...zone(number) },
    taints: [{ key: CONTROL_PLANE_LABEL, effect: 'NoSchedule' as const }],
    createdAt: age(100 + number),
  }));
  const workers = [1, 2, 3, 4, 5, 6].map((number) => ({
    name: `worker-${number}`,
    labels: { 'node-role.kubernetes.io/worker': '', ...zone(number) },
    createdAt: age(10 * number),
  }));
  return [...controlPlane, ...workers];
}

/**
 * The main job on a lab of real parts: nodes join, configs are applied, both pools are rolled out, the disks are
 * verified. `say` gets what a person at the terminal sees. True: everything is as it shall be.
 */
export async function runDemo(options: DemoOptions, say: Say): Promise<boolean> {
  const started = Date.now();
  const tell = (line: string) => say(`${String(Math.round((Date.now() - started) / 1000)).padStart(4)}s  ${line}`);
  tell('Starting Temporal and a Kubernetes control plane');
  const lab = await startLab({
    log: tell,
    ...(options.directory === undefined ? {} : { directory: options.directory }),
  });
  const client = createKubernetesClient({ kubeconfigPath: lab.kubernetes.kubeconfigPath });
  const observer = new NodeObserver(client, flavour, (labels) => (CONTROL_PLANE_LABEL in labels ? 'master' : 'worker'));
  try {
    tell(`Temporal UI: ${lab.temporal.uiUrl ?? 'off'}`);
    tell(`KUBECONFIG=${lab.kubernetes.kubeconfigPath}`);
    const processes = await prepareCluster(lab, client, tell);
    observer.onChange((node) => tell(describeNode(node)));
    await rollOut({ client, lab, processes, tell }, 'the empty config that every node is adopted on');
    const bootsBefore = await countBoots(observer, processes);
    observer.begin();
    await applyConfigs(client, tell);
    await rollOut({ client, lab, processes, tell }, 'the MachineConfigs');
    const summary = await summarise({ started, lab, client, observer, processes, bootsBefore, tell });
    options.onSummary(summary);
    if (options.keep) await keep(lab, say);
    return summary.ok;
  } finally {
    observer.stop();
    await client.close();
    await lab.stop();
  }
}

async function prepareCluster(lab: Lab, client: KubernetesClient, tell: Say): Promise<DrydockProcesses> {
  tell('Installing the API: CRDs, pools, base configs');
  await install({ client, flavour });
  await client.patch(
    flavour.machineConfigPool,
    { name: 'worker' },
    { spec: { maxUnavailable: WORKER_MAX_UNAVAILABLE } },
  );
  const nodes = demoNodes();
  tell(`Creating ${nodes.length} nodes`);
  await lab.kubernetes.createNodes(nodes);
  tell('Starting the control worker and a node worker for each node');
  const processes = await startDrydock(lab, { nodes: nodes.map(({ name }) => name), awayMs: 3000 });
  tell('Deploying workloads with PodDisruptionBudgets');
  await createWorkloads(client, [
    { name: 'cart', replicas: 6, minAvailable: 5 },
    { name: 'web', replicas: 9, minAvailable: 7 },
  ]);
  return processes;
}

async function applyConfigs(client: KubernetesClient, tell: Say): Promise<void> {
  const { manifests, errors } = await readManifests([CONFIGS]);
  if (errors.length > 0) throw new Error(errors.join('; '));
  for (const { value } of manifests) {
    const object = value as KubernetesObject;
    await client.create(flavour.machineConfig, object);
    tell(`applied MachineConfig ${object.metadata.name}`);
  }
}

interface Rolling {
  readonly client: KubernetesClient;
  readonly lab: Lab;
  readonly processes: DrydockProcesses;
  readonly tell: Say;
}

/** Waits until both pools are Updated on something newer than what they were on, and says what changes meanwhile. */
async function rollOut({ client, processes, tell }: Rolling, what: string): Promise<void> {
  tell(`Rolling out ${what}`);
  const before = new Map((await readPools(client)).map(({ name, current }) => [name, current]));
  let shown = '';
  const ended = await waitUntil(
    async () => {
      const pools = await readPools(client);
      const text = describePools(pools);
      if (text !== shown) text.split('\n').forEach(tell);
      shown = text;
      const degraded = pools.find((pool) => pool.degraded);
      if (degraded !== undefined) return { degraded };
      return pools.every((pool) => isFullyUpdated(pool) && pool.current !== before.get(pool.name)) && {};
    },
    {
      what: 'both pools to be Updated',
      timeoutMs: ROLLOUT_TIMEOUT_MS,
      check: () => {
        processes.control.assertRunning();
        processes.fleet.assertRunning();
      },
    },
  );
  if (ended.degraded !== undefined)
    throw new Error(`pool ${ended.degraded.name} is degraded: ${ended.degraded.message}`);
}

async function readPools(client: KubernetesClient): Promise<PoolReport[]> {
  const pools = await client.list<KubernetesObject & MachineConfigPool>(flavour.machineConfigPool);
  return pools.map(reportPool);
}

async function countBoots(observer: NodeObserver, processes: DrydockProcesses): Promise<Map<string, number>> {
  const counts = new Map<string, number>();
  for (const name of observer.nodes.keys()) counts.set(name, (await bootsOf(processes.rootOf(name))).length);
  return counts;
}

interface Ending {
  readonly started: number;
  readonly lab: Lab;
  readonly client: KubernetesClient;
  readonly observer: NodeObserver;
  readonly processes: DrydockProcesses;
  readonly bootsBefore: ReadonlyMap<string, number>;
  readonly tell: Say;
}

async function summarise(ending: Ending): Promise<DemoSummary> {
  const { started, lab, client, observer, processes, bootsBefore, tell } = ending;
  const bootsAfter = await countBoots(observer, processes);
  const pools = (await readPools(client)).map((pool) => ({
    name: pool.name,
    maxUnavailable: pool.maxUnavailable,
    machineCount: pool.machineCount,
    updatedMachineCount: pool.updatedMachineCount,
    degradedMachineCount: pool.degradedMachineCount,
    updated: pool.updated,
    maxOverlap: observer.maxOverlap(pool.name),
  }));
  const nodes = [];
  for (const node of observer.nodes.values()) {
    const { name, pool, zone, createdAt, startedAt, finishedAt, state } = node;
    const differences = await diskDifferences(processes.rootOf(name), pool);
    differences.forEach((line) => tell(`${name}: ${line}`));
    nodes.push({
      name,
      pool,
      zone,
      createdAt,
      startedAt,
      finishedAt,
      bootsBefore: bootsBefore.get(name) ?? 0,
      bootsAfter: bootsAfter.get(name) ?? 0,
      state,
      diskVerified: differences.length === 0,
    });
  }
  const ok =
    pools.every(({ updated, degradedMachineCount }) => updated && degradedMachineCount === 0) &&
    nodes.every(({ state, diskVerified, finishedAt }) => state === 'Done' && diskVerified && finishedAt !== null);
  const seconds = Math.round((Date.now() - started) / 1000);
  const verified = nodes.filter(({ diskVerified }) => diskVerified).length;
  tell(`${verified} of ${nodes.length} disks are as the configs say${ok ? '' : '; something is not as it shall be'}`);
  for (const pool of pools) {
    tell(`${pool.name}: at most ${pool.maxOverlap} of ${pool.machineCount} nodes out of service at once`);
  }
  const { kubeconfigPath } = lab.kubernetes;
  return { ok, seconds, temporalUi: lab.temporal.uiUrl ?? null, kubeconfig: kubeconfigPath, pools, nodes };
}

async function keep(lab: Lab, say: Say): Promise<void> {
  const { temporal, kubernetes } = lab;
  say('');
  say('The lab keeps running. Ctrl-C ends it. In another terminal:');
  say(`  export DRYDOCK_KUBECONFIG=${kubernetes.kubeconfigPath} TEMPORAL_ADDRESS=${temporal.address}`);
  say('  npx drydock nodes');
  say('  npx drydock rollout status');
  // With a cache of its own: kubectl's usual one is keyed by port, and ports are used again.
  say(`  ${kubernetes.kubectl} --cache-dir ${lab.directory}/kubectl --kubeconfig ${kubernetes.kubeconfigPath} get mcp`);
  say(`  Temporal UI: ${temporal.uiUrl ?? 'off'}`);
  // The lab itself does not keep the process alive.
  const alive = setInterval(() => undefined, 60_000);
  await once(process, 'SIGINT');
  clearInterval(alive);
}
