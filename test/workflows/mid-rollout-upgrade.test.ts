import type { WorkflowBundleWithSourceMap } from '@temporalio/worker';
import pino from 'pino';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startControlWorker, type ControlWorker } from '../../workers/control-worker.js';
import { bundleChangedWorkflows, GUARDED_STEPS, UNGUARDED_STEPS } from '../support/changed-workflows.js';
import { RollingPool } from '../support/rolling-pool.js';
import { flavour, TEST_TUNING, until, workflowBundle, WorkflowLab } from '../support/workflow-lab.js';

describe('changes in mid-rollout', () => {
  let lab: WorkflowLab;
  let control: ControlWorker | undefined;
  beforeAll(async () => {
    lab = await WorkflowLab.start();
    await lab.stopControl();
  });
  afterAll(async () => {
    await stopControl();
    await lab.stop();
  });

  async function stopControl(): Promise<void> {
    control?.stop();
    await control?.finished;
  }

  /** Ends the control worker that runs, with all that it remembers, and starts one with these workflows. */
  async function upgradeTo(version: WorkflowBundleWithSourceMap): Promise<void> {
    await stopControl();
    control = await startControlWorker({
      kubernetes: lab.cluster,
      flavour,
      connection: lab.environment.nativeConnection,
      temporal: lab.environment.client,
      workflows: { workflowBundle: version },
      tuning: TEST_TUNING,
      logger: pino({ level: 'silent' }),
    });
  }

  const eventsOf = async (node: string, runId?: string) => (await lab.update(node, runId).fetchHistory()).events ?? [];

  /** Which of the guarded steps an update has taken. */
  async function stepsTaken(node: string): Promise<string[]> {
    const events = await eventsOf(node);
    const details = events.flatMap(({ markerRecordedEventAttributes: marker }) => Object.values(marker?.details ?? {}));
    const text = details.flatMap(({ payloads }) =>
      (payloads ?? []).map(({ data }) => Buffer.from(data ?? []).toString()),
    );
    return ['rest-before-slot', 'rest-before-applying'].filter((step) => text.some((one) => one.includes(step)));
  }

  it('the control worker upgraded to changed workflows while a node drains: that one goes on, and has the new steps still before it', async () => {
    await upgradeTo(await workflowBundle());
    const pool = await RollingPool.begin(lab, 'upgraded', { nodes: 3 });
    await upgradeTo(await bundleChangedWorkflows(GUARDED_STEPS));
    pool.letDrain();
    await lab.untilUpdated(pool.name, pool.nodes);
    await pool.untilRolloutEnds();
    pool.expectUpdates(pool.nodes.map((node) => [node, 1] as const));
    expect(pool.ledger.mostTaken).toBe(1);
    expect(await stepsTaken(pool.inDrain.name)).toEqual(['rest-before-applying']);
    expect(await stepsTaken(pool.next.name)).toEqual(['rest-before-slot', 'rest-before-applying']);
  });

  it('the control worker upgraded to workflows that cannot replay the drain: the node waits unharmed, and goes on when that is mended', async () => {
    await upgradeTo(await workflowBundle());
    const pool = await RollingPool.begin(lab, 'badly-upgraded', { nodes: 3 });
    const { runId } = await lab.update(pool.inDrain.name).describe();
    await upgradeTo(await bundleChangedWorkflows(UNGUARDED_STEPS));
    pool.letDrain();
    await until('its workflow fails to replay', async () =>
      (await eventsOf(pool.inDrain.name, runId)).some(
        ({ workflowTaskFailedEventAttributes: failed }) => failed != null,
      ),
    );
    expect(pool.inDrain.steps).not.toContain('apply');
    expect(pool.inDrain.facts).toMatchObject({ current: pool.first, desired: pool.second, unschedulable: true });
    pool.expectUntouched(pool.next);

    await upgradeTo(await bundleChangedWorkflows(GUARDED_STEPS));
    await lab.untilUpdated(pool.name, pool.nodes);
    expect((await lab.update(pool.inDrain.name).describe()).runId).toBe(runId);
    pool.expectUpdates(pool.nodes.map((node) => [node, 1] as const));
    expect(pool.ledger.mostTaken).toBe(1);
  });
});
