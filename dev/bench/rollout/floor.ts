import { heartbeat } from '@temporalio/activity';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Client, Connection } from '@temporalio/client';
import { DefaultLogger, NativeConnection, Runtime, Worker } from '@temporalio/worker';
import type { NodeFacts, PoolFacts } from '../../../machine-config/pool/facts.js';
import { planTurn } from '../../../machine-config/pool/plan-turn.js';
import type { ControlActivities, NodeActivities } from '../../../workflows/contract/activities.js';
import { CONTROL_TASK_QUEUE, nodeTaskQueue, rollOutPoolId } from '../../../workflows/contract/ids.js';
import { DEFAULT_TUNING, type RollOutPoolInput } from '../../../workflows/contract/inputs.js';
import { SEARCH_ATTRIBUTES } from '../../../workflows/contract/search-attributes.js';
import type { LabTemporal } from '../../temporal.js';
import type { Log } from '../../tools/cache.js';
import { readHistories, type Histories } from './histories.js';
import type { RolloutBenchOptions } from './options.js';

const POOL = 'floor';
const TARGET = 'rendered-floor-after';
const BEFORE = 'rendered-floor-before';
const HEARTBEAT_MS = 5_000;
const WORKFLOWS = fileURLToPath(new URL('../../../workflows/index.ts', import.meta.url));

/**
 * What the workflows alone cost: the same workflows on the same server with one queue a node, where nothing is done in
 * the activities but to wait for the step. No engine built on these workflows can be faster.
 */
export async function measureFloor(temporal: LabTemporal, options: RolloutBenchOptions, log: Log): Promise<Histories> {
  Runtime.install({ logger: new DefaultLogger('ERROR') });
  const { address, namespace } = temporal;
  const connection = await NativeConnection.connect({ address });
  const forClient = await Connection.connect({ address });
  const client = new Client({ connection: forClient, namespace });
  const pool = new PlayedPool(options);
  const workers = await Promise.all([
    Worker.create({
      connection,
      namespace,
      taskQueue: CONTROL_TASK_QUEUE,
      workflowsPath: WORKFLOWS,
      activities: pool.control(),
    }),
    ...pool.names.map((name) =>
      Worker.create({
        connection,
        namespace,
        taskQueue: nodeTaskQueue(name),
        activities: pool.node(name),
        maxConcurrentActivityTaskExecutions: 2,
        maxConcurrentActivityTaskPolls: 1,
      }),
    ),
  ]);
  const ended = workers.map((worker) => worker.run());
  const since = Date.now();
  try {
    log(`floor: ${options.nodes} nodes with nothing to do but to wait`);
    const input: RollOutPoolInput = { cluster: POOL, pool: POOL, tuning: DEFAULT_TUNING };
    await client.workflow.execute('rollOutPool', {
      workflowId: rollOutPoolId(POOL),
      taskQueue: CONTROL_TASK_QUEUE,
      args: [input],
      typedSearchAttributes: [{ key: SEARCH_ATTRIBUTES.pool, value: POOL }],
    });
    return await readHistories({ client, pool: POOL, nodes: options.nodes, since });
  } finally {
    for (const worker of workers) worker.shutdown();
    await Promise.all(ended);
    await forClient.close();
    await connection.close();
  }
}

/** A pool that is only in memory: whatever is asked of it is done at once. */
class PlayedPool {
  readonly names: readonly string[];
  private readonly facts: Map<string, NodeFacts>;
  private readonly pool: PoolFacts;
  private readonly stepMs: number;

  constructor({ nodes, maxUnavailable, stepSeconds }: RolloutBenchOptions) {
    this.names = Array.from({ length: nodes }, (_, index) => `floor-${index + 1}`);
    this.facts = new Map(this.names.map((name) => [name, nodeBefore(name)]));
    this.pool = { name: POOL, uid: POOL, paused: false, deleting: false, target: TARGET, maxUnavailable };
    this.stepMs = stepSeconds * 1000;
  }

  control(): ControlActivities {
    return {
      planTurn: ({ inFlight, resting, now }) =>
        Promise.resolve(
          planTurn({
            pool: this.pool,
            members: [...this.facts.values()],
            inFlight: Object.keys(inFlight),
            gone: [],
            resting,
            now,
          }),
        ),
      assign: ({ node }) => {
        this.change(node, { desired: TARGET });
        return Promise.resolve({ outcome: 'granted', target: TARGET, current: BEFORE });
      },
      syncPool: () => Promise.resolve({ exists: true, needsRollout: true, target: TARGET }),
      clearReboot: () => Promise.resolve({ clear: true }),
      checkChildren: () => Promise.resolve({ closed: [] }),
      renderPool: () => Promise.resolve({ outcome: 'poolGone' }),
    };
  }

  node(name: string): NodeActivities {
    const boots = { bootId: 'boot-1', rebooted: true };
    return {
      prepare: () => Promise.resolve(PLAN),
      cordon: () => Promise.resolve({ ours: true }),
      drain: () => Promise.resolve({ drained: true, evicted: 0, remaining: 0, blockers: [] }),
      apply: async () => {
        await this.waitForStep();
        return { reboot: true, bootId: 'boot-0', filesWritten: 1, unitsChanged: 0 };
      },
      reboot: () => Promise.resolve({ requested: true, oldBootId: 'boot-0' }),
      confirm: () => Promise.resolve(boots),
      uncordon: () => {
        this.change(name, { current: TARGET });
        return Promise.resolve({ uncordoned: true });
      },
      release: () => Promise.resolve({ uncordoned: true }),
    };
  }

  private change(name: string, changes: Partial<NodeFacts>): void {
    this.facts.set(name, { ...nodeBefore(name), ...this.facts.get(name), ...changes });
  }

  private async waitForStep(): Promise<void> {
    const beat = setInterval(() => heartbeat(), HEARTBEAT_MS);
    await sleep(this.stepMs).finally(() => clearInterval(beat));
  }
}

const PLAN = {
  from: BEFORE,
  target: TARGET,
  disruption: 'reboot',
  changes: { files: 1, units: 0, sshKeys: 0, kernelArguments: 0 },
  pods: 0,
  summary: '1 file; reboot',
} as const;

function nodeBefore(name: string): NodeFacts {
  return {
    name,
    uid: name,
    createdAt: '2026-01-01T00:00:00Z',
    labels: {},
    deleting: false,
    unschedulable: false,
    ready: true,
    bootId: 'boot-0',
    worker: '0.0.0',
    current: BEFORE,
    desired: BEFORE,
    state: 'Done',
  };
}
