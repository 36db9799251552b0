import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { vi } from 'vitest';
import type {
  ControlDependencies,
  MachineConfigResource,
  NodeResource,
  PoolResource,
} from '../../activities/cluster/control-dependencies.js';
import { createControlActivities } from '../../activities/cluster/create-control-activities.js';
import { KINDS, type KubernetesClient, type KubernetesObject } from '../../activities/kubernetes/client.js';
import { createKubernetesClient, type ClosableKubernetesClient } from '../../activities/kubernetes/rest.js';
import { WatchCache } from '../../activities/kubernetes/watch-cache.js';
import { CONTROL_USER } from '../../client/install/rbac.js';
import { auditLogOf } from '../../dev/kubernetes/audit.js';
import { startLab, type Lab, type LabKubernetes, type LabNode } from '../../dev/lab.js';
import {
  apiFlavour,
  DRYDOCK_ANNOTATIONS,
  EMPTY_CONFIG_NAME,
  type ResourceKind,
} from '../../machine-config/api/flavour.js';
import type { MachineConfigPoolSpec } from '../../machine-config/api/machine-config-pool.js';
import type { MachineConfigSpec } from '../../machine-config/api/machine-config.js';
import type { ControlActivities } from '../../workflows/contract/activities.js';
import { renderedConfigs } from './ignition-validate.js';
import { PATIENCE } from './patience.js';

const run = promisify(execFile);

/** Ties nodes and MachineConfigs to the pool of a test. */
const POOL_LABEL = 'test.drydock.dev/pool';

/**
 * How long the Lease of a Node may age until that is NotReady: long enough that no kubelet is ever that late on a busy
 * machine, since a Node that is NotReady for a moment is refused, and rightly.
 */
const NODE_GRACE_SECONDS = 20;

/** What a control worker has: its own client, its own watches, its activities. */
export interface RealControl {
  readonly dependencies: ControlDependencies;
  readonly activities: ControlActivities;
  /** Resolves when the watches show what the API server has at the time of the call. */
  caughtUp(): Promise<void>;
}

/** A real API server with controllers and kubelets, and what tests do to it. */
export class RealCluster {
  readonly flavour = apiFlavour('openshift');
  readonly kubernetes: LabKubernetes;
  readonly admin: ClosableKubernetesClient;
  /** uid of the namespace kube-system. */
  readonly uid: string;
  readonly #lab: Lab;
  readonly #clients: ClosableKubernetesClient[];
  readonly #asNodes = new Map<string, KubernetesClient>();
  readonly #watches: AbortController[] = [];

  private constructor(lab: Lab, admin: ClosableKubernetesClient, uid: string) {
    this.#lab = lab;
    this.kubernetes = lab.kubernetes;
    this.admin = admin;
    this.uid = uid;
    this.#clients = [admin];
  }

  static async start(): Promise<RealCluster> {
    const lab = await startLab({ temporal: false, audits: true, nodeGraceSeconds: NODE_GRACE_SECONDS });
    const admin = createKubernetesClient({ kubeconfigPath: lab.kubernetes.kubeconfigPath });
    const { metadata } = await admin.get(KINDS.namespace, { name: 'kube-system' });
    return new RealCluster(lab, admin, metadata.uid ?? '');
  }

