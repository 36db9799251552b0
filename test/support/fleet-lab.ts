import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { bootsOf } from '../../activities/host/simulated-host.js';
import { KINDS, type KubernetesObject } from '../../activities/kubernetes/client.js';
import { failedWith } from '../../activities/kubernetes/failures.js';
import { createKubernetesClient, type ClosableKubernetesClient } from '../../activities/kubernetes/rest.js';
import { install } from '../../client/install.js';
import { startDrydock, type DrydockProcesses } from '../../dev/drydock-processes.js';
import { startLab, type Lab } from '../../dev/lab.js';
import { waitUntil } from '../../dev/processes/wait-until.js';
import { apiFlavour } from '../../machine-config/api/flavour.js';
import type { MachineConfigPool } from '../../machine-config/api/machine-config-pool.js';
import { nodeFacts, type NodeFacts, type NodeObject } from '../../machine-config/pool/facts.js';
import { GrantObserver } from './grant-observer.js';
import { renderedConfigs } from './ignition-validate.js';

export const flavour = apiFlavour('openshift');
export const POOL = 'worker';
/** What it is called after it has been renamed. */
export const RENAMED_POOL = 'blue';
/** Of the role's label on Nodes. */
const ROLE = 'node-role.kubernetes.io';
/** The file that the MachineConfig of these tests is about. */
export const FILE = 'etc/drydock-fleet-lab';
const CONFIG = '50-worker-fleet-lab';
const NAMESPACE = 'shop';
const WAIT_MS = 150_000;
const DAY_MS = 24 * 3600_000;

/**
 * The product's own processes on a real Temporal and a real API server, and a pool of simulated machines whose workers
 * act with the nodes' own identities.
 */
export class FleetLab {
  readonly lab: Lab;
  readonly admin: ClosableKubernetesClient;
  readonly processes: DrydockProcesses;
  readonly observer: GrantObserver;
  /** Oldest first. */
  readonly nodes: readonly string[];
  #hasConfig = false;

  private constructor(parts: Pick<FleetLab, 'lab' | 'admin' | 'processes' | 'nodes'>) {
    this.lab = parts.lab;
    this.admin = parts.admin;
    this.processes = parts.processes;
    this.nodes = parts.nodes;
    this.observer = new GrantObserver(parts.admin, flavour, [POOL, RENAMED_POOL]);
  }

  /** Machines `later` have their workers, which wait for their Nodes. Resolves when the others run the first config. */
  static async start(nodes: readonly string[], later: readonly string[] = []): Promise<FleetLab> {
    const lab = await startLab();
    const admin = createKubernetesClient({ kubeconfigPath: lab.kubernetes.kubeconfigPath });
    await install({ client: admin, flavour });
    await lab.kubernetes.createNodes(
      nodes.map((name, index) => ({
        name,
        labels: { [`${ROLE}/${POOL}`]: '' },
        createdAt: new Date(Date.now() - (nodes.length - index) * DAY_MS),
      })),
    );
    const processes = await startDrydock(lab, {
      nodes: [...nodes, ...later],
      awayMs: 1000,
      tuning: { debounceSeconds: 1, tickSeconds: 2, restSeconds: 2, settleSeconds: 1 },
    });
    const fleet = new FleetLab({ lab, admin, processes, nodes });
    await admin.create(KINDS.namespace, { metadata: { name: NAMESPACE } });
    await fleet.revise('first');
    await fleet.untilUpdated('first');
    fleet.observer.begin();
    return fleet;
  }

  async stop(): Promise<void> {
    this.observer.stop();
    try {
      await renderedConfigs.addStored(this.admin, flavour);
    } finally {
      await this.admin.close();
      await this.lab.stop();
    }
  }

  async addNode(name: string): Promise<void> {
    await this.lab.kubernetes.createNodes([{ name, labels: { [`${ROLE}/${POOL}`]: '' } }]);
  }

  async facts(node: string): Promise<NodeFacts> {
    return nodeFacts(await this.admin.get<KubernetesObject & NodeObject>(KINDS.node, { name: node }), flavour);
  }

  async target(pool = POOL): Promise<string> {
    const { spec } = await this.pool(pool);
    return spec.configuration?.name ?? '';
  }

  pool(name = POOL): Promise<KubernetesObject & MachineConfigPool> {
    return this.admin.get<KubernetesObject & MachineConfigPool>(flavour.machineConfigPool, { name });
  }

