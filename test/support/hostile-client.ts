import { Client, type WorkflowHandle } from '@temporalio/client';
import { ApplicationFailure } from '@temporalio/common';
import { bundleWorkflowCode, DefaultLogger, NativeConnection, Runtime, Worker } from '@temporalio/worker';
import { randomUUID } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import type { LabTemporal } from '../../dev/lab.js';
import { nodeTaskQueue } from '../../workflows/contract/ids.js';
import type { callActivity, HostileAnswer, HostileCall } from './hostile-workflows.js';

const HOSTILE_QUEUE = 'hostile';
const CALL_SECONDS = 20;

Runtime.install({ logger: new DefaultLogger('ERROR') });

type Activity = (input: never) => unknown;

interface HostileWorker {
  readonly worker: Worker;
  readonly finished: Promise<void>;
  readonly connection: NativeConnection;
}

/** The steps of a node, as its worker names them. */
export const NODE_STEPS = ['prepare', 'cordon', 'drain', 'apply', 'reboot', 'confirm', 'uncordon', 'release'] as const;

function leaveToOthers(): never {
  throw ApplicationFailure.create({ message: 'somebody else may', type: 'Hostile', nextRetryDelay: 100 });
}

/** May do everything in Temporal, and nothing in Kubernetes. */
export class HostileClient {
  readonly temporal: Client;
  readonly #server: Pick<LabTemporal, 'address' | 'namespace'>;
  readonly #connection: NativeConnection;
  readonly #workers: HostileWorker[] = [];

  private constructor(server: Pick<LabTemporal, 'address' | 'namespace'>, connection: NativeConnection) {
    this.#server = server;
    this.#connection = connection;
    this.temporal = new Client({ connection, namespace: server.namespace });
  }

  static async connect(server: Pick<LabTemporal, 'address' | 'namespace'>): Promise<HostileClient> {
    const hostile = new HostileClient(server, await NativeConnection.connect({ address: server.address }));
    await hostile.#serve(HOSTILE_QUEUE, { workflows: 'hostile-workflows.ts' });
    return hostile;
  }

  async close(): Promise<void> {
    await Promise.all(this.#workers.splice(0).map(end));
    await this.#connection.close();
  }

  /** Has an activity done by whoever polls the queue, by a workflow of its own. */
  ask(taskQueue: string, activity: string, ...args: unknown[]): Promise<HostileAnswer> {
    const call: HostileCall = { taskQueue, activity, args, seconds: CALL_SECONDS };
    return this.temporal.workflow.execute<typeof callActivity>('callActivity', {
      workflowId: `hostile/${randomUUID()}`,
      taskQueue: HOSTILE_QUEUE,
      args: [call],
    });
  }

  askNode(node: string, activity: string, ...args: unknown[]): Promise<HostileAnswer> {
    return this.ask(nodeTaskQueue(node), activity, ...args);
  }

  /** Answers, beside the product's own worker, what comes on a queue; of other steps it says only that it will not. */
  async answerOn(taskQueue: string, activities: Readonly<Record<string, Activity>>): Promise<void> {
    const others = Object.fromEntries(NODE_STEPS.map((step) => [step, leaveToOthers]));
    await this.#serve(taskQueue, { activities: { ...others, ...activities } });
  }

  /** Takes workflow tasks of a queue, with other workflows under the same names. */
  async takeWorkflowTasksOf(taskQueue: string): Promise<void> {
    await this.#serve(taskQueue, { workflows: 'hostile-run-books.ts' });
  }

  /** Ends every worker of the hostile client but the one that runs its own calls. */
  async withdraw(): Promise<void> {
    await Promise.all(this.#workers.splice(1).map(end));
  }

  /** Workflows of the product that run at the moment. */
  async running(): Promise<WorkflowHandle[]> {
    const handles: WorkflowHandle[] = [];
    for await (const { workflowId } of this.temporal.workflow.list({ query: 'ExecutionStatus = "Running"' })) {
      if (!workflowId.startsWith('hostile/')) handles.push(this.temporal.workflow.getHandle(workflowId));
    }
    return handles;
  }

  async #serve(taskQueue: string, code: { workflows?: string; activities?: Readonly<Record<string, Activity>> }) {
    const { workflows, activities } = code;
    // One each: the SDK refuses a second worker for the same queue on one connection.
    const connection = await NativeConnection.connect({ address: this.#server.address });
    const worker = await Worker.create({
      connection,
      namespace: this.#server.namespace,
      taskQueue,
      // As the product's own workers of nodes: each gets about every other task.
      maxConcurrentActivityTaskPolls: 1,
      ...(activities === undefined ? {} : { activities }),
      ...(workflows === undefined ? {} : { workflowBundle: await bundleOf(workflows) }),
    });
    this.#workers.push({ worker, connection, finished: worker.run() });
  }
}

async function end({ worker, connection, finished }: HostileWorker): Promise<void> {
  worker.shutdown();
  await finished;
  await connection.close();
}

function bundleOf(file: string) {
  const workflowsPath = fileURLToPath(new URL(file, import.meta.url));
  return bundleWorkflowCode({ workflowsPath, logger: new DefaultLogger('ERROR') });
}
