import type { Client, WorkflowExecutionInfo } from '@temporalio/client';
import { waitUntil } from '../../processes/wait-until.js';
import { rollOutPoolId } from '../../../workflows/contract/ids.js';
import { SEARCH_ATTRIBUTES } from '../../../workflows/contract/search-attributes.js';

/** What the workflows of a rollout left behind. */
export interface Histories {
  /** From the first start of a run of `rollout/<pool>` to the last end, in seconds. */
  readonly makespan: number;
  readonly startedAt: number;
  readonly endedAt: number;
  /** Of the updates of nodes alone, on average. */
  readonly eventsPerUpdate: number;
  /** Of everything that was run for the pool, a node. */
  readonly eventsPerNode: number;
  readonly largestRunEvents: number;
  /** In bytes. */
  readonly largestRunSize: number;
  readonly rolloutRuns: number;
  readonly updates: number;
}

/** Visibility is told of an end a while after it. */
const VISIBILITY_TIMEOUT_MS = 120_000;
/** Of clocks and rounding: visibility keeps milliseconds. */
const SLACK_MS = 1_000;

export interface HistoriesOf {
  readonly client: Client;
  readonly pool: string;
  readonly nodes: number;
  /** Epoch milliseconds before which nothing counts. */
  readonly since: number;
}

/** Reads the counts of events of everything that ran for the pool, once all of it is there to be read. */
export async function readHistories(of: HistoriesOf): Promise<Histories> {
  const runs = await waitUntil(
    async () => {
      const found = await listRuns(of);
      const closed = found.filter(({ status }) => status.name !== 'RUNNING');
      const isWhole = updatesIn(closed).length >= of.nodes && rolloutsIn(closed, of.pool).length > 0;
      return isWhole && rolloutsIn(found, of.pool).every(({ status }) => status.name !== 'RUNNING') && found;
    },
    { what: `the ended workflows of ${of.pool} to be listed`, timeoutMs: VISIBILITY_TIMEOUT_MS, intervalMs: 1_000 },
  );
  return summarise(runs, of);
}

async function listRuns({ client, pool, since }: HistoriesOf): Promise<WorkflowExecutionInfo[]> {
  const from = new Date(since - SLACK_MS).toISOString();
  const query = `${SEARCH_ATTRIBUTES.pool.name} = "${pool}" AND StartTime >= "${from}"`;
  const runs: WorkflowExecutionInfo[] = [];
  for await (const run of client.workflow.list({ query })) runs.push(run);
  return runs;
}

function summarise(runs: readonly WorkflowExecutionInfo[], { pool, nodes }: HistoriesOf): Histories {
  const rollouts = rolloutsIn(runs, pool);
  const updates = updatesIn(runs);
  const startedAt = Math.min(...rollouts.map(({ startTime }) => startTime.getTime()));
  const endedAt = Math.max(...rollouts.map(({ closeTime }) => closeTime?.getTime() ?? 0));
  return {
    makespan: (endedAt - startedAt) / 1000,
    startedAt,
    endedAt,
    eventsPerUpdate: eventsOf(updates) / nodes,
    eventsPerNode: (eventsOf(updates) + eventsOf(rollouts)) / nodes,
    largestRunEvents: Math.max(...runs.map(({ historyLength }) => historyLength)),
    largestRunSize: Math.max(...runs.map(({ historySize }) => historySize ?? 0)),
    rolloutRuns: rollouts.length,
    updates: updates.length,
  };
}

function rolloutsIn(runs: readonly WorkflowExecutionInfo[], pool: string): WorkflowExecutionInfo[] {
  return runs.filter(({ workflowId }) => workflowId === rollOutPoolId(pool));
}

function updatesIn(runs: readonly WorkflowExecutionInfo[]): WorkflowExecutionInfo[] {
  return runs.filter(({ type }) => type === 'updateNode');
}

function eventsOf(runs: readonly WorkflowExecutionInfo[]): number {
  return runs.reduce((total, { historyLength }) => total + historyLength, 0);
}
