import { beforeAll, describe, expect, test, vi } from 'vitest';
import type { PoolConditionType } from '../../machine-config/api/machine-config-pool.js';
import type { PoolResource } from '../../activities/cluster/control-dependencies.js';
import { KINDS } from '../../activities/kubernetes/client.js';
import { versionsOf, type RealCluster, type RealControl } from '../support/real-cluster.js';
import { PATIENCE } from '../support/patience.js';

const POOL = 'status';
const [OLD, NEW, STRANGER] = ['status-old', 'status-new', 'status-stranger'] as const;
const POOL_COLUMNS =
  'NAME CONFIG UPDATED UPDATING DEGRADED MACHINECOUNT READYMACHINECOUNT UPDATEDMACHINECOUNT DEGRADEDMACHINECOUNT AGE';
const CONFIG_COLUMNS = 'NAME GENERATEDBYCONTROLLER IGNITIONVERSION AGE';

/** What kubectl prints, by the columns of its header; a column is as wide as its header and values, so blanks stay. */
function readTable(output: string): { header: string; rows: Record<string, string>[] } {
  const [header = '', ...lines] = output.trimEnd().split('\n');
  const columns = [...header.matchAll(/\S+\s*/g)];
  const rows = lines.map((line) =>
    Object.fromEntries(
      columns.map((column, i) => [column[0].trim(), line.slice(column.index, columns[i + 1]?.index).trim()]),
    ),
  );
  return { header: header.trim().split(/\s+/).join(' '), rows };
}

