import { beforeAll, describe, expect, test } from 'vitest';
import { KINDS, type KubernetesClient, type KubernetesObject } from '../../activities/kubernetes/client.js';
import { approveStage } from '../../client/orders/approve.js';
import { holdNode, releaseNode } from '../../client/orders/node-orders.js';
import { goOn, stopEverything } from '../../client/orders/stop.js';
import { CONTROL_USER, rbacManifests } from '../../client/install/rbac.js';
import { listPools, setPaused } from '../../client/rollouts.js';
import { DRYDOCK_ANNOTATIONS } from '../../machine-config/api/flavour.js';
import type { RealCluster } from '../support/real-cluster.js';
import { rightsOf, rightsUsedBy } from '../support/used-rights.js';

const POOL = 'rights';
const NODE = 'rights-1';
const CONFIG = '50-rights';
const TARGET = `rendered-${POOL}-${'c'.repeat(32)}`;
const OPERATOR = 'olga';
const VIEWER = 'victor';

const forbidden = expect.objectContaining({ type: 'Forbidden' }) as Error;

/** The roles for people, each with an identity of its own that has nothing else, on the real API server. */
export function describeRoles(cluster: () => RealCluster): void {
  describe('the roles for people', () => {
    let operator: KubernetesClient;
    let viewer: KubernetesClient;
    const as = (kubernetes: KubernetesClient) => ({ kubernetes, flavour: cluster().flavour });
    const annotate = (client: KubernetesClient, annotations: Record<string, string | null>, more: object = {}) =>
      client.patch(KINDS.node, { name: NODE }, { metadata: { annotations }, ...more });

    beforeAll(async () => {
      const { admin, flavour } = cluster();
      for (const [user, role] of [
        [OPERATOR, 'operator'],
        [VIEWER, 'viewer'],
      ] as const) {
        await admin.create(KINDS.clusterRoleBinding, {
          metadata: { name: `test-${user}` },
          roleRef: {
            apiGroup: 'rbac.authorization.k8s.io',
            kind: 'ClusterRole',
            name: `drydock:${flavour.name}:${role}`,
          },
          subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: user }],
        } as KubernetesObject);
      }
      const stages = [{ name: 'all', percent: '100%', approval: 'Required' as const }];
      await cluster().createPool(POOL, { configuration: { name: TARGET }, rollout: { stages } });
      await cluster().createConfig(POOL, CONFIG, {});
      await cluster().createMembers(POOL, [{ name: NODE }]);
      await cluster().say(NODE, {});
      [operator, viewer] = [await cluster().asUser(OPERATOR), await cluster().asUser(VIEWER)];
    });

    test('an operator pauses, approves in their own name, holds, releases, stops and lets go', async () => {
      expect(await setPaused(as(operator), POOL, true)).toMatchObject({ paused: true });
      expect(await setPaused(as(operator), POOL, false)).toMatchObject({ paused: false });
      const approved = await approveStage(as(operator), { pool: POOL, stage: 'all', now: new Date() });
      expect(approved).toMatchObject({ config: TARGET, by: OPERATOR, changed: true });
      expect(await holdNode(as(operator), NODE, 'a test')).toMatchObject({ changed: true });
      expect(await releaseNode(as(operator), NODE)).toMatchObject({ hold: 'a test' });
      expect(await stopEverything(as(operator), 'a test')).toMatchObject({ stopped: true, changed: true });
      expect(await goOn(as(operator))).toMatchObject({ stopped: false, changed: true });
    });

    test('an operator grants nothing, approves in nobody else’s name, and writes no config and no status', async () => {
      const { flavour } = cluster();
      const { machineConfig, machineConfigPool, machineConfigNode } = flavour;
      const granting = annotate(operator, { [flavour.annotations.desiredConfig]: TARGET });
      await expect(granting).rejects.toMatchObject({
        message: expect.stringMatching(
          `is written by the control worker of Drydock alone, not by ${OPERATOR}`,
        ) as string,
      });
      const annotations = {
        [DRYDOCK_ANNOTATIONS.approval]: JSON.stringify({ config: TARGET, stages: ['all', 'more'] }),
        [DRYDOCK_ANNOTATIONS.approvedBy]: VIEWER,
      };
      const approving = operator.patch(machineConfigPool, { name: POOL }, { metadata: { annotations } });
      await expect(approving).rejects.toThrow(`${DRYDOCK_ANNOTATIONS.approvedBy} must be ${OPERATOR}`);
      const source = { metadata: { name: '51-rights' }, spec: {} };
      for (const refused of [
        () => operator.create(machineConfig, source),
        () => operator.get(machineConfig, { name: CONFIG }),
        () => operator.patch(machineConfig, { name: CONFIG }, { spec: { kernelArguments: ['a'] } }),
        () => operator.delete(machineConfigPool, { name: POOL }),
        () => operator.patch(machineConfigPool, { name: POOL }, { status: { observedGeneration: 99 } }, 'status'),
        () => operator.patch(machineConfigNode, { name: NODE }, { spec: {} }),
        () => operator.delete(KINDS.node, { name: NODE }),
        () => operator.list(KINDS.pod, { namespace: 'kube-system' }),
      ]) {
        await expect(refused(), refused.toString()).rejects.toEqual(forbidden);
      }
    });

    test('a viewer sees pools, nodes and the switches, and not what files hold', async () => {
      const { machineConfig, machineConfigNode, machineConfiguration } = cluster().flavour;
      expect((await listPools(as(viewer))).map(({ metadata }) => metadata.name)).toContain(POOL);
      expect(await viewer.get(KINDS.node, { name: NODE })).toBeDefined();
      expect(await viewer.list(machineConfigNode)).toBeInstanceOf(Array);
      expect(await viewer.get(machineConfiguration, { name: 'cluster' })).toBeDefined();
      await expect(viewer.get(machineConfig, { name: CONFIG })).rejects.toEqual(forbidden);
      await expect(viewer.list(machineConfig)).rejects.toEqual(forbidden);
    });

    test('a viewer changes nothing', async () => {
      const { flavour, admin } = cluster();
      const before = await admin.get(flavour.machineConfigPool, { name: POOL });
      const approval = { [DRYDOCK_ANNOTATIONS.approval]: '{}', [DRYDOCK_ANNOTATIONS.approvedBy]: VIEWER };
      for (const refused of [
        () => setPaused(as(viewer), POOL, true),
        () => viewer.patch(flavour.machineConfigPool, { name: POOL }, { metadata: { annotations: approval } }),
        () => holdNode(as(viewer), NODE, 'a test'),
        () => stopEverything(as(viewer), 'a test'),
        () => annotate(viewer, { [flavour.annotations.desiredConfig]: TARGET }),
        () => annotate(viewer, {}, { spec: { unschedulable: true } }),
        () => viewer.delete(flavour.machineConfigPool, { name: POOL }),
      ]) {
        await expect(refused(), refused.toString()).rejects.toEqual(forbidden);
      }
      expect(await admin.get(flavour.machineConfigPool, { name: POOL })).toEqual(before);
    });
  });
}

