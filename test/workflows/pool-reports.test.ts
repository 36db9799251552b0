import pino from 'pino';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { MachineConfigNodeResource } from '../../activities/cluster/machine-config-node-write.js';
import { KINDS, type KubernetesObject } from '../../activities/kubernetes/client.js';
import type { PoolResource } from '../../activities/cluster/control-dependencies.js';
import { findFreePorts } from '../../dev/processes/free-ports.js';
import { startControlWorker } from '../../workers/control-worker.js';
import { flavour, TEST_TUNING, until, workflowBundle, WorkflowLab } from '../support/workflow-lab.js';

let lab: WorkflowLab;
beforeAll(async () => {
  lab = await WorkflowLab.start();
});
afterAll(() => lab.stop());

const waiting = (pool: string) => lab.pool(pool).status?.conditions?.find(({ type }) => type === 'Waiting');
const condition = (node: string, type: string) =>
  lab.cluster
    .peek<MachineConfigNodeResource>(flavour.machineConfigNode, node)
    ?.status?.conditions?.find((each) => each.type === type)?.status;

describe('what Kubernetes shows of a rollout', () => {
  it('is what it waits for as long as it does, each node, and in the end how it went', async () => {
    const pool = 'told';
    const { nodes, first } = await lab.addSettledPool(pool, 2);
    const names = nodes.map(({ name }) => name);
    await until('the nodes shown as updated', () => names.every((name) => condition(name, 'Updated') === 'True'));
    const windows = { timeZone: 'UTC', allow: [] };
    await lab.cluster.patch(lab.pools, { name: pool }, { spec: { rollout: { windows } } });
    const target = await lab.revise(pool, 'second');
    await until('the closed window shown', () => waiting(pool)?.status === 'True');
    expect(waiting(pool)?.reason).toBe('WindowClosed');
    expect(lab.pool(pool).status?.rollouts?.at(-1)).toMatchObject({ target, from: first, outcome: 'Running' });

    await lab.cluster.patch<PoolResource>(lab.pools, { name: pool }, { spec: { rollout: null } });
    await lab.untilUpdated(pool, nodes);
    await until('the end shown', () => lab.pool(pool).status?.rollouts?.at(-1)?.outcome === 'Completed');
    expect(waiting(pool)).toMatchObject({ status: 'False', reason: 'NothingToDo' });
    await until('the nodes shown as updated again', () => names.every((name) => condition(name, 'Updated') === 'True'));
    for (const name of names) {
      const object = lab.cluster.peek<MachineConfigNodeResource>(flavour.machineConfigNode, name);
      expect(object).toMatchObject({
        spec: { configVersion: { desired: target } },
        status: { configVersion: { current: target } },
      });
    }
    const told = async () =>
      (await lab.cluster.list<KubernetesObject & { reason: string; involvedObject: { name: string } }>(KINDS.event))
        .filter(({ involvedObject }) => involvedObject.name === pool)
        .map(({ reason }) => reason);
    await until(
      'the Events written',
      async () => (await told()).filter((reason) => reason === 'Completed').length === 2,
    );
    expect((await told()).sort()).toEqual([
      'Completed',
      'Completed',
      'RenderedConfigGenerated',
      'RenderedConfigGenerated',
      'RolloutStarted',
      'RolloutStarted',
    ]);
  });

  it('is served as metrics by each control worker, beside its health, as long as it runs', async () => {
    const pool = 'measured';
    await lab.addSettledPool(pool, 1);
    // One process holds one worker of a queue.
    await lab.stopControl();
    const [port = 0] = await findFreePorts(1);
    const { nativeConnection: connection, client: temporal } = lab.environment;
    const worker = await startControlWorker({
      kubernetes: lab.cluster,
      flavour,
      connection,
      temporal,
      workflows: { workflowBundle: await workflowBundle() },
      tuning: TEST_TUNING,
      logger: pino({ level: 'silent' }),
      metricsAddress: `127.0.0.1:${port}`,
    });
    const ask = (path: string) => fetch(`http://127.0.0.1:${port}/${path}`);
    expect((await ask('healthz')).status).toBe(200);
    const text = await (await ask('metrics')).text();
    expect(text).toContain(`drydock_pool_machines{pool="${pool}"} 1`);
    expect(text).toContain(`drydock_pool_updated{pool="${pool}"} 1`);
    worker.stop();
    await worker.finished;
    await expect(ask('healthz')).rejects.toThrow();
  });
});
