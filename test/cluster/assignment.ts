import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { assign } from '../../activities/cluster/assign.js';
import { KINDS, type KubernetesClient, type KubernetesObject } from '../../activities/kubernetes/client.js';
import { failedWith } from '../../activities/kubernetes/failures.js';
import { DRYDOCK_ANNOTATIONS, EMPTY_CONFIG_NAME } from '../../machine-config/api/flavour.js';
import type { Grant } from '../../machine-config/pool/turn.js';
import type { AssignInput } from '../../workflows/contract/activities.js';
import type { RealCluster, RealControl } from '../support/real-cluster.js';

const POOL = 'granting';
const [TARGET, NEWER] = ['rendered-granting-1', 'rendered-granting-2'] as const;
/** Oldest last, so that neither the order of creation nor that of the names is the order of age. */
const MEMBERS = [
  { name: 'granting-b', createdAt: new Date('2026-03-01T00:00:00Z') },
  { name: 'granting-a', createdAt: new Date('2026-02-01T00:00:00Z') },
  { name: 'granting-d', createdAt: new Date('2026-01-01T00:00:00Z') },
  { name: 'granting-c', createdAt: new Date('2026-01-01T00:00:00Z') },
];
const OLDEST_FIRST = ['granting-c', 'granting-d', 'granting-a', 'granting-b'];
const [FIRST, SECOND, THIRD, LAST] = OLDEST_FIRST as [string, string, string, string];
const ROUNDS = 20;

/** The client, with something that happens just before its first write to a Node. */
function interrupted(client: KubernetesClient, happens: () => Promise<unknown>): KubernetesClient {
  let pending = true;
  return {
    get: (resource, object) => client.get(resource, object),
    list: (resource, options) => client.list(resource, options),
    create: (resource, object) => client.create(resource, object),
    replace: (resource, object, subresource) => client.replace(resource, object, subresource),
    apply: (resource, object, options) => client.apply(resource, object, options),
    delete: (resource, object) => client.delete(resource, object),
    evict: (pod) => client.evict(pod),
    discover: (apiVersion, kind) => client.discover(apiVersion, kind),
    etcdProblem: () => client.etcdProblem(),
    watch: (resource, handler, signal) => client.watch(resource, handler, signal),
    async patch<T extends KubernetesObject>(...[resource, ...rest]: Parameters<KubernetesClient['patch']>) {
      if (pending && resource.kind === 'Node') {
        pending = false;
        await happens();
      }
      return client.patch<T>(resource, ...rest);
    },
  };
}

