import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createKubernetesClient } from '../activities/kubernetes/rest.js';
import { KINDS } from '../activities/kubernetes/client.js';
import { CONTROL_USER } from '../client/install/rbac.js';
import type { FlavourName } from '../machine-config/api/flavour.js';
import type { PoolTuning } from '../workflows/contract/inputs.js';
import type { Lab, LabProcess } from './lab.js';
import type { LabWebhook } from './webhook.js';

export interface DrydockOptions {
  /** Names of the Nodes whose workers are played. */
  readonly nodes: readonly string[];
  readonly flavour?: FlavourName;
  /** How long a machine is away when it reboots. Default 3,000. */
  readonly awayMs?: number;
  /** How long Temporal takes the poll of a machine that went down for alive. Default 15,000; 0: it shuts down in order. */
  readonly pollOutlivesMs?: number;
  /** `processes`: each node worker is a process of its own. Default `inProcess`. */
  readonly fleetMode?: 'inProcess' | 'processes';
  /** How many node workers one process plays at most; hundreds are well, thousands are too much. Default: all. */
  readonly nodesPerFleet?: number;
  /** The node workers of a process share their connection to Temporal; needs `pollOutlivesMs: 0`. Default false. */
  readonly sharesConnection?: boolean;
  /** How many node workers of a process are on their way up at one time; default: all. */
  readonly startsAtOnce?: number;
  /** Done between the start of the control worker and that of the node workers. */
  readonly beforeFleet?: (rootOf: DrydockProcesses['rootOf']) => Promise<void>;
  readonly tuning?: Partial<Omit<PoolTuning, 'node' | 'maxEvents'>>;
  /** Shows every change to the control worker's watches this much later. */
  readonly watchDelayMs?: number;
  /** The first control worker serves the webhook; see dev/webhook.ts. */
  readonly webhook?: LabWebhook;
  /** How often a node worker looks whether its Node still knows it. Default: as on a real node. */
  readonly registrationEveryMs?: number;
  /** The control workers' program, from the root of the project; for faults that are planted. Default: the product's. */
  readonly controlProgram?: string;
}

/** Drydock's own processes in a lab; each can be killed and started again. */
export interface DrydockProcesses {
  readonly control: LabProcess;
  readonly fleet: LabProcess;
  /** All of them, where the nodes are divided among several; the first is `fleet`. */
  readonly fleets: readonly LabProcess[];
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
  const nodes: { name: string; kubeconfig: string; root: string }[] = [];
  for (const name of options.nodes) {
    await mkdir(rootOf(name), { recursive: true });
    nodes.push({ name, kubeconfig: await kubernetes.nodeKubeconfig(name), root: rootOf(name) });
  }
  const fleetDescription = {
    clusterUid: system.metadata.uid,
    flavour,
    awayMs: options.awayMs ?? 3000,
    mode: options.fleetMode ?? 'inProcess',
    ...(options.pollOutlivesMs === undefined ? {} : { pollOutlivesMs: options.pollOutlivesMs }),
    ...(options.startsAtOnce === undefined ? {} : { startsAtOnce: options.startsAtOnce }),
    ...(options.sharesConnection === undefined ? {} : { sharesConnection: options.sharesConnection }),
    ...(options.registrationEveryMs === undefined ? {} : { registrationEveryMs: options.registrationEveryMs }),
    temporal: { address: temporal.address, namespace: temporal.namespace },
  };

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
  // With the rights that an installation gives it, and no others.
  const controlKubeconfig = await kubernetes.userKubeconfig(CONTROL_USER);
  const startControl = (id: string, watchDelayMs = 0, environment: LabWebhook['environment'] = {}) =>
    run(id, options.controlProgram ?? 'workers/control.ts', {
      ...environment,
      DRYDOCK_KUBECONFIG: controlKubeconfig,
      DRYDOCK_TUNING: JSON.stringify(options.tuning ?? {}),
      DRYDOCK_WATCH_DELAY_MS: String(watchDelayMs),
    });
  const control = await startControl('drydock-control', options.watchDelayMs, options.webhook?.environment);
  const startFleet = async (suffix: string, members: typeof nodes) => {
    const fleetFile = join(directory, `fleet${suffix}.json`);
    await writeFile(fleetFile, `${JSON.stringify({ ...fleetDescription, nodes: members }, null, 2)}\n`);
    return run(`drydock-fleet${suffix}`, 'workers/simulated-fleet.ts', { DRYDOCK_FLEET_FILE: fleetFile });
  };
  await options.beforeFleet?.(rootOf);
  const size = options.nodesPerFleet ?? Math.max(1, nodes.length);
  const fleet = await startFleet('', nodes.slice(0, size));
  const fleets = [fleet];
  for (let begin = size; begin < nodes.length; begin += size) {
    fleets.push(await startFleet(`-${fleets.length + 1}`, nodes.slice(begin, begin + size)));
  }
  return { control, fleet, fleets, rootOf, startControl };
}
