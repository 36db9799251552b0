import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createKubernetesClient } from '../activities/kubernetes/rest.js';
import { KINDS } from '../activities/kubernetes/client.js';
import type { FlavourName } from '../machine-config/api/flavour.js';
import type { PoolTuning } from '../workflows/contract/inputs.js';
import type { Lab, LabProcess } from './lab.js';

export interface DrydockOptions {
  /** Names of the Nodes whose workers are played. */
  readonly nodes: readonly string[];
  readonly flavour?: FlavourName;
  /** How long a machine is away when it reboots. Default 3,000. */
  readonly awayMs?: number;
  /** `processes`: each node worker is a process of its own. Default `inProcess`. */
  readonly fleetMode?: 'inProcess' | 'processes';
  readonly tuning?: Partial<Omit<PoolTuning, 'node' | 'maxEvents'>>;
  /** Shows every change to the control worker's watches this much later. */
  readonly watchDelayMs?: number;
}

/** Drydock's own processes in a lab; each can be killed and started again. */
export interface DrydockProcesses {
  readonly control: LabProcess;
  readonly fleet: LabProcess;
  /** The folder that is the root of a simulated node. */
  rootOf(node: string): string;
  /**
   * Starts one more control worker with the same tuning, beside the first or in its place. `id` names the process, as in
   * `drydock-control-late`; its watches are delayed by `watchDelayMs`, default 0.
   */
  startControl(id: string, watchDelayMs?: number): Promise<LabProcess>;
}

const program = (path: string): string => fileURLToPath(new URL(`../${path}`, import.meta.url));

/** Starts a control worker and the simulated fleet as processes of the lab; they end with it. */
export async function startDrydock(lab: Lab, options: DrydockOptions): Promise<DrydockProcesses> {
  const { temporal, kubernetes, directory } = lab;
  const flavour = options.flavour ?? 'openshift';
  const client = createKubernetesClient({ kubeconfigPath: kubernetes.kubeconfigPath });
  const system = await client.get(KINDS.namespace, { name: 'kube-system' });
  await client.close();

  const rootOf = (node: string) => join(directory, 'nodes', node);
  const nodes = [];
  for (const name of options.nodes) {
    await mkdir(rootOf(name), { recursive: true });
    nodes.push({ name, kubeconfig: await kubernetes.nodeKubeconfig(name), root: rootOf(name) });
  }
  const fleetFile = join(directory, 'fleet.json');
  const fleetDescription = {
    clusterUid: system.metadata.uid,
    flavour,
    awayMs: options.awayMs ?? 3000,
    mode: options.fleetMode ?? 'inProcess',
    temporal: { address: temporal.address, namespace: temporal.namespace },
    nodes,
  };
  await writeFile(fleetFile, `${JSON.stringify(fleetDescription, null, 2)}\n`);

  const run = (id: string, path: string, env: Record<string, string>) =>
    lab.run({
      id,
      command: process.execPath,
      args: ['--import', import.meta.resolve('tsx'), program(path)],
      env: {
        TEMPORAL_ADDRESS: temporal.address,
        TEMPORAL_NAMESPACE: temporal.namespace,
        DRYDOCK_FLAVOUR: flavour,
        ...env,
      },
    });
  const startControl = (id: string, watchDelayMs = 0) =>
    run(id, 'workers/control.ts', {
      DRYDOCK_KUBECONFIG: kubernetes.kubeconfigPath,
      DRYDOCK_TUNING: JSON.stringify(options.tuning ?? {}),
      DRYDOCK_WATCH_DELAY_MS: String(watchDelayMs),
    });
  const control = await startControl('drydock-control', options.watchDelayMs);
  const fleet = await run('drydock-fleet', 'workers/simulated-fleet.ts', { DRYDOCK_FLEET_FILE: fleetFile });
  return { control, fleet, rootOf, startControl };
}
