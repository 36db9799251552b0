import { TestWorkflowEnvironment } from '@temporalio/testing';
import {
  bundleWorkflowCode,
  DefaultLogger,
  Runtime,
  Worker,
  type WorkflowBundleWithSourceMap,
} from '@temporalio/worker';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import pino from 'pino';
import { KINDS } from '../../activities/kubernetes/client.js';
import type { NodeResource, PoolResource } from '../../activities/cluster/control-dependencies.js';
import { startLab, type Lab } from '../../dev/lab.js';
import { apiFlavour, DRYDOCK_ANNOTATIONS } from '../../machine-config/api/flavour.js';
import { MACHINE_CONFIGURATION_NAME } from '../../machine-config/api/machine-configuration.js';
import { nodeTaskQueue, rollOutPoolId, updateNodeId } from '../../workflows/contract/ids.js';
import type { PoolTuning } from '../../workflows/contract/inputs.js';
import { nodeUpdateStatus } from '../../workflows/contract/messages.js';
import { startControlWorker, type ControlWorker } from '../../workers/control-worker.js';
import { FakeCluster } from './fake-cluster.js';
import { SimulatedNode } from './simulated-node.js';

export const flavour = apiFlavour('openshift');

/** Short, so that a test takes seconds, except what only a lost worker uses up: a busy machine is not one. The shape of waiting is the same. */
export const TEST_TUNING: PoolTuning = {
  debounceSeconds: 0.1,
  turnSeconds: 0.1,
  tickSeconds: 1,
  restSeconds: 1,
  settleSeconds: 0.2,
  statusSeconds: 0.2,
  node: {
    workerPresentSeconds: 20,
    stepSeconds: 20,
    heartbeatSeconds: 15,
    drainFirstSliceSeconds: 1,
    drainMaxSliceSeconds: 4,
    applyLimitSeconds: 60,
    rebootLimitSeconds: 60,
    confirmEverySeconds: 0.1,
    cleanUpSeconds: 20,
  },
};

const STOP_MILLISECONDS = 20_000;

Runtime.install({ logger: new DefaultLogger('ERROR') });

let bundle: Promise<WorkflowBundleWithSourceMap> | undefined;

/** The workflows, bundled once a process. */
export function workflowBundle(): Promise<WorkflowBundleWithSourceMap> {
  bundle ??= bundleWorkflowCode({
    workflowsPath: fileURLToPath(new URL('../../workflows/index.ts', import.meta.url)),
    logger: new DefaultLogger('ERROR'),
  });
  return bundle;
}

/**
 * The real workflows and cluster activities on a real Temporal server, over the one fake of the API server and simulated
 * nodes. Pools and nodes get names of their own in each test, since workflow ids are made of them.
 */
export class WorkflowLab {
  readonly environment: TestWorkflowEnvironment;
  readonly pools = flavour.machineConfigPool;
  readonly cluster: FakeCluster;
  readonly #lab: Lab;
  readonly #nodeWorkers = new Map<string, { worker: Worker; finished: Promise<void> }>();
  #control: ControlWorker | undefined;

  private constructor(lab: Lab, environment: TestWorkflowEnvironment, cluster: FakeCluster) {
    this.#lab = lab;
    this.environment = environment;
    this.cluster = cluster;
  }

  static async start(tuning: Partial<PoolTuning> = {}): Promise<WorkflowLab> {
    // The lab's server ends with this process, however that ends.
    const lab = await startLab({ kubernetes: false });
    const { address, namespace } = lab.temporal;
    const environment = await TestWorkflowEnvironment.createFromExistingServer({ address, namespace });
    const started = new WorkflowLab(lab, environment, new FakeCluster());
    await started.startControl(tuning);
    return started;
  }

  async startControl(tuning: Partial<PoolTuning> = {}): Promise<void> {
    this.#control = await this.startControlOf(this.cluster, tuning);
  }