/** Rights that the tests on this cluster make no use of, and what needs them all the same. */
const ELSEWHERE: readonly (readonly [rights: RegExp, why: string])[] = [
  [/\/finalizers$/u, 'asked for where an owner is set whose deletion is blocked; the lab runs no plugin that asks'],
  [/^get core\/namespaces$/u, 'workers/control-worker.ts, as it starts: the uid of kube-system'],
  [/^patch core\/events$/u, 'activities/kubernetes/event-writer.ts: what happens again is counted'],
  [/^(?:list|watch) .*\/machineconfigurations$/u, 'workers/control-worker.ts: the stop, within a second'],
  [/^(?:get|delete) .*\/machineconfignodes$/u, 'machine-config-node-write.ts: of a Node that came back as another'],
  [
    /^get (?:apps|batch|core)\/(?:deployments|replicasets|statefulsets|jobs|replicationcontrollers)$/u,
    'gate-rescheduled.ts',
  ],
  [/^delete .*\/machineconfigs$/u, 'generated-configs.ts and collect-rendered.ts: what nobody needs any more'],
  // These have clusters and tests of their own.
  [
    /\/(?:kubeletconfigs|containerruntimeconfigs|controllerconfigs)(?:\/status)?$/u,
    'reconcile-sources.ts, mark-source.ts',
  ],
  [/\/image(?:digest|tag)mirrorsets(?:\/status)?$/u, 'container-runtime-source.ts'],
  [/ rbac\.authorization\.k8s\.io\/(?:roles|rolebindings)$/u, 'certificate-access.ts'],
];

/** Comes last: by now the control worker has done, in the tests before, nearly all that it does. */
export function describeRights(cluster: () => RealCluster): void {
  test('the control worker has made use of each right that its roles give it', async () => {
    const roles = rbacManifests(cluster().flavour, CONTROL_USER)
      .map(({ object }) => object as KubernetesObject & { rules?: Parameters<typeof rightsOf>[0] })
      .filter(({ metadata }) => /:(?:control-worker|gates)$/u.test(metadata.name));
    const given = roles.flatMap(({ rules = [] }) => rightsOf(rules));
    expect(given.length).toBeGreaterThan(30);
    const used = await rightsUsedBy(CONTROL_USER, cluster().auditLog);
    const isElsewhere = (right: string) => ELSEWHERE.some(([rights]) => rights.test(right));
    expect(given.filter((right) => !used.has(right) && !isElsewhere(right))).toEqual([]);
    // What is no right any more needs no reason either.
    expect(ELSEWHERE.filter(([rights]) => !given.some((right) => rights.test(right)))).toEqual([]);
  });
}
