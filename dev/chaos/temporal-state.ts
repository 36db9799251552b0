import { Client, Connection } from '@temporalio/client';
import proto from '@temporalio/proto';
import { CONTROL_TASK_QUEUE } from '../../workflows/contract/ids.js';
import type { LabTemporal } from '../temporal.js';
import { within } from './within.js';

const { EventType, PendingActivityState, TaskQueueType } = proto.temporal.api.enums.v1;
type PendingActivity = proto.temporal.api.workflow.v1.IPendingActivityInfo;

/** A server that hangs is one of the things to be told. */
const ANSWER_LIMIT_MS = 10_000;
const CONNECT_LIMIT_MS = 3_000;
const LONGEST_FAILURE = 160;

/**
 * What Temporal itself says of everything that runs, asked past whatever the test has put in the way: each open workflow
 * with what it waits for, and whether the control workers ask for work. Never rejects: what cannot be asked is told.
 */
export async function describeTemporal({
  address,
  namespace,
}: Pick<LabTemporal, 'address' | 'namespace'>): Promise<string[]> {
  try {
    return await within(ANSWER_LIMIT_MS, 'Temporal to tell what it does', askTemporal(address, namespace));
  } catch (error) {
    return [`Temporal does not tell: ${error instanceof Error ? error.message : String(error)}`];
  }
}

async function askTemporal(address: string, namespace: string): Promise<string[]> {
  const connection = await Connection.connect({ address, connectTimeout: CONNECT_LIMIT_MS });
  try {
    const client = new Client({ connection, namespace });
    const open: string[] = [];
    for await (const { workflowId } of client.workflow.list({ query: "ExecutionStatus = 'Running'" })) {
      open.push(workflowId);
    }
    const workflows = await Promise.all(open.sort().map((id) => describeWorkflow(client, id)));
    return [
      ...workflows,
      ...(await describePollers(client, 'WORKFLOW')),
      ...(await describePollers(client, 'ACTIVITY')),
    ];
  } finally {
    await connection.close();
  }
}

async function describeWorkflow(client: Client, workflowId: string): Promise<string> {
  const { raw, historyLength } = await client.workflow.getHandle(workflowId).describe();
  const { pendingActivities, pendingWorkflowTask: task } = raw;
  return [
    `workflow ${workflowId}: ${historyLength} events, the last ${await describeLastEvent(client, workflowId)}`,
    ...(task == null
      ? []
      : [`workflow task ${task.startedTime == null ? 'not taken' : 'taken'}, attempt ${task.attempt ?? 1}`]),
    ...(pendingActivities ?? []).map(describeActivity),
  ].join('; ');
}

async function describeLastEvent(client: Client, workflowId: string): Promise<string> {
  const { history } = await client.workflowService.getWorkflowExecutionHistoryReverse({
    namespace: client.options.namespace,
    execution: { workflowId },
    maximumPageSize: 1,
  });
  const { eventType, eventTime } = history?.events?.[0] ?? {};
  return `${EventType[eventType ?? 0]?.replace('EVENT_TYPE_', '') ?? '?'} ${secondsSince(eventTime) ?? '?'} s ago`;
}

function describeActivity({
  activityType,
  state,
  attempt,
  lastWorkerIdentity,
  lastFailure,
  ...times
}: PendingActivity) {
  const started = secondsSince(times.lastStartedTime);
  const heard = secondsSince(times.lastHeartbeatTime);
  return [
    activityType?.name ?? 'an activity',
    PendingActivityState[state ?? 0]?.replace('PENDING_ACTIVITY_STATE_', '').toLowerCase(),
    `attempt ${attempt ?? 1}`,
    ...(started === undefined ? [] : [`begun ${started} s ago`]),
    ...(heard === undefined ? [] : [`heard of ${heard} s ago`]),
    ...(lastWorkerIdentity ? [`by ${lastWorkerIdentity}`] : []),
    ...(lastFailure?.message ? [`failed before: ${lastFailure.message.slice(0, LONGEST_FAILURE)}`] : []),
  ].join(', ');
}

/** Of the control workers. */
async function describePollers(client: Client, tasks: 'WORKFLOW' | 'ACTIVITY'): Promise<string[]> {
  const { pollers } = await client.workflowService.describeTaskQueue({
    namespace: client.options.namespace,
    taskQueue: { name: CONTROL_TASK_QUEUE },
    taskQueueType: TaskQueueType[`TASK_QUEUE_TYPE_${tasks}`],
  });
  const told = pollers.map(({ identity, lastAccessTime: at }) => `${identity ?? '?'} ${secondsSince(at) ?? '?'} s ago`);
  return [`${tasks.toLowerCase()} tasks of the control workers are polled for by ${told.join(', ') || 'nobody'}`];
}

type Timestamp = proto.google.protobuf.ITimestamp | null | undefined;

function secondsSince(time: Timestamp): number | undefined {
  return time == null ? undefined : Math.round(Date.now() / 1000 - Number(time.seconds ?? 0));
}
