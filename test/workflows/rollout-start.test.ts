import type { Connection, Client } from '@temporalio/client';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TemporalEngine } from '../../client/temporal.js';
import { managePoolId } from '../../workflows/contract/ids.js';
import { lookNow } from '../../workflows/contract/messages.js';
import { TEST_TUNING, until, WorkflowLab } from '../support/workflow-lab.js';

describe.concurrent('drydock rollout start, as the engine answers it', () => {
  let lab: WorkflowLab;
  let engine: TemporalEngine;
  beforeAll(async () => {
    lab = await WorkflowLab.start();
    engine = new TemporalEngine(lab.environment.client as Client & { connection: Connection });
  });
  afterAll(() => lab.stop());

  const asked = (pool: string, cluster = 'cluster-1') => engine.startPool({ cluster, pool, tuning: TEST_TUNING });
  const manager = (pool: string) => lab.environment.client.workflow.getHandle(managePoolId(pool));
  const updatesIn = async (pool: string) => {
    const { events } = await manager(pool).fetchHistory();
    return (events ?? []).filter((event) => event.workflowExecutionUpdateAcceptedEventAttributes != null).length;
  };

  it('is a yes at once, and a render', async () => {
    const { first } = await lab.addSettledPool('willing', 1);
    const renders = async () => {
      const { events } = await manager('willing').fetchHistory();
      return (events ?? []).filter((event) => event.childWorkflowExecutionStartedEventAttributes != null).length;
    };
    const before = await renders();
    const sentence = `the configs of willing are rendered and its nodes looked at now; it wanted ${first} so far`;
    expect(await asked('willing')).toEqual({ sentence });
    expect(await updatesIn('willing')).toBe(1);
    await until('it renders', async () => (await renders()) > before);
  });

  it('starts the manager of a pool that has none, and has its answer', async () => {
    await lab.addSettledPool('forsaken', 1);
    await manager('forsaken').terminate();
    const sentence = 'the configs of forsaken are rendered and its nodes looked at now';
    expect(await asked('forsaken')).toEqual({ sentence });
    expect((await manager('forsaken').describe()).status.name).toBe('RUNNING');
  });

  it('is a no in one sentence for another cluster and for what is no request, and leaves no trace in the history', async () => {
    await lab.addSettledPool('asked', 1);
    await expect(asked('asked', 'cluster-2')).rejects.toMatchObject({
      exit: 'refused',
      message: expect.stringMatching(
        /^no: pool asked: this Temporal namespace serves the cluster cluster-1, not/,
      ) as string,
    });
    for (const request of [null, {}, 'asked', { cluster: 'cluster-1', pool: 'another' }]) {
      await expect(manager('asked').executeUpdate(lookNow, { args: [request as never] })).rejects.toMatchObject({
        cause: { type: 'Refused', message: expect.stringMatching(/^pool asked: /) as string },
      });
    }
    expect(await updatesIn('asked')).toBe(0);
    expect(await asked('asked')).toMatchObject({ sentence: expect.stringContaining('looked at now') as string });
  });

  it('is a no for a pool that is being deleted', async () => {
    await lab.addSettledPool('leaving', 1);
    await lab.cluster.patch(lab.pools, { name: 'leaving' }, { metadata: { finalizers: ['example.com/slow'] } });
    await lab.cluster.delete(lab.pools, { name: 'leaving' });
    const no = /^no: pool leaving: it is being deleted, and nothing is started in it any more$/;
    await until('the manager has seen it', async () => {
      const refusal = await asked('leaving').then(
        () => '',
        (error: unknown) => (error as Error).message,
      );
      return no.test(refusal);
    });
  });
});
