import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { KubernetesClient, KubernetesObject } from '../../activities/kubernetes/client.js';
import { createKubernetesClient } from '../../activities/kubernetes/rest.js';
import { install } from '../../client/install.js';
import { readManifests } from '../../client/manifest-files.js';
import { isFullyUpdated, reportPool, type PoolReport } from '../../client/pool-report.js';
import { apiFlavour } from '../../machine-config/api/flavour.js';
import type { MachineConfigPool } from '../../machine-config/api/machine-config-pool.js';
import { prepareWebhook } from '../webhook.js';
import { startDrydock, type DrydockProcesses } from '../drydock-processes.js';
import { startLab, type Lab, type LabNode } from '../lab.js';
import { waitUntil } from '../processes/wait-until.js';
import type { RealNode } from '../real-nodes/real-node.js';
import { demoMachines, isAsItShallBe, recordBoots, showRealNodes, startDemoMachines } from './machines.js';
import { NodeObserver } from './observer.js';
import { summarise, type DemoSummary } from './summary.js';
import { describeNode, describePools } from './view.js';
import { createWorkloads } from './workloads.js';

export interface DemoOptions {
  readonly keep: boolean;
  readonly directory?: string | undefined;
  /** So many real systemd machines besides the simulated ones, as workers. Default 0. */
  readonly realNodes?: number;
  /** Called once, before a lab that is kept waits for its end. */
  readonly onSummary: (summary: DemoSummary) => void;
}

export type { DemoSummary } from './summary.js';

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
    const { processes, realNodes } = await prepareCluster({ lab, client, realNodes: options.realNodes ?? 0, tell });
    observer.onChange((node) => tell(describeNode(node)));
    const adopting = 'the empty config that every node is adopted on';
    await rollOut({ client, processes, tell, before: new Map() }, adopting);
    const roll = async (what: string, apply: () => Promise<void>, pools?: readonly string[]) => {
      const before = new Map((await readPools(client)).map(({ name, current }) => [name, current]));
      await apply();
      await rollOut({ client, processes, tell, before, pools }, what);
    };
    const machines = demoMachines(processes, realNodes);
    const bootsBefore = await machines.countBoots(observer.nodes.keys());
    const realBefore = await recordBoots(realNodes);
    observer.begin();
    await roll('the MachineConfigs', () => applyConfigs(client, tell));
    const base = await summarise({
      started,
      lab,
      pools: await readPools(client),
      observer,
      machines,
      bootsBefore,
      tell,
    });
    const real = await showRealNodes({ nodes: realNodes, before: realBefore, client, observer, roll, tell });
    const seconds = Math.round((Date.now() - started) / 1000);
    const summary = { ...base, seconds, ok: base.ok && real.every(isAsItShallBe), realNodes: real };
    options.onSummary(summary);
    if (options.keep) await keep(lab, say);
    return summary.ok;
  } finally {
    observer.stop();
    await client.close();
    await lab.stop();
  }
}

interface Preparation {
  readonly lab: Lab;
  readonly client: KubernetesClient;
  readonly realNodes: number;
  readonly tell: Say;
}

async function prepareCluster(
  preparation: Preparation,
): Promise<{ processes: DrydockProcesses; realNodes: RealNode[] }> {
  const { lab, client, tell } = preparation;
  tell('Installing the API: CRDs, pools, base configs');
  const webhook = await prepareWebhook(lab);
  await install({ client, flavour, webhook: webhook.place });
  await client.patch(
    flavour.machineConfigPool,
    { name: 'worker' },
    { spec: { maxUnavailable: WORKER_MAX_UNAVAILABLE } },
  );
  const nodes = demoNodes();
  tell(`Creating ${nodes.length} nodes`);
  await lab.kubernetes.createNodes(nodes);
  tell('Starting the control worker and a node worker for each node');
  const processes = await startDrydock(lab, { nodes: nodes.map(({ name }) => name), awayMs: 3000, webhook });
  const realNodes = await startDemoMachines(lab, preparation.realNodes, tell);
  tell('Deploying workloads with PodDisruptionBudgets');
  await createWorkloads(client, [
    { name: 'cart', replicas: 6, minAvailable: 5 },
    { name: 'web', replicas: 9, minAvailable: 7 },
  ]);
  return { processes, realNodes };
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
  readonly processes: DrydockProcesses;
  readonly tell: Say;
  /** What the pools were on before anything was applied. */
  readonly before: ReadonlyMap<string, string | null>;
  /** Those that get something new. Default: both. */
  readonly pools?: readonly string[] | undefined;
}

/** Waits until both pools are Updated on something newer than what they were on, and says what changes meanwhile. */
async function rollOut({ client, processes, tell, before, pools: changing }: Rolling, what: string): Promise<void> {
  tell(`Rolling out ${what}`);
  let shown = '';
  const ended = await waitUntil(
    async () => {
      const pools = await readPools(client);
      const text = describePools(pools);
      if (text !== shown) text.split('\n').forEach(tell);
      shown = text;
      const degraded = pools.find((pool) => pool.degraded);
      if (degraded !== undefined) return { degraded };
      const isChanged = ({ name, current }: PoolReport) =>
        current !== before.get(name) || changing?.includes(name) === false;
      return pools.every((pool) => isFullyUpdated(pool) && isChanged(pool)) && {};
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
