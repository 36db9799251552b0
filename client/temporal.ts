import {
  Client,
  Connection,
  isGrpcDeadlineError,
  isGrpcServiceError,
  WorkflowNotFoundError,
  WorkflowUpdateFailedError,
  WorkflowUpdateRPCTimeoutOrCancelledError,
} from '@temporalio/client';
import { loadClientConnectConfig } from '@temporalio/envconfig';
import { askPoolToLook } from '../activities/cluster/signal-pool.js';
import { managePoolId, rollOutPoolId, updateNodeId } from '../workflows/contract/ids.js';
import type { ManagePoolInput } from '../workflows/contract/inputs.js';
import {
  nodeUpdateStatus,
  rolloutStatus,
  type LookNowAnswer,
  type NodeUpdateStatus,
  type RolloutStatus,
} from '../workflows/contract/messages.js';
import { CommandError, lineOf } from './command-error.js';
import type { Engine, EngineView, RunState } from './engine.js';

/** Longest wait for one answer of Temporal. A query waits for a worker, and there may be none. */
const ANSWER_MILLISECONDS = 5000;

export interface TemporalSettings {
  /** `host:port`; else as the standard environment (TEMPORAL_ADDRESS, TEMPORAL_PROFILE, temporal.toml) says. */
  readonly address?: string | undefined;
  readonly namespace?: string | undefined;
  /** Default: the environment of the process. */
  readonly environment?: Readonly<Record<string, string | undefined>> | undefined;
}

/**
 * A connected client. Rejects with a CommandError (`unreachable`) of one line that names the address. Close its
 * `connection` when done.
 */
export async function connectTemporal(settings: TemporalSettings = {}): Promise<Client & { connection: Connection }> {
  const environment = settings.environment ?? process.env;
  const overrideEnvVars = Object.fromEntries(
    Object.entries(environment).filter((entry): entry is [string, string] => entry[1] !== undefined),
  );
  let address = settings.address ?? 'localhost:7233';
  try {
    const config = loadClientConnectConfig({ overrideEnvVars });
    address = settings.address ?? config.connectionOptions.address ?? address;
    const { tls, apiKey, metadata } = config.connectionOptions;
    const connection = await Connection.connect({
      address,
      connectTimeout: ANSWER_MILLISECONDS,
      ...(tls === undefined || tls === null ? {} : { tls }),
      ...(apiKey === undefined ? {} : { apiKey }),
      ...(metadata === undefined ? {} : { metadata }),
    });
    return new Client({ connection, namespace: settings.namespace ?? config.namespace ?? 'default' }) as Client & {
      connection: Connection;
    };
  } catch (error) {
    const what = `Temporal at ${address} was not reached: ${lineOf(error)}`;
    throw new CommandError('unreachable', `${what}; is the address right (--temporal-address, TEMPORAL_ADDRESS)?`, {
      cause: error,
    });
  }
}

/** The Engine on a real Temporal. */
export class TemporalEngine implements Engine {
  private readonly client: Client & { connection: Connection };
  private readonly answerMilliseconds: number;

  constructor(client: Client & { connection: Connection }, answerMilliseconds = ANSWER_MILLISECONDS) {
    this.client = client;
    this.answerMilliseconds = answerMilliseconds;
  }

  async startPool(input: ManagePoolInput): Promise<LookNowAnswer> {
    try {
      return await this.within(() => askPoolToLook(this.client, input));
    } catch (error) {
      throw this.whyNotStarted(managePoolId(input.pool), error);
    }
  }

  async view(pool: string): Promise<EngineView> {
    const [manager, rollout] = await Promise.all([this.look(managePoolId(pool)), this.look(rollOutPoolId(pool))]);
    const problem = manager.problem ?? rollout.problem;
    const known = { manager: manager.state, rollout: rollout.state, ...(problem === undefined ? {} : { problem }) };
    if (rollout.state !== 'running') return known;
    const view = { ...known, ...(rollout.startedAt === undefined ? {} : { startedAt: rollout.startedAt }) };
    try {
      return { ...view, status: await this.ask<RolloutStatus>(rollOutPoolId(pool), rolloutStatus.name) };
    } catch (error) {
      const why = isGrpcDeadlineError(error)
        ? `no worker answered within ${this.answerMilliseconds / 1000} s`
        : causeLine(error);
      return {
        ...view,
        problem: `${rollOutPoolId(pool)} does not say how far it is: ${why}; is the control worker running?`,
      };
    }
  }

  async nodeUpdates(nodes: readonly string[]): Promise<NodeUpdateStatus[]> {
    const answers = await Promise.allSettled(
      nodes.map((node) => this.ask<NodeUpdateStatus>(updateNodeId(node), nodeUpdateStatus.name)),
    );
    return answers.flatMap((answer) => (answer.status === 'fulfilled' ? [answer.value] : []));
  }

  async close(): Promise<void> {
    await this.client.connection.close();
  }

  private whyNotStarted(workflowId: string, error: unknown): CommandError {
    if (error instanceof WorkflowUpdateFailedError) {
      return new CommandError('refused', `no: ${causeLine(error)}`, { cause: error });
    }
    const start = `start ${workflowId} in Temporal namespace ${this.client.options.namespace}`;
    if (hasTimedOut(error)) {
      const message =
        `${start}: no worker answered within ${this.answerMilliseconds / 1000} s; ` +
        'is the control worker running? It looks at every pool when it starts';
      return new CommandError('unreachable', message, { cause: error });
    }
    const exit = isUnreachable(error) ? 'unreachable' : 'refused';
    return new CommandError(exit, `${start}: ${causeLine(error)}`, { cause: error });
  }

  private async look(workflowId: string): Promise<{ state: RunState; startedAt?: string; problem?: string }> {
    try {
      const { status, startTime } = await this.within(() => this.client.workflow.getHandle(workflowId).describe());
      return status.name === 'RUNNING'
        ? { state: 'running', startedAt: startTime.toISOString() }
        : { state: 'notRunning' };
    } catch (error) {
      if (error instanceof WorkflowNotFoundError) return { state: 'notRunning' };
      return { state: 'unknown', problem: `Temporal did not describe ${workflowId}: ${causeLine(error)}` };
    }
  }

  private ask<T>(workflowId: string, query: string): Promise<T> {
    return this.within(() => this.client.workflow.getHandle(workflowId).query<T>(query));
  }

  private within<T>(action: () => Promise<T>): Promise<T> {
    return this.client.connection.withDeadline(Date.now() + this.answerMilliseconds, action);
  }
}

function hasTimedOut(error: unknown): boolean {
  return (
    error instanceof WorkflowUpdateRPCTimeoutOrCancelledError ||
    isGrpcDeadlineError(error) ||
    (error instanceof Error && isGrpcDeadlineError(error.cause))
  );
}

/** gRPC's UNAVAILABLE; the SDK wraps it. */
const UNAVAILABLE = 14;

function isUnreachable(error: unknown): boolean {
  const cause = error instanceof Error ? error.cause : undefined;
  const codes: unknown[] = [error, cause].map((one) => (isGrpcServiceError(one) ? one.code : undefined));
  return codes.includes(UNAVAILABLE);
}

/** The SDK's own sentence (`Failed to describe workflow`) says less than its cause. */
function causeLine(error: unknown): string {
  const cause = error instanceof Error ? error.cause : undefined;
  return cause instanceof Error && cause.message !== '' ? lineOf(cause) : lineOf(error);
}
