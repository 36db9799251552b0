import { TestWorkflowEnvironment } from '@temporalio/testing';
import { Worker } from '@temporalio/worker';
import { startLab, type Lab } from '../../dev/lab.js';
import type { ControlActivities, NodeActivities } from '../../workflows/contract/activities.js';
import { CONTROL_TASK_QUEUE, nodeTaskQueue, rollOutPoolId } from '../../workflows/contract/ids.js';
import type { PoolTuning } from '../../workflows/contract/inputs.js';
import { SEARCH_ATTRIBUTES } from '../../workflows/contract/search-attributes.js';
import { TEST_TUNING, workflowBundle } from './workflow-lab.js';

/** The real workflows on a real Temporal server, with activities that the test plays: there is no cluster behind them. */
export class BareTemporal {
  readonly #lab: Lab;
  readonly #environment: TestWorkflowEnvironment;

  private constructor(lab: Lab, environment: TestWorkflowEnvironment) {
    this.#lab = lab;
    this.#environment = environment;
  }

  static async start(): Promise<BareTemporal> {
    const lab = await startLab({ kubernetes: false });
    const { address, namespace } = lab.temporal;
    return new BareTemporal(lab, await TestWorkflowEnvironment.createFromExistingServer({ address, namespace }));
  }

  async stop(): Promise<void> {
    await this.#environment.teardown();
    await this.#lab.stop();
  }

  get client() {
    return this.#environment.client;
  }

  /** Runs the workflows, and the activities of the control queue. */
  async controlWorker(activities: Partial<ControlActivities>): Promise<Worker> {
    return this.#worker({ taskQueue: CONTROL_TASK_QUEUE, workflowBundle: await workflowBundle(), activities });
  }

  nodeWorker(node: string, activities: Partial<NodeActivities>): Promise<Worker> {
    return this.#worker({ taskQueue: nodeTaskQueue(node), activities });
  }

  /** Starts the rollout of a pool, as the pool's workflow would. */
  startRollout(pool: string, tuning: PoolTuning = TEST_TUNING) {
    return this.client.workflow.start('rollOutPool', {
      workflowId: rollOutPoolId(pool),
      taskQueue: CONTROL_TASK_QUEUE,
      args: [{ cluster: 'cluster-1', pool, tuning }],
      typedSearchAttributes: [{ key: SEARCH_ATTRIBUTES.pool, value: pool }],
    });
  }

  #worker(options: Pick<Parameters<typeof Worker.create>[0], 'taskQueue' | 'workflowBundle' | 'activities'>) {
    const { namespace } = this.#lab.temporal;
    return Worker.create({ connection: this.#environment.nativeConnection, namespace, ...options });
  }
}