  changePool(spec: object): Promise<unknown> {
    return this.admin.patch(flavour.machineConfigPool, { name: POOL }, { spec });
  }

  /** Gives the pool's config other contents, and resolves with the pool's new target. */
  async revise(contents: string): Promise<string> {
    const before = await this.target();
    const source = `data:,${encodeURIComponent(contents)}`;
    const files = [{ path: `/${FILE}`, mode: 0o644, overwrite: true, contents: { source } }];
    const spec = { config: { ignition: { version: '3.4.0' }, storage: { files } } };
    const metadata = { name: CONFIG, labels: { [flavour.roleLabel]: POOL } };
    if (this.#hasConfig) await this.admin.patch(flavour.machineConfig, { name: CONFIG }, { spec });
    else await this.admin.create(flavour.machineConfig, { metadata, spec } as KubernetesObject);
    this.#hasConfig = true;
    return this.until('the pool to have a new target', async () => {
      const target = await this.target();
      return target !== '' && target !== before && this.observer.knows(target) && target;
    });
  }

  /** Each of the nodes runs the pool's target, with these contents on its disk, and is in service. */
  async untilUpdated(contents: string, nodes = this.nodes, pool = POOL): Promise<void> {
    await this.until(`${nodes.join(', ')} to have ${contents}`, async () => {
      const target = await this.target(pool);
      const all = await Promise.all(nodes.map((name) => this.facts(name)));
      const isThere = all.every((node) => node.state === 'Done' && node.current === target && !node.unschedulable);
      const disks = await Promise.all(nodes.map((name) => this.onDisk(name)));
      return isThere && disks.every((text) => text === contents);
    });
  }

  until<T>(what: string, condition: () => Promise<T | false>): Promise<T> {
    const { control, fleet } = this.processes;
    return waitUntil<T>(condition, {
      what,
      timeoutMs: WAIT_MS,
      check: () => {
        control.assertRunning();
        fleet.assertRunning();
      },
    });
  }

  async onDisk(node: string): Promise<string> {
    return readFile(join(this.processes.rootOf(node), FILE), 'utf8').catch(() => '');
  }

  /** How often each machine has booted, from the machines' own records. */
  async boots(nodes = this.nodes): Promise<Record<string, number>> {
    const counts = nodes.map(async (name) => [name, (await bootsOf(this.processes.rootOf(name))).length] as const);
    return Object.fromEntries(await Promise.all(counts));
  }

  /** A pod on the node, and if asked for a budget that never lets it go. Resolves when it runs. */
  async addPod(name: string, node: string, keep: boolean): Promise<void> {
    const labels = { app: name };
    const metadata = { name, namespace: NAMESPACE };
    if (keep) {
      const spec = { minAvailable: 1, selector: { matchLabels: labels } };
      await this.admin.create(KINDS.podDisruptionBudget, { metadata, spec } as KubernetesObject);
    }
    await this.admin.create(KINDS.pod, {
      metadata: { ...metadata, labels },
      spec: { nodeName: node, containers: [{ name: 'main', image: 'none' }], terminationGracePeriodSeconds: 1 },
    } as KubernetesObject);
    await this.until(`the pod ${name} to run, and its budget to know it`, async () => {
      const pod = await this.admin.get<KubernetesObject & { status?: { phase?: string } }>(KINDS.pod, metadata);
      if (pod.status?.phase !== 'Running') return false;
      if (!keep) return true;
      type Budget = KubernetesObject & { status?: { currentHealthy?: number } };
      const budget = await this.admin.get<Budget>(KINDS.podDisruptionBudget, metadata);
      return budget.status?.currentHealthy === 1;
    });
  }

  /** Names of the pods that are there and not on their way out. */
  async pods(): Promise<string[]> {
    const pods = await this.admin.list(KINDS.pod, { namespace: NAMESPACE });
    return pods
      .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
      .map(({ metadata }) => metadata.name)
      .sort();
  }

  /** The pod and its budget, as far as they are there. */
  async removePod(name: string): Promise<void> {
    for (const kind of [KINDS.podDisruptionBudget, KINDS.pod]) {
      await this.admin.delete(kind, { name, namespace: NAMESPACE }).catch((error: unknown) => {
        if (!failedWith(error, 'NotFound')) throw error;
      });
    }
  }
}
