import { temporal } from '@temporalio/proto';
import { TestWorkflowEnvironment } from '@temporalio/testing';
import { Worker } from '@temporalio/worker';
import { createControlActivities } from '../../activities/cluster/create-control-activities.js';
import type {
  MachineConfigResource,
  NodeResource,
  PoolResource,
} from '../../activities/cluster/control-dependencies.js';
import { KINDS, type KubernetesObject } from '../../activities/kubernetes/client.js';
import { WatchCache } from '../../activities/kubernetes/watch-cache.js';
import { readLabSettings } from '../../dev/settings.js';
import { ensureTemporalTestServer } from '../../dev/tools/temporal-tools.js';
import type { ResourceKind } from '../../machine-config/api/flavour.js';
import { CONTROL_TASK_QUEUE, nodeTaskQueue, rollOutPoolId } from '../../workflows/contract/ids.js';
import { DEFAULT_TUNING, type RollOutPoolInput } from '../../workflows/contract/inputs.js';
import { rolloutStatus } from '../../workflows/contract/messages.js';
import { SEARCH_ATTRIBUTES } from '../../workflows/contract/search-attributes.js';
import { rollOutPool } from '../../workflows/index.js';
import { FakeCluster } from './fake-cluster.js';
import { SimulatedNode } from './simulated-node.js';
import { flavour, workflowBundle } from './workflow-lab.js';

const KEYWORD = temporal.api.enums.v1.IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD;
/** A turn a minute for days is what takes time here, and shows nothing. */
export const TICK_SECONDS = 600;
const POOL = 'worker';
const CLUSTER = 'cluster-uid';

/**
 * The real workflows and decisions on a Temporal server that skips the time in which nothing
 * happens: hours of waiting in a moment. For timers only; the clock of the decisions is that of the workflow.
 */
export class SkippingLab {
  readonly environment: TestWorkflowEnvironment;
  readonly cluster = new FakeCluster();
  /** Node name to the workflow's time, in epoch milliseconds, at which it was last granted a slot. */
  readonly startedAt = new Map<string, number>();
  /** Runs at every turn with the workflow's time: people who do something at a certain hour. */
  onTurn: (now: number) => Promise<void> | void = () => undefined;
  readonly #watching = new AbortController();
  readonly #workers: { worker: Worker; finished: Promise<void> }[] = [];
  #now = Date.now();

  private constructor(environment: TestWorkflowEnvironment) {
    this.environment = environment;
  }

  static async start(): Promise<SkippingLab> {
    const path = await ensureTemporalTestServer(readLabSettings(), () => undefined);
    const environment = await TestWorkflowEnvironment.createTimeSkipping({
      server: { executable: { type: 'existing-path', path } },
    });
    await environment.connection.operatorService.addSearchAttributes({
      namespace: environment.client.options.namespace,
      searchAttributes: Object.fromEntries(Object.values(SEARCH_ATTRIBUTES).map(({ name }) => [name, KEYWORD])),
    });
    const lab = new SkippingLab(environment);
    await lab.#startControl();
    return lab;
  }

  /** The workflow's time at its last turn, in epoch milliseconds. */
  get now(): number {
    return this.#now;
  }

  async stop(): Promise<void> {
    for (const { worker } of this.#workers) worker.shutdown();
    await Promise.all(this.#workers.map(({ finished }) => finished));
    this.#watching.abort();
    await this.environment.teardown();
  }

  /** A pool with a target and nodes that run another config, oldest first. */
  async addPool(nodes: number, spec: Partial<PoolResource['spec']>): Promise<SimulatedNode[]> {
    this.cluster.add<PoolResource>(flavour.machineConfigPool, {
      metadata: { name: POOL },
      spec: { nodeSelector: { matchLabels: { pool: POOL } }, configuration: { name: 'rendered-worker-b' }, ...spec },
    });
    const made: SimulatedNode[] = [];
    for (let index = 1; index <= nodes; index += 1) made.push(await this.#addNode(`n${index}`, index));
    return made;
  }

  /** Rolls the pool out to its end, skipping the time in which nothing happens. */
  async rollOut() {
    const handle = await this.environment.client.workflow.start(rollOutPool, {
      workflowId: rollOutPoolId(POOL),
      taskQueue: CONTROL_TASK_QUEUE,
      args: [this.#input()],
    });
    return {
      result: () => handle.result(),
      status: () => handle.query(rolloutStatus),
      events: async () => (await handle.describe()).historyLength,
    };
  }

  async #addNode(name: string, age: number): Promise<SimulatedNode> {
    const node = this.cluster.add<NodeResource>(KINDS.node, {
      metadata: {
        name,
        labels: { pool: POOL },
        creationTimestamp: new Date(Date.UTC(2026, 0, 1) + age * 1000).toISOString(),
      },
      status: { conditions: [{ type: 'Ready', status: 'True' }] },
    });
    const simulated = new SimulatedNode(this.cluster, flavour, node, () => this.#now);
    await simulated.register('rendered-worker-a');
    await this.#work({ taskQueue: nodeTaskQueue(name), activities: simulated.activities() });
    return simulated;
  }

  #input(): RollOutPoolInput {
    return { cluster: CLUSTER, pool: POOL, tuning: { ...DEFAULT_TUNING, tickSeconds: TICK_SECONDS } };
  }

  async #startControl(): Promise<void> {
    const [nodes, pools, configs] = await Promise.all([
      this.#cache<NodeResource>(KINDS.node),
      this.#cache<PoolResource>(flavour.machineConfigPool),
      this.#cache<MachineConfigResource>(flavour.machineConfig),
    ]);
    const activities = createControlActivities({
      client: this.cluster,
      flavour,
      cluster: CLUSTER,
      nodes,
      pools,
      configs,
      updates: { isRunning: () => Promise.resolve(true) },
      now: () => this.#now,
    });
    await this.#work({
      taskQueue: CONTROL_TASK_QUEUE,
      workflowBundle: await workflowBundle(),
      activities: {
        ...activities,
        planTurn: async (input: Parameters<typeof activities.planTurn>[0]) => {
          this.#now = input.now;
          await this.onTurn(input.now);
          return activities.planTurn(input);
        },
        assign: async (input: Parameters<typeof activities.assign>[0]) => {
          const grant = await activities.assign(input);
          if (input.intent === 'start' && grant.outcome === 'granted') this.startedAt.set(input.node, this.#now);
          return grant;
        },
      },
    });
  }

  async #cache<T extends KubernetesObject>(resource: ResourceKind): Promise<WatchCache<T>> {
    const cache = new WatchCache<T>(this.cluster, resource, { signal: this.#watching.signal });
    await cache.synced();
    return cache;
  }

  async #work(options: Pick<Parameters<typeof Worker.create>[0], 'taskQueue' | 'activities' | 'workflowBundle'>) {
    const worker = await Worker.create({
      connection: this.environment.nativeConnection,
      namespace: this.environment.client.options.namespace,
      ...options,
    });
    this.#workers.push({ worker, finished: worker.run() });
  }
}
