import { TestWorkflowEnvironment } from '@temporalio/testing';
import { Worker } from '@temporalio/worker';
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { bootstrapTokenSecrets, renewBootstrapToken } from '../../activities/cluster/bootstrap-token.js';
import { firstBootManifests } from '../../client/install/first-boot.js';
import { applyManifest } from '../../client/install/manifest.js';
import { readLabSettings } from '../../dev/settings.js';
import { ensureTemporalTestServer } from '../../dev/tools/temporal-tools.js';
import { bootstrapTokenOf } from '../../machine-config/first-boot/bootstrap-token.js';
import { ensureBootstrapTokenKept } from '../../workers/bootstrap-token.js';
import type { ControlActivities } from '../../workflows/contract/activities.js';
import { CONTROL_TASK_QUEUE, KEEP_BOOTSTRAP_TOKEN_ID } from '../../workflows/contract/ids.js';
import { keepBootstrapToken } from '../../workflows/index.js';
import { FakeCluster } from '../support/fake-cluster.js';
import { flavour, workflowBundle } from '../support/workflow-lab.js';

const CLUSTER = 'cluster-1';
const HOUR = 3_600_000;

describe('the token with which machines join', () => {
  let environment: TestWorkflowEnvironment;
  beforeAll(async () => {
    const path = await ensureTemporalTestServer(readLabSettings(), () => undefined);
    const server = { executable: { type: 'existing-path', path } } as const;
    environment = await TestWorkflowEnvironment.createTimeSkipping({ server });
  });
  afterAll(() => environment.teardown());

  async function withControl(cluster: FakeCluster, play: (seen: Map<string, number>) => Promise<void>): Promise<void> {
    /** Every token that ever counted, and when it began to. */
    const seen = new Map<string, number>();
    const activities: Pick<ControlActivities, 'renewBootstrapToken'> = {
      async renewBootstrapToken(input) {
        const time = await environment.currentTimeMs();
        const result = await renewBootstrapToken({ client: cluster, cluster: CLUSTER, now: () => time }, input);
        for (const secret of Object.values((await bootstrapTokenSecrets(cluster)) ?? {})) {
          const token = bootstrapTokenOf(secret)?.token;
          if (token !== undefined && !seen.has(token)) seen.set(token, time);
        }
        return result;
      },
    };
    const worker = await Worker.create({
      connection: environment.nativeConnection,
      taskQueue: CONTROL_TASK_QUEUE,
      workflowBundle: await workflowBundle(),
      activities,
    });
    await worker.runUntil(() => play(seen));
  }
  async function installed(): Promise<FakeCluster> {
    const cluster = new FakeCluster({ clusterUid: CLUSTER });
    const users = { controlUser: 'control', ignitionUser: 'ignition' };
    for (const manifest of firstBootManifests(flavour, users)) await applyManifest(cluster, manifest);
    return cluster;
  }
  const ensure = (kubernetes: FakeCluster) =>
    ensureBootstrapTokenKept({
      kubernetes,
      temporal: environment.client,
      cluster: CLUSTER,
      logger: pino({ level: 'silent' }),
    });

  it('is another one every twelve hours, over days, in one workflow that continues as new', async () => {
    const cluster = await installed();
    await withControl(cluster, async (seen) => {
      await environment.client.workflow.start(keepBootstrapToken, {
        workflowId: KEEP_BOOTSTRAP_TOKEN_ID,
        taskQueue: CONTROL_TASK_QUEUE,
        args: [{ cluster: CLUSTER, maxEvents: 60 }],
      });
      // Whoever starts it again finds it running.
      await ensure(cluster);
      const handle = environment.client.workflow.getHandle(KEEP_BOOTSTRAP_TOKEN_ID);
      const { runId } = await handle.describe();
      await environment.sleep(5 * 24 * HOUR);
      const latest = await handle.describe();
      expect(latest.status.name).toBe('RUNNING');
      expect(latest.runId).not.toBe(runId);
      await handle.terminate();
      const times = [...seen.values()];
      expect(times.length).toBeGreaterThanOrEqual(10);
      const gaps = times.slice(1).map((time, index) => time - (times[index] ?? 0));
      for (const gap of gaps) expect(Math.abs(gap - 12 * HOUR)).toBeLessThan(60_000);
      const { events } = await environment.client.workflow.getHandle(KEEP_BOOTSTRAP_TOKEN_ID, runId).fetchHistory();
      const text = JSON.stringify(events);
      for (const token of seen.keys()) expect(text).not.toContain(token.slice(7));
    });
  });

  it('is made for nobody where no machines boot from here: nothing is started, and what runs ends', async () => {
    const cluster = new FakeCluster({ clusterUid: CLUSTER });
    await ensure(cluster);
    const handle = environment.client.workflow.getHandle(KEEP_BOOTSTRAP_TOKEN_ID);
    await withControl(cluster, async () => {
      expect((await handle.describe()).status.name).not.toBe('RUNNING');
      await environment.client.workflow.execute(keepBootstrapToken, {
        workflowId: 'asked-for-by-hand',
        taskQueue: CONTROL_TASK_QUEUE,
        args: [{ cluster: CLUSTER }],
      });
    });
  });
});