export function describeAssignment(cluster: () => RealCluster, control: () => RealControl): void {
  describe('assign', () => {
    const uids: Record<string, string> = {};
    let secondControl: RealControl;

    const ask = (node: string, intent: AssignInput['intent'] = 'start'): AssignInput => ({
      cluster: cluster().uid,
      pool: POOL,
      node,
      nodeUid: uids[node] ?? '',
      intent,
    });
    const assignBy = (who: RealControl, node: string, intent?: AssignInput['intent']) =>
      who.activities.assign(ask(node, intent));
    const desired = async (node: string) =>
      (await cluster().node(node)).metadata.annotations?.[cluster().flavour.annotations.desiredConfig];
    const changePool = (spec: object) =>
      cluster().admin.patch(cluster().flavour.machineConfigPool, { name: POOL }, { spec });
    /** A node that goes on sees a pool as it was read a second ago, or as the watch shows it. */
    const retarget = async (name: string) => {
      await changePool({ configuration: { name } });
      await control().caughtUp();
    };
    const holders = async () => {
      const found = await Promise.all(OLDEST_FIRST.map(async (node) => ({ node, desired: await desired(node) })));
      return found.filter((each) => each.desired === TARGET).map(({ node }) => node);
    };
    const code = (grant: Grant) => (grant.outcome === 'refused' ? grant.code : grant.outcome);

    beforeAll(async () => {
      await cluster().createPool(POOL);
      await cluster().createMembers(POOL, MEMBERS);
      secondControl = await cluster().openControl();
      for (const { name } of MEMBERS) uids[name] = (await cluster().node(name)).metadata.uid ?? '';
    });

    beforeEach(async () => {
      await changePool({ configuration: { name: TARGET }, paused: false, maxUnavailable: 1 });
      await control().dependencies.client.patch(
        cluster().flavour.machineConfigPool,
        { name: POOL },
        { metadata: { annotations: { [DRYDOCK_ANNOTATIONS.lastGrant]: null } } },
      );
      for (const name of OLDEST_FIRST) {
        const { desiredConfig } = cluster().flavour.annotations;
        const annotations = { [DRYDOCK_ANNOTATIONS.cordonedFor]: null };
        await cluster().admin.patch(KINDS.node, { name }, { metadata: { annotations }, spec: { unschedulable: null } });
        await control().dependencies.client.patch(
          KINDS.node,
          { name },
          { metadata: { annotations: { [desiredConfig]: null } } },
        );
        await cluster().say(name, {});
      }
    });

    test('a turn starts the oldest nodes, by creation time and then by name', async () => {
      await changePool({ maxUnavailable: 3 });
      await control().caughtUp();
      const turn = { cluster: cluster().uid, pool: POOL, inFlight: {}, resting: {}, now: Date.now() };
      const { start } = await control().activities.planTurn(turn);
      expect(start).toEqual(
        [FIRST, SECOND, THIRD].map((node) => ({
          node,
          nodeUid: uids[node],
          target: TARGET,
          current: EMPTY_CONFIG_NAME,
        })),
      );
    });

    test('grants up to maxUnavailable, names who holds the slots, and passes on one that was given back', async () => {
      await changePool({ maxUnavailable: '50%' });
      const granted = { outcome: 'granted', target: TARGET, current: EMPTY_CONFIG_NAME };
      expect(await assignBy(control(), FIRST)).toEqual(granted);
      expect(await assignBy(control(), SECOND)).toEqual(granted);
      expect(await assignBy(control(), THIRD)).toMatchObject({
        code: 'NoSlot',
        sentence: expect.stringMatching(`2 of 2 .*${FIRST}.*${SECOND}`) as string,
      });
      expect(await holders()).toEqual([FIRST, SECOND]);
      expect(await assignBy(control(), SECOND, 'withdraw')).toMatchObject({ outcome: 'unneeded' });
      expect(await desired(SECOND)).toBe(EMPTY_CONFIG_NAME);
      expect(await assignBy(control(), THIRD)).toEqual(granted);
      expect(await holders()).toEqual([FIRST, THIRD]);
    });

    test('counts a node that somebody cordoned, and gives it no slot', async () => {
      await cluster().admin.patch(KINDS.node, { name: LAST }, { spec: { unschedulable: true } });
      expect(code(await assignBy(control(), LAST))).toBe('CordonedByOthers');
      expect(code(await assignBy(control(), FIRST))).toBe('NoSlot');
      expect(await holders()).toEqual([]);
    });

    test('two control workers at once for two nodes and one slot: exactly one is granted, every time', async () => {
      for (let round = 0; round < ROUNDS; round += 1) {
        const grants = await Promise.all([assignBy(control(), FIRST), assignBy(secondControl, SECOND)]);
        expect(grants.map(code).sort(), `round ${round}`).toEqual(['NoSlot', 'granted']);
        const [holder = '', ...others] = await holders();
        expect(others).toEqual([]);
        await assignBy(control(), holder, 'withdraw');
      }
    });

    test('four nodes at once and two slots: two are granted, also when the answers are conflicts', async () => {
      await changePool({ maxUnavailable: 2 });
      const insist = async (who: RealControl, node: string): Promise<Grant> => {
        for (;;) {
          try {
            return await assignBy(who, node);
          } catch (error) {
            // Temporal's retry.
            if (!failedWith(error, 'Conflict')) throw error;
          }
        }
      };
      for (let round = 0; round < 5; round += 1) {
        const grants = await Promise.all(
          OLDEST_FIRST.map((node, i) => insist(i % 2 === 0 ? control() : secondControl, node)),
        );
        expect(grants.map(code).sort(), `round ${round}`).toEqual(['NoSlot', 'NoSlot', 'granted', 'granted']);
        const holding = await holders();
        expect(holding).toHaveLength(2);
        for (const node of holding) await assignBy(control(), node, 'withdraw');
      }
    });

    test('does not write what it decided on a Node that has changed since, and decides anew', async () => {
      const { admin } = cluster();
      const cordoned = () => admin.patch(KINDS.node, { name: FIRST }, { spec: { unschedulable: true } });
      const { dependencies } = control();
      const racing = { ...dependencies, client: interrupted(dependencies.client, cordoned) };
      expect(code(await assign(racing, ask(FIRST)))).toBe('CordonedByOthers');
      expect(await desired(FIRST)).toBeUndefined();
    });

    test('retargets a node that has not begun, and none that has', async () => {
      await assignBy(control(), FIRST);
      await retarget(NEWER);
      expect(await assignBy(control(), FIRST, 'continue')).toMatchObject({ outcome: 'granted', target: NEWER });
      expect(await desired(FIRST)).toBe(NEWER);
      await cluster().say(FIRST, { state: 'Working', applying: NEWER });
      const { resourceVersion } = (await cluster().node(FIRST)).metadata;
      await retarget(TARGET);
      for (const intent of ['continue', 'withdraw'] as const) {
        expect(await assignBy(control(), FIRST, intent)).toMatchObject({ outcome: 'granted', target: NEWER });
      }
      expect((await cluster().node(FIRST)).metadata.resourceVersion).toBe(resourceVersion);
    });

    test('a node that begins while its slot is taken back keeps it', async () => {
      await assignBy(control(), FIRST);
      const begins = () => cluster().say(FIRST, { state: 'Working', applying: TARGET });
      const { dependencies } = control();
      const racing = { ...dependencies, client: interrupted(dependencies.client, begins) };
      expect(await assign(racing, ask(FIRST, 'withdraw'))).toMatchObject({ outcome: 'granted', target: TARGET });
      expect(await desired(FIRST)).toBe(TARGET);
    });

    test('back on the config that the node runs, the slot is given back without an update', async () => {
      await cluster().say(FIRST, { current: NEWER });
      await assignBy(control(), FIRST);
      await retarget(NEWER);
      expect(await assignBy(control(), FIRST, 'continue')).toEqual({
        outcome: 'unneeded',
        target: NEWER,
        cordonedByUs: false,
      });
      expect(await desired(FIRST)).toBe(NEWER);
    });

    test('refuses a paused pool, another pool’s node and another machine of that name', async () => {
      await changePool({ paused: true });
      expect(code(await assignBy(control(), FIRST))).toBe('PoolPaused');
      await changePool({ paused: false });
      const foreign = { ...ask('plain-1'), nodeUid: (await cluster().node('plain-1')).metadata.uid ?? '' };
      expect(code(await control().activities.assign(foreign))).toBe('NotMember');
      expect(code(await control().activities.assign({ ...ask(FIRST), nodeUid: 'earlier' }))).toBe('NodeReplaced');
      expect(await holders()).toEqual([]);
    });

    test('does nothing for a workflow of another cluster', async () => {
      const before = (await cluster().node(FIRST)).metadata.resourceVersion;
      await expect(control().activities.assign({ ...ask(FIRST), cluster: 'another' })).rejects.toMatchObject({
        type: 'WrongCluster',
      });
      expect((await cluster().node(FIRST)).metadata.resourceVersion).toBe(before);
    });
  });
}
