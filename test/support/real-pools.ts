import { createKubernetesClient, type ClosableKubernetesClient } from '../../activities/kubernetes/rest.js';
import { KINDS, type KubernetesObject } from '../../activities/kubernetes/client.js';
import { install } from '../../client/install.js';
import { startDrydock, type DrydockProcesses } from '../../dev/drydock-processes.js';
import type { Lab } from '../../dev/lab.js';
import { startRealNodes, WORKER_UNIT, type RealNode, type RealNodeSpec } from '../../dev/real-nodes/real-node.js';
import { waitUntil } from '../../dev/processes/wait-until.js';
import { apiFlavour } from '../../machine-config/api/flavour.js';
import type { MachineConfig } from '../../machine-config/api/machine-config.js';
import type { MachineConfigPool } from '../../machine-config/api/machine-config-pool.js';
import type { NodeDisruptionPolicy } from '../../machine-config/api/node-disruption-policy.js';
import { nodeFacts, type NodeFacts, type NodeObject } from '../../machine-config/pool/facts.js';
import { renderedConfigs } from './ignition-validate.js';

const flavour = apiFlavour('openshift');
const ROLE = 'node-role.kubernetes.io';
/** Above a reboot of a real machine on a busy one, several times over. */
const WAIT_MS = 150_000;

/** Real nodes, each in a pool of its own that bears its name, so that what befalls one is nothing to the others. */
export class RealPools {
  readonly lab: Lab;
  readonly client: ClosableKubernetesClient;
  readonly processes: DrydockProcesses;
  readonly #revisions = new Map<string, number>();
  readonly nodes = new Map<string, RealNode>();

  private constructor(lab: Lab, client: ClosableKubernetesClient, processes: DrydockProcesses) {
    this.lab = lab;
    this.client = client;
    this.processes = processes;
  }

  static async start(lab: Lab, nodes: readonly RealNodeSpec[]): Promise<RealPools> {
    const client = createKubernetesClient({ kubeconfigPath: lab.kubernetes.kubeconfigPath });
    await install({ client, flavour });
    const processes = await startDrydock(lab, { nodes: [], tuning: { debounceSeconds: 1, settleSeconds: 1 } });
    const pools = new RealPools(lab, client, processes);
    for (const { name } of nodes) await pools.#createPool(name);
    const started = await startRealNodes(lab, {
      nodes: nodes.map((node) => ({ ...node, labels: { ...node.labels, [`${ROLE}/${node.name}`]: '' } })),
    });
    for (const node of started) pools.nodes.set(node.name, node);
    return pools;
  }

  async stop(): Promise<void> {
    await renderedConfigs.addStored(this.client, flavour);
    await this.client.close();
  }

  machine(name: string): RealNode {
    const node = this.nodes.get(name);
    if (node === undefined) throw new Error(`no real node ${name}`);
    return node;
  }

  /** What a MachineConfig of the node's pool shall say from now on. */
  async give(name: string, ignition: object, spec: Partial<NonNullable<MachineConfig['spec']>> = {}): Promise<void> {
    const revision = (this.#revisions.get(name) ?? 0) + 1;
    this.#revisions.set(name, revision);
    const full = { config: { ignition: { version: '3.4.0' }, ...ignition }, ...spec };
    const metadata = { name: `50-${name}`, labels: { [flavour.roleLabel]: name } };
    if (revision === 1) await this.client.create(flavour.machineConfig, { metadata, spec: full } as KubernetesObject);
    else {
      const found = await this.client.get(flavour.machineConfig, { name: metadata.name });
      await this.client.replace(flavour.machineConfig, { ...found, spec: full } as KubernetesObject);
    }
  }

  /** The disruption policies of the whole cluster. */
  async setPolicy(nodeDisruptionPolicy: NodeDisruptionPolicy): Promise<void> {
    // The control worker has made the object, which carries the policies in force.
    const singleton = { name: 'cluster' };
    await waitUntil(() => this.client.get(flavour.machineConfiguration, singleton).catch(() => false), {
      what: 'the MachineConfiguration to be there',
      timeoutMs: WAIT_MS,
    });
    await this.client.patch(flavour.machineConfiguration, singleton, { spec: { nodeDisruptionPolicy } });
  }

  async facts(name: string): Promise<NodeFacts> {
    return nodeFacts(await this.client.get<KubernetesObject & NodeObject>(KINDS.node, { name }), flavour);
  }

  async target(name: string): Promise<string> {
    const pool = await this.client.get<KubernetesObject & MachineConfigPool>(flavour.machineConfigPool, { name });
    return pool.spec.configuration?.name ?? '';
  }

  /** Resolves with the node's facts when they are as asked; an error tells what they are and what its worker logged. */
  async until(name: string, what: string, isSo: (facts: NodeFacts) => boolean | Promise<boolean>): Promise<NodeFacts> {
    let last: NodeFacts | undefined;
    try {
      return await waitUntil(
        async () => {
          last = await this.facts(name);
          return (await isSo(last)) && last;
        },
        { what: `${name}: ${what}`, timeoutMs: WAIT_MS, check: () => this.processes.control.assertRunning() },
      );
    } catch (error) {
      const log = await this.machine(name)
        .journal(WORKER_UNIT)
        .catch((cause: unknown) => `(no journal: ${String(cause)})`);
      const lines = log.trimEnd().split('\n').slice(-25).join('\n');
      const words = error instanceof Error ? error.message : String(error);
      throw new Error(`${words}\n${JSON.stringify(last)}\n${lines}`, { cause: error });
    }
  }

  /** It runs what its pool wants, another config than `before`, and is in service. */
  async untilUpdated(name: string, before: string): Promise<NodeFacts> {
    return this.until(name, 'updated', async ({ state, current, desired, unschedulable, ready }) => {
      const isDone = state === 'Done' && current !== before && current === desired && !unschedulable && ready;
      return isDone && current === (await this.target(name));
    });
  }

  /** Gives a config and waits until the node runs it. */
  async update(name: string, ...given: [ignition: object, spec?: Partial<NonNullable<MachineConfig['spec']>>]) {
    const { current = '' } = await this.facts(name);
    await this.give(name, ...given);
    return this.untilUpdated(name, current);
  }

  async #createPool(name: string): Promise<void> {
    await this.client.create(flavour.machineConfigPool, {
      metadata: { name },
      spec: {
        machineConfigSelector: {
          matchExpressions: [{ key: flavour.roleLabel, operator: 'In', values: ['worker', name] }],
        },
        nodeSelector: { matchLabels: { [`${ROLE}/${name}`]: '' } },
      },
    } as KubernetesObject);
  }
}