  async stop(): Promise<void> {
    try {
      await renderedConfigs.addStored(this.admin, this.flavour);
    } finally {
      for (const watch of this.#watches) watch.abort();
      await Promise.all(this.#clients.map((client) => client.close()));
      await this.#lab.stop();
    }
  }

  /** For the watches of one user of them; aborted when the cluster ends. */
  openWatches(): AbortSignal {
    const watch = new AbortController();
    this.#watches.push(watch);
    return watch.signal;
  }

  /** With the identity of anybody; what that may do is what roles were bound to it. */
  async asUser(name: string): Promise<KubernetesClient> {
    return this.#open(await this.kubernetes.userKubeconfig(name));
  }

  /** Of every request that the API server has answered so far; the file is not there on a cluster of the user's own. */
  get auditLog(): string {
    return auditLogOf(this.#lab.directory);
  }

  /** With the identity of that node's kubelet. */
  async asNode(name: string): Promise<KubernetesClient> {
    const known = this.#asNodes.get(name) ?? this.#open(await this.kubernetes.nodeKubeconfig(name));
    this.#asNodes.set(name, known);
    return known;
  }

  /** A further control worker, with the identity and the rights that an installation gave it. */
  async openControl(): Promise<RealControl> {
    const { flavour, uid: cluster } = this;
    const signal = this.openWatches();
    const client = this.#open(await this.kubernetes.userKubeconfig(CONTROL_USER));
    const nodes = new WatchCache<NodeResource>(client, KINDS.node, { signal });
    const pools = new WatchCache<PoolResource>(client, flavour.machineConfigPool, { signal });
    const configs = new WatchCache<MachineConfigResource>(client, flavour.machineConfig, { signal });
    await Promise.all([nodes.synced(), pools.synced(), configs.synced()]);
    const updates = { isRunning: () => Promise.resolve(false) };
    const dependencies = { client, flavour, cluster, nodes, pools, configs, updates, now: Date.now };
    return {
      dependencies,
      activities: createControlActivities(dependencies),
      caughtUp: async () => {
        await this.shows(nodes, KINDS.node);
        await this.shows(pools, flavour.machineConfigPool);
      },
    };
  }

  /** Resolves when a cache shows every object that the API server has now, in that version or a later one. */
  async shows(cache: WatchCache<NodeResource> | WatchCache<PoolResource>, resource: ResourceKind): Promise<void> {
    const live = new Map((await this.admin.list(resource)).map(({ metadata }) => [metadata.name, metadata]));
    await vi.waitFor(
      () => {
        for (const { metadata } of cache.list())
          if (!live.has(metadata.name)) throw new Error(`${metadata.name} stays`);
        for (const [name, { resourceVersion }] of live) {
          const seen = Number(cache.get(name)?.metadata.resourceVersion ?? 0);
          if (seen < Number(resourceVersion)) throw new Error(`${resource.kind} ${name} is not seen yet`);
        }
      },
      { ...PATIENCE, interval: 10 },
    );
  }

  node(name: string): Promise<NodeResource> {
    return this.admin.get<NodeResource>(KINDS.node, { name });
  }

  pool(name: string): Promise<PoolResource> {
    return this.admin.get<PoolResource>(this.flavour.machineConfigPool, { name });
  }

  /** A pool of the nodes and MachineConfigs that carry its name in a label. */
  createPool(name: string, spec: Partial<MachineConfigPoolSpec> = {}): Promise<PoolResource> {
    const selector = { matchLabels: { [POOL_LABEL]: name } };
    return this.admin.create<PoolResource>(this.flavour.machineConfigPool, {
      metadata: { name },
      spec: { machineConfigSelector: selector, nodeSelector: selector, ...spec },
    });
  }

  /** A MachineConfig of that pool; `ignition` without its version. */
  createConfig(
    pool: string,
    name: string,
    ignition: object,
    spec: Partial<MachineConfigSpec> = {},
  ): Promise<MachineConfigResource> {
    return this.admin.create<MachineConfigResource>(this.flavour.machineConfig, {
      metadata: { name, labels: { [POOL_LABEL]: pool } },
      spec: { config: { ignition: { version: '3.4.0' }, ...ignition }, ...spec },
    });
  }

  /** Nodes of that pool, in this order. */
  async createMembers(pool: string, nodes: readonly LabNode[]): Promise<void> {
    await this.kubernetes.createNodes(
      nodes.map((node) => ({ ...node, labels: { ...node.labels, [POOL_LABEL]: pool } })),
    );
  }

  /** Writes, as the node, what its worker writes when it registers or moves on. */
  async say(
    name: string,
    says: { current?: string; state?: string; reason?: string; applying?: string },
  ): Promise<NodeResource> {
    const { annotations: keys } = this.flavour;
    const { current = EMPTY_CONFIG_NAME, state = 'Done', reason = '', applying = null } = says;
    const annotations = {
      [DRYDOCK_ANNOTATIONS.worker]: '0.1.0',
      [DRYDOCK_ANNOTATIONS.applying]: applying,
      [keys.currentConfig]: current,
      [keys.state]: state,
      [keys.reason]: reason,
    };
    const client = await this.asNode(name);
    return client.patch<NodeResource>(KINDS.node, { name }, { metadata: { annotations } });
  }

  /** Standard output; rejects with what kubectl says where it fails. */
  async kubectl(...args: string[]): Promise<string> {
    const { kubectl, kubeconfigPath } = this.kubernetes;
    // Its own cache: the default is in the user's home, and remembers another lab that had the same port.
    const cache = join(this.#lab.directory, 'kubectl-cache');
    return (await run(kubectl, ['--kubeconfig', kubeconfigPath, '--cache-dir', cache, ...args])).stdout;
  }

  #open(kubeconfigPath: string): ClosableKubernetesClient {
    const client = createKubernetesClient({ kubeconfigPath });
    this.#clients.push(client);
    return client;
  }
}

/** Name to resourceVersion: equal before and after means that nobody wrote. */
export function versionsOf(objects: readonly KubernetesObject[]): Record<string, string | undefined> {
  return Object.fromEntries(objects.map(({ metadata }) => [metadata.name, metadata.resourceVersion]));
}