  /** A control worker of any cluster on the same Temporal namespace; the caller stops it. */
  async startControlOf(cluster: FakeCluster, tuning: Partial<PoolTuning> = {}): Promise<ControlWorker> {
    return startControlWorker({
      kubernetes: cluster,
      flavour,
      connection: this.environment.nativeConnection,
      temporal: this.environment.client,
      workflows: { workflowBundle: await workflowBundle() },
      tuning: { ...TEST_TUNING, ...tuning },
      logger: pino({ level: 'silent' }),
    });
  }

  async stopControl(): Promise<void> {
    this.#control?.stop();
    await this.#control?.finished;
  }

  async stop(): Promise<void> {
    const stopped = Promise.all([
      this.stopControl(),
      ...[...this.#nodeWorkers.keys()].map((name) => this.stopNodeWorker(name)),
    ]);
    // A step that a failed test still holds never ends; the lab is taken down all the same.
    await Promise.race([stopped, setTimeout(STOP_MILLISECONDS, undefined, { ref: false })]);
    await this.environment.teardown();
    await this.#lab.stop();
  }

  /** A pool and its nodes, oldest first, registered and with their workers running. */
  async addPool(name: string, nodes: number, spec: Partial<PoolResource['spec']> = {}): Promise<SimulatedNode[]> {
    this.cluster.add<PoolResource>(flavour.machineConfigPool, {
      metadata: { name },
      spec: {
        machineConfigSelector: { matchLabels: { [flavour.roleLabel]: name } },
        nodeSelector: { matchLabels: { pool: name } },
        ...spec,
      },
    });
    const made: SimulatedNode[] = [];
    for (let index = 1; index <= nodes; index += 1) made.push(await this.addNode(name, `${name}-n${index}`, index));
    return made;
  }

  async addNode(pool: string, name: string, age = 1): Promise<SimulatedNode> {
    const node = this.cluster.add<NodeResource>(KINDS.node, {
      metadata: {
        name,
        labels: { pool },
        creationTimestamp: new Date(Date.UTC(2026, 0, 1) + age * 1000).toISOString(),
      },
      status: { conditions: [{ type: 'Ready', status: 'True' }] },
    });
    const simulated = new SimulatedNode(this.cluster, flavour, node);
    await simulated.register();
    await this.startNodeWorker(simulated);
    return simulated;
  }

  async startNodeWorker(node: SimulatedNode): Promise<void> {
    const worker = await Worker.create({
      connection: this.environment.nativeConnection,
      namespace: this.environment.client.options.namespace,
      taskQueue: nodeTaskQueue(node.name),
      activities: node.activities(),
      maxHeartbeatThrottleInterval: 100,
      defaultHeartbeatThrottleInterval: 100,
    });
    this.#nodeWorkers.set(node.name, { worker, finished: worker.run() });
  }

  async stopNodeWorker(name: string): Promise<void> {
    const running = this.#nodeWorkers.get(name);
    this.#nodeWorkers.delete(name);
    running?.worker.shutdown();
    await running?.finished;
  }

  /** One more config for the pool; each call makes another revision. */
  addConfig(pool: string, name: string, contents: string): void {
    this.cluster.add(flavour.machineConfig, {
      apiVersion: `${flavour.group}/${flavour.version}`,
      kind: 'MachineConfig',
      metadata: { name, labels: { [flavour.roleLabel]: pool } },
      spec: {
        config: {
          ignition: { version: '3.4.0' },
          storage: { files: [{ path: '/etc/motd', contents: { source: `data:,${encodeURIComponent(contents)}` } }] },
        },
      },
    } as never);
  }

  async changeConfig(name: string, contents: string): Promise<void> {
    await this.cluster.patch(
      flavour.machineConfig,
      { name },
      {
        spec: {
          config: {
            storage: { files: [{ path: '/etc/motd', contents: { source: `data:,${encodeURIComponent(contents)}` } }] },
          },
        },
      },
    );
  }

  pool(name: string): PoolResource {
    const pool = this.cluster.peek<PoolResource>(flavour.machineConfigPool, name);
    if (pool === undefined) throw new Error(`no pool ${name}`);
    return pool;
  }

  /** Name of the rendered config that the pool wants. */
  target(pool: string): string | undefined {
    return this.pool(pool).spec.configuration?.name;
  }

  condition(pool: string, type: string): string | undefined {
    return this.pool(pool).status?.conditions?.find((condition) => condition.type === type)?.status;
  }

  rollout(pool: string, runId?: string) {
    return this.environment.client.workflow.getHandle(rollOutPoolId(pool), runId);
  }

  update(node: string, runId?: string) {
    return this.environment.client.workflow.getHandle(updateNodeId(node), runId);
  }

  /** As `drydock stop --reason` and, with null, `drydock go`. */
  async stopEverything(reason: string | null): Promise<void> {
    const { machineConfiguration: kind } = flavour;
    const metadata = { name: MACHINE_CONFIGURATION_NAME };
    if (this.cluster.peek(kind, metadata.name) === undefined) this.cluster.add(kind, { metadata, spec: {} } as never);
    const annotations = { [DRYDOCK_ANNOTATIONS.stop]: reason };
    await this.cluster.patch(kind, metadata, { metadata: { annotations } });
  }

  /** What the running update of a node says that it does, or waits for. */
  async sentenceOf(node: string): Promise<string> {
    return (await this.update(node).query(nodeUpdateStatus)).sentence;
  }

  /** Every node runs the pool's present target, is Done and schedulable. */
  async untilUpdated(pool: string, nodes: readonly SimulatedNode[]): Promise<void> {
    await until(`every node of ${pool} updated`, () => {
      const target = this.target(pool);
      return (
        target !== undefined &&
        nodes.every(({ facts }) => facts.current === target && facts.state === 'Done' && !facts.unschedulable)
      );
    });
  }

  /** Adopted on a first revision of a config of the pool's name, so that the next one costs a reboot. */
  async addSettledPool(
    name: string,
    count: number,
    spec: Partial<PoolResource['spec']> = {},
  ): Promise<{ nodes: SimulatedNode[]; first: string }> {
    const nodes = await this.addPool(name, count, spec);
    this.addConfig(name, `50-${name}`, 'first');
    await this.untilUpdated(name, nodes);
    const first = this.target(name) ?? '';
    await until(
      `the rollout of ${name} ended`,
      async () => (await this.rollout(name).describe()).status.name !== 'RUNNING',
    );
    return { nodes, first };
  }

  /** Gives the pool's config other contents and waits until the pool wants them. */
  async revise(pool: string, contents: string): Promise<string> {
    const before = this.target(pool);
    await this.changeConfig(`50-${pool}`, contents);
    await until(`a new target of ${pool}`, () => this.target(pool) !== before);
    return this.target(pool) ?? '';
  }

  /** Highest number of the nodes that were out of service at one instant, from now on. */
  observeOverlap(nodes: readonly SimulatedNode[]): () => number {
    const names = new Set(nodes.map(({ name }) => name));
    const down = new Set<string>();
    let most = 0;
    this.cluster.observe<NodeResource>(KINDS.node, (_type, node) => {
      const { name } = node.metadata;
      if (!names.has(name)) return;
      const ready = node.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') === true;
      if (node.spec?.unschedulable === true || !ready) down.add(name);
      else down.delete(name);
      most = Math.max(most, down.size);
    });
    return () => most;
  }
}

/** Waits for a condition, and says what it waited for when it does not come. */
export async function until(
  what: string,
  condition: () => boolean | Promise<boolean>,
  limitMilliseconds = 180_000,
): Promise<void> {
  const deadline = Date.now() + limitMilliseconds;
  while (!(await condition())) {
    if (Date.now() > deadline) throw new Error(`waited in vain for: ${what}`);
    await setTimeout(20);
  }
}