export function describePoolStatus(cluster: () => RealCluster, control: () => RealControl): void {
  describe('the status of a pool', () => {
    const step = () => ({ cluster: cluster().uid, pool: POOL });
    let target: string;

    const sync = async (): Promise<PoolResource> => {
      await control().caughtUp();
      await control().activities.syncPool(step());
      return cluster().pool(POOL);
    };
    const condition = (pool: PoolResource, type: PoolConditionType) =>
      pool.status?.conditions?.find((each) => each.type === type);

    beforeAll(async () => {
      await cluster().createPool(POOL);
      await cluster().createConfig(POOL, '50-status', {});
      await cluster().createMembers(POOL, [{ name: OLD }, { name: NEW }, { name: STRANGER }]);
      const rendered = await control().activities.renderPool(step());
      target = rendered.outcome === 'rendered' ? rendered.rendered : '';
      await cluster().say(OLD, { current: target });
      await cluster().say(NEW, {});
    });

    test('counts every member, and says which one no worker has registered on', async () => {
      const pool = await sync();
      expect(pool.status).toMatchObject({
        observedGeneration: pool.metadata.generation,
        machineCount: 3,
        updatedMachineCount: 1,
        readyMachineCount: 1,
        unavailableMachineCount: 0,
        degradedMachineCount: 0,
      });
      expect(condition(pool, 'Updated')).toMatchObject({ status: 'False' });
      expect(condition(pool, 'Updating')).toMatchObject({
        status: 'True',
        message: expect.stringMatching(`1 of 3 .*no node worker has registered on ${STRANGER}`) as string,
      });
      expect(condition(pool, 'Degraded')).toMatchObject({ status: 'False' });
    });

    test('is not written again while nothing changes, nor is the permission to read', async () => {
      const { admin } = cluster();
      const name = `drydock:pool:${POOL}`;
      const all = async () =>
        versionsOf([
          await cluster().pool(POOL),
          { metadata: { ...(await admin.get(KINDS.clusterRole, { name })).metadata, name: 'role' } },
          { metadata: { ...(await admin.get(KINDS.clusterRoleBinding, { name })).metadata, name: 'binding' } },
        ]);
      await sync();
      const first = await all();
      expect(Object.values(first)).not.toContain(undefined);
      await sync();
      expect(await all()).toEqual(first);
    });

    test('a member without a worker is no candidate and takes no slot', async () => {
      const turn = await control().activities.planTurn({ ...step(), inFlight: {}, resting: {}, now: Date.now() });
      expect(turn.start).toMatchObject([{ node: NEW, target }]);
      expect(turn.counts).toMatchObject({ machines: 3, unmanaged: 1 });
      const { metadata } = await cluster().node(STRANGER);
      const asked = { ...step(), node: STRANGER, nodeUid: metadata.uid ?? '', intent: 'start' as const };
      expect(await control().activities.assign(asked)).toMatchObject({ outcome: 'refused', code: 'NotManaged' });
    });

    test('shows a node that is on its way, cordoned or whose kubelet died as unavailable', async () => {
      const { admin, kubernetes, flavour } = cluster();
      const desired = { [flavour.annotations.desiredConfig]: target };
      await control().dependencies.client.patch(KINDS.node, { name: NEW }, { metadata: { annotations: desired } });
      expect((await sync()).status).toMatchObject({ unavailableMachineCount: 1, readyMachineCount: 1 });
      await admin.patch(KINDS.node, { name: STRANGER }, { spec: { unschedulable: true } });
      expect((await sync()).status).toMatchObject({ unavailableMachineCount: 2, readyMachineCount: 1 });
      await kubernetes.stopKubelet(OLD);
      await vi.waitFor(
        async () =>
          expect((await sync()).status).toMatchObject({
            unavailableMachineCount: 3,
            readyMachineCount: 0,
            updatedMachineCount: 1,
          }),
        { ...PATIENCE, interval: 250 },
      );
      await kubernetes.startKubelet(OLD);
      await admin.patch(KINDS.node, { name: STRANGER }, { spec: { unschedulable: null } });
      await vi.waitFor(async () => expect((await sync()).status).toMatchObject({ unavailableMachineCount: 1 }), {
        ...PATIENCE,
        interval: 250,
      });
    });

    test('is Updated, with the config, when every member runs it', async () => {
      await cluster().say(NEW, { current: target });
      await cluster().say(STRANGER, { current: target });
      const pool = await sync();
      expect(pool.status).toMatchObject({ readyMachineCount: 3, configuration: { name: target } });
      expect(condition(pool, 'Updated')).toMatchObject({ status: 'True' });
      expect(condition(pool, 'Updating')).toMatchObject({ status: 'False' });
    });

    test('is Degraded in the words of the node', async () => {
      await cluster().say(NEW, { current: target, state: 'Degraded', reason: 'the disk is full: make room' });
      const pool = await sync();
      expect(condition(pool, 'NodeDegraded')).toMatchObject({
        status: 'True',
        message: `${NEW}: the disk is full: make room`,
      });
      expect(condition(pool, 'Degraded')).toMatchObject({ status: 'True' });
    });

    test('kubectl get mcp and kubectl get mc show it in the columns that administrators know', async () => {
      const [pools, configs] = await Promise.all([cluster().kubectl('get', 'mcp'), cluster().kubectl('get', 'mc')]);
      process.stdout.write(`$ kubectl get mcp\n${pools}\n$ kubectl get mc\n${configs}\n`);
      const poolTable = readTable(pools);
      expect(poolTable.header).toBe(POOL_COLUMNS);
      expect(poolTable.rows.find(({ NAME }) => NAME === POOL)).toEqual({
        NAME: POOL,
        CONFIG: target,
        UPDATED: 'False',
        UPDATING: 'True',
        DEGRADED: 'True',
        MACHINECOUNT: '3',
        READYMACHINECOUNT: '2',
        UPDATEDMACHINECOUNT: '2',
        DEGRADEDMACHINECOUNT: '1',
        AGE: expect.stringMatching(/^\d+[smh]/) as string,
      });
      const configTable = readTable(configs);
      expect(configTable.header).toBe(CONFIG_COLUMNS);
      expect(configTable.rows.find(({ NAME }) => NAME === target)).toEqual({
        NAME: target,
        GENERATEDBYCONTROLLER: expect.any(String) as string,
        IGNITIONVERSION: '3.4.0',
        AGE: expect.stringMatching(/^\d+[smh]/) as string,
      });
    });
  });
}
