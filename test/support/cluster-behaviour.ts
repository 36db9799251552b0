import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { KINDS, type KubernetesClient, type KubernetesObject } from '../../activities/kubernetes/client.js';
import { alreadyExists, failedWith } from '../../activities/kubernetes/failures.js';
import type { ResourceKind } from '../../machine-config/api/flavour.js';
import { POD_DISRUPTION_BUDGET } from './fake-cluster.js';
import { PATIENCE } from './patience.js';

/** A cluster with nothing in it that the tests mind, and ways to act on it. */
export interface ClusterUnderTest {
  readonly admin: KubernetesClient;
  /** The Node of that name exists already when it is asked for. */
  asNode(name: string): Promise<KubernetesClient>;
  close(): Promise<void>;
}

/** A custom kind with a status subresource. */
export const WIDGET: ResourceKind = {
  group: 'behaviour.drydock.dev',
  version: 'v1',
  plural: 'widgets',
  kind: 'Widget',
  namespaced: false,
};

export const WIDGET_CRD = {
  metadata: { name: `${WIDGET.plural}.${WIDGET.group}` },
  spec: {
    group: WIDGET.group,
    names: { kind: WIDGET.kind, plural: WIDGET.plural },
    scope: 'Cluster',
    versions: [
      {
        name: WIDGET.version,
        served: true,
        storage: true,
        subresources: { status: {} },
        schema: {
          openAPIV3Schema: {
            type: 'object',
            properties: {
              spec: { type: 'object', properties: { size: { type: 'integer' } } },
              status: { type: 'object', properties: { seen: { type: 'integer' } } },
            },
          },
        },
      },
    ],
  },
};

interface Widget extends KubernetesObject {
  spec?: { size?: number };
  status?: { seen?: number };
}
interface Pod extends KubernetesObject {
  spec: { nodeName: string; containers: object[]; terminationGracePeriodSeconds?: number };
  status?: { phase?: string; conditions?: object[] };
}
interface Node extends KubernetesObject {
  spec?: { unschedulable?: boolean; taints?: object[] };
}

/** The promises of KubernetesClient, which the fake and the real API server keep alike. */
export function describeClusterBehaviour(name: string, make: () => Promise<ClusterUnderTest>): void {
  describe(name, () => {
    const run = Math.random().toString(36).slice(2, 8);
    const NAMESPACE = `shop-${run}`;
    let cluster: ClusterUnderTest;
    let admin: KubernetesClient;
    const widget = (suffix: string): Widget => ({ metadata: { name: `${suffix}-${run}` }, spec: { size: 1 } });
    const named = (suffix: string) => ({ name: `${suffix}-${run}` });

    const addPod = async (suffix: string, nodeName: string, labels: Record<string, string> = {}): Promise<Pod> => {
      const metadata = { ...named(suffix), namespace: NAMESPACE, labels };
      const containers = [{ name: 'main', image: 'none' }];
      const made = await admin.create<Pod>(KINDS.pod, {
        metadata,
        spec: { nodeName, containers, terminationGracePeriodSeconds: 1 },
      });
      const conditions = [{ type: 'Ready', status: 'True' }];
      await admin.patch(KINDS.pod, made.metadata, { status: { phase: 'Running', conditions } }, 'status');
      return made;
    };

    beforeAll(async () => {
      cluster = await make();
      admin = cluster.admin;
      await admin.create(KINDS.namespace, { metadata: { name: NAMESPACE } });
      for (const suffix of ['left', 'right']) await admin.create(KINDS.node, { metadata: named(suffix) });
    });
    afterAll(async () => {
      await cluster.close();
    });

    test('a created object gets a uid, a version and a time, and cannot be created again', async () => {
      const made = await admin.create(WIDGET, widget('twice'));
      expect(made.metadata.uid).toBeTruthy();
      expect(made.metadata.resourceVersion).toBeTruthy();
      expect(made.metadata.creationTimestamp).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
      expect(made).toMatchObject({ apiVersion: 'behaviour.drydock.dev/v1', kind: 'Widget' });
      const error: unknown = await admin.create(WIDGET, widget('twice')).catch((reason: unknown) => reason);
      expect(alreadyExists(error)).toBe(true);
    });

    test('a missing object is NotFound, in one line that names it', async () => {
      const error: unknown = await admin.get(KINDS.node, named('nowhere')).catch((reason: unknown) => reason);
      expect(failedWith(error, 'NotFound')).toBe(true);
      expect((error as Error).message).toBe(`get Node nowhere-${run}: 404 nodes "nowhere-${run}" not found`);
      await expect(admin.delete(WIDGET, named('nowhere'))).rejects.toMatchObject({ type: 'NotFound' });
      await expect(admin.patch(WIDGET, named('nowhere'), { spec: {} })).rejects.toMatchObject({ type: 'NotFound' });
    });

    test('kinds are found by their apiVersion, and what is not served is not', async () => {
      expect(await admin.discover('apps/v1', 'Deployment')).toEqual(KINDS.deployment);
      expect(await admin.discover('v1', 'Node')).toEqual(KINDS.node);
      expect(await admin.discover('v1', 'Deployment')).toBeUndefined();
      expect(await admin.discover('nowhere.example.com/v1', 'Deployment')).toBeUndefined();
    });

    test('etcd is well, as the API server finds', async () => {
      expect(await admin.etcdProblem()).toBeUndefined();
    });

    test('a merge patch sets, keeps and deletes; one that changes nothing makes no new version', async () => {
      const target = named('merged');
      await admin.create(WIDGET, { ...widget('merged'), metadata: { ...target, annotations: { a: '1', b: '2' } } });
      const patch = { metadata: { annotations: { a: null, c: '3' } } };
      const first = await admin.patch<Widget>(WIDGET, target, patch);
      expect(first.metadata.annotations).toEqual({ b: '2', c: '3' });
      expect(first.spec).toEqual({ size: 1 });
      const second = await admin.patch<Widget>(WIDGET, target, patch);
      expect(second.metadata.resourceVersion).toBe(first.metadata.resourceVersion);
    });

    test('an apply creates, changes what it says, takes away what it said before, and repeated does nothing', async () => {
      const target = named('applied');
      const apply = (annotations: Record<string, string>, size: number) =>
        admin.apply<Widget>(
          WIDGET,
          { metadata: { ...target, annotations }, spec: { size } },
          { fieldManager: 'test-apply' },
        );
      const created = await apply({ a: '1', b: '2' }, 1);
      expect(created).toMatchObject({ kind: WIDGET.kind, metadata: { annotations: { a: '1', b: '2' } } });
      await admin.patch(WIDGET, target, { metadata: { annotations: { other: 'stays' } } });
      const changed = await apply({ b: '3' }, 2);
      expect(changed).toMatchObject({ spec: { size: 2 }, metadata: { annotations: { b: '3', other: 'stays' } } });
      expect(changed.metadata.annotations).not.toHaveProperty('a');
      expect((await apply({ b: '3' }, 2)).metadata.resourceVersion).toBe(changed.metadata.resourceVersion);
      const dry = { ...changed, metadata: target, spec: { size: 3 } };
      await admin.apply(WIDGET, dry, { fieldManager: 'test-apply', dryRun: true });
      expect(await admin.get<Widget>(WIDGET, target)).toMatchObject({ spec: { size: 2 } });
    });

    test('a write with an old version is a Conflict and changes nothing', async () => {
      const target = named('raced');
      const old = await admin.create<Widget>(WIDGET, widget('raced'));
      const { resourceVersion } = old.metadata;
      await admin.patch(WIDGET, target, { spec: { size: 2 } });
      await expect(
        admin.patch(WIDGET, target, { metadata: { resourceVersion }, spec: { size: 3 } }),
      ).rejects.toMatchObject({ type: 'Conflict' });
      const replaced: unknown = await admin.replace(WIDGET, { ...old, spec: { size: 4 } }).catch((e: unknown) => e);
      expect(failedWith(replaced, 'Conflict')).toBe(true);
      expect(alreadyExists(replaced)).toBe(false);
      expect((await admin.get<Widget>(WIDGET, target)).spec).toEqual({ size: 2 });
    });

    test('a custom object is replaced only with its version', async () => {
      const made = await admin.create<Widget>(WIDGET, widget('replaced'));
      const blind = { metadata: named('replaced'), spec: { size: 5 } };
      await expect(admin.replace(WIDGET, blind)).rejects.toMatchObject({ type: 'Invalid' });
      const replaced = await admin.replace<Widget>(WIDGET, { ...made, spec: { size: 5 } });
      expect(replaced.spec).toEqual({ size: 5 });
      expect(replaced.metadata.uid).toBe(made.metadata.uid);
    });

    test('spec and status are written apart, and only a new spec is a new generation', async () => {
      const target = named('parted');
      const made = await admin.create<Widget>(WIDGET, { ...widget('parted'), status: { seen: 9 } });
      expect(made.status).toBeUndefined();
      expect(made.metadata.generation).toBe(1);
      const status = await admin.patch<Widget>(WIDGET, target, { spec: { size: 7 }, status: { seen: 1 } }, 'status');
      expect(status).toMatchObject({ spec: { size: 1 }, status: { seen: 1 } });
      expect(status.metadata.generation).toBe(1);
      const spec = await admin.patch<Widget>(WIDGET, target, { spec: { size: 7 }, status: { seen: 2 } });
      expect(spec).toMatchObject({ spec: { size: 7 }, status: { seen: 1 } });
      expect(spec.metadata.generation).toBe(2);
    });

    test('an annotation that is no string is Invalid', async () => {
      const wrong = { metadata: { annotations: { count: 3 } } };
      await expect(admin.patch(KINDS.node, named('left'), wrong)).rejects.toMatchObject({ type: 'Invalid' });
    });

    test('lists are selected by labels and by fields', async () => {
      const labels = (tier: string): Record<string, string> => ({ [`run-${run}`]: 'yes', tier });
      await admin.create(WIDGET, { ...widget('front'), metadata: { ...named('front'), labels: labels('front') } });
      await admin.create(WIDGET, { ...widget('back'), metadata: { ...named('back'), labels: labels('back') } });
      const namesOf = async (labelSelector: string): Promise<string[]> =>
        (await admin.list(WIDGET, { labelSelector })).map(({ metadata }) => metadata.name).sort();
      expect(await namesOf(`run-${run}=yes`)).toEqual([`back-${run}`, `front-${run}`]);
      expect(await namesOf(`run-${run},tier!=back`)).toEqual([`front-${run}`]);
      expect(await namesOf(`run-${run},tier in (back, side)`)).toEqual([`back-${run}`]);
      expect(await namesOf(`run-${run},!tier`)).toEqual([]);
      const byName = await admin.list(KINDS.node, { fieldSelector: `metadata.name=left-${run}` });
      expect(byName.map(({ metadata, kind }) => [metadata.name, kind])).toEqual([[`left-${run}`, 'Node']]);
    });

    test('deleting an object with a finalizer marks it until the finalizer is gone', async () => {
      const target = named('held');
      const metadata = { ...target, finalizers: ['behaviour.drydock.dev/hold'] };
      await admin.create(WIDGET, { ...widget('held'), metadata });
      await admin.delete(WIDGET, target);
      expect((await admin.get(WIDGET, target)).metadata.deletionTimestamp).toBeTruthy();
      await admin.patch(WIDGET, target, { metadata: { finalizers: null } });
      await expect(admin.get(WIDGET, target)).rejects.toMatchObject({ type: 'NotFound' });
    });

    test('a watch shows what is there, then each change in order, and nothing after its end', async () => {
      const end = new AbortController();
      const seen: string[] = [];
      const mine = (object: Widget): boolean => object.metadata.name === `watched-${run}`;
      await admin.create(WIDGET, widget('watched'));
      admin.watch<Widget>(
        WIDGET,
        {
          onChange: (type, object) => {
            if (mine(object)) seen.push(`${type} ${object.spec?.size ?? ''}`);
          },
          onSynced: () => seen.push('synced'),
        },
        end.signal,
      );
      await vi.waitFor(() => expect(seen).toEqual(['ADDED 1', 'synced']), PATIENCE);
      await admin.patch(WIDGET, named('watched'), { spec: { size: 2 } });
      await admin.patch(WIDGET, named('watched'), { spec: { size: 3 } });
      await admin.delete(WIDGET, named('watched'));
      const all = ['ADDED 1', 'synced', 'MODIFIED 2', 'MODIFIED 3', 'DELETED 3'];
      await vi.waitFor(() => expect(seen).toEqual(all), PATIENCE);
      end.abort();
      await admin.create(WIDGET, widget('watched'));
      await admin.delete(WIDGET, named('watched'));
      expect(seen).toEqual(all);
    });

    test('an eviction removes the pod; a missing pod and another pod of its name are gone', async () => {
      const pod = await addPod('plain', `left-${run}`);
      const { uid = '' } = pod.metadata;
      const address = { ...named('plain'), namespace: NAMESPACE };
      const other = '00000000-0000-0000-0000-000000000000';
      expect(await admin.evict({ ...address, uid: other })).toEqual({ outcome: 'gone' });
      expect(await admin.evict({ ...address, uid })).toEqual({ outcome: 'evicted' });
      await vi.waitFor(async () => {
        const left: Pod | undefined = await admin.get<Pod>(KINDS.pod, address).catch(() => undefined);
        expect(left === undefined || left.metadata.deletionTimestamp !== undefined).toBe(true);
      }, PATIENCE);
      expect(await admin.evict({ ...named('missing'), namespace: NAMESPACE })).toEqual({ outcome: 'gone' });
    });

    test('an eviction that a PodDisruptionBudget forbids is refused in its name, one that two cover in both', async () => {
      const selector = { matchLabels: { app: 'cart' } };
      const budget = (suffix: string) => ({
        metadata: { name: suffix, namespace: NAMESPACE },
        spec: { minAvailable: 1, selector },
      });
      await addPod('cart', `left-${run}`, { app: 'cart' });
      const pod = { ...named('cart'), namespace: NAMESPACE };
      await admin.create(POD_DISRUPTION_BUDGET, budget('cart'));
      const why = async (): Promise<string> => {
        const result = await admin.evict(pod);
        return result.outcome === 'refused' ? result.why : result.outcome;
      };
      await vi.waitFor(async () => expect(await why()).toBe(`PDB ${NAMESPACE}/cart allows 0 disruptions`), PATIENCE);
      expect(await admin.evict(pod)).toMatchObject({ budget: `${NAMESPACE}/cart` });
      await admin.create(POD_DISRUPTION_BUDGET, budget('cart-too'));
      await vi.waitFor(async () => expect(await why()).toMatch(/more than one PodDisruptionBudget/), PATIENCE);
      expect((await admin.get<Pod>(KINDS.pod, pod)).metadata.deletionTimestamp).toBeUndefined();
    });

    test('a node may annotate and cordon itself, and nobody else', async () => {
      const left = await cluster.asNode(`left-${run}`);
      const cordon = { metadata: { annotations: { 'drydock.dev/test': 'x' } }, spec: { unschedulable: true } };
      const own = await left.patch<Node>(KINDS.node, named('left'), cordon);
      expect(own.spec?.unschedulable).toBe(true);
      await left.patch(KINDS.node, named('left'), { spec: { unschedulable: null } });
      await expect(left.patch(KINDS.node, named('right'), cordon)).rejects.toMatchObject({ type: 'Forbidden' });
      await expect(left.get(KINDS.node, named('right'))).rejects.toMatchObject({ type: 'Forbidden' });
      await expect(left.list(KINDS.node)).rejects.toMatchObject({ type: 'Forbidden' });
      const taint = { spec: { taints: [{ key: 'x', effect: 'NoSchedule' }] } };
      await expect(left.patch(KINDS.node, named('left'), taint)).rejects.toMatchObject({ type: 'Forbidden' });
      const role = { metadata: { labels: { 'node-role.kubernetes.io/infra': '' } } };
      await expect(left.patch(KINDS.node, named('left'), role)).rejects.toMatchObject({ type: 'Forbidden' });
    });

    test('a node reports events, and reads no namespace', async () => {
      const left = await cluster.asNode(`left-${run}`);
      const event = {
        metadata: { ...named('event'), namespace: 'default' },
        involvedObject: { kind: 'Node', name: `left-${run}`, apiVersion: 'v1' },
        reason: 'Tried',
        message: 'by a test',
        type: 'Normal',
      };
      const made = await left.create(KINDS.event, event);
      expect(made).toMatchObject({ reason: 'Tried', metadata: { namespace: 'default' } });
      await expect(left.get(KINDS.event, made.metadata)).rejects.toMatchObject({ type: 'Forbidden' });
      const namespace = left.get(KINDS.namespace, { name: 'kube-system' });
      await expect(namespace).rejects.toMatchObject({ type: 'Forbidden' });
    });

    test('a node sees and evicts the pods that are bound to it, and no others', async () => {
      const left = await cluster.asNode(`left-${run}`);
      await addPod('here', `left-${run}`);
      await addPod('there', `right-${run}`);
      const pods = await left.list(KINDS.pod, { fieldSelector: `spec.nodeName=left-${run}` });
      const names = pods.map(({ metadata }) => metadata.name);
      expect(names).toContain(`here-${run}`);
      expect(names).not.toContain(`there-${run}`);
      await expect(left.list(KINDS.pod)).rejects.toMatchObject({ type: 'Forbidden' });
      await expect(left.evict({ ...named('there'), namespace: NAMESPACE })).rejects.toMatchObject({
        type: 'Forbidden',
      });
      expect(await left.evict({ ...named('here'), namespace: NAMESPACE })).toEqual({ outcome: 'evicted' });
    });

    test('a node deletes the pods that are bound to it, of that uid only, and no others', async () => {
      const left = await cluster.asNode(`left-${run}`);
      const { uid } = (await addPod('past', `left-${run}`)).metadata;
      await addPod('beyond', `right-${run}`);
      const past = { ...named('past'), namespace: NAMESPACE };
      const beyond = left.delete(KINDS.pod, { ...named('beyond'), namespace: NAMESPACE });
      await expect(beyond).rejects.toMatchObject({ type: 'Forbidden' });
      const other = left.delete(KINDS.pod, { ...past, uid: '00000000-0000-0000-0000-000000000000' });
      await expect(other).rejects.toMatchObject({ type: 'Conflict' });
      expect((await admin.get(KINDS.pod, past)).metadata.deletionTimestamp).toBeUndefined();
      await left.delete(KINDS.pod, { ...past, uid });
      await vi.waitFor(async () => {
        const found: Pod | undefined = await admin.get<Pod>(KINDS.pod, past).catch(() => undefined);
        expect(found === undefined || found.metadata.deletionTimestamp !== undefined).toBe(true);
      }, PATIENCE);
    });

    test('a node reads the claims of its pods and the volumes behind them, and no others', async () => {
      const left = await cluster.asNode(`left-${run}`);
      const size = { storage: '1Mi' };
      const access = { accessModes: ['ReadWriteOnce'], storageClassName: '' };
      for (const suffix of ['mine', 'others']) {
        const claim = { ...named(suffix), namespace: NAMESPACE };
        const csi = { driver: 'disk.example', volumeHandle: suffix };
        const volume = {
          ...access,
          capacity: size,
          csi,
          claimRef: { ...claim, apiVersion: 'v1', kind: 'PersistentVolumeClaim' },
        };
        await admin.create(KINDS.persistentVolume, { metadata: named(suffix), spec: volume } as KubernetesObject);
        const spec = { ...access, volumeName: `${suffix}-${run}`, resources: { requests: size } };
        await admin.create(KINDS.persistentVolumeClaim, { metadata: claim, spec } as KubernetesObject);
      }
      const volumes = [{ name: 'data', persistentVolumeClaim: { claimName: `mine-${run}` } }];
      const containers = [{ name: 'main', image: 'none' }];
      await admin.create(KINDS.pod, {
        metadata: { ...named('stateful'), namespace: NAMESPACE },
        spec: { nodeName: `left-${run}`, containers, volumes },
      } as KubernetesObject);
      const claim = (suffix: string) =>
        left.get(KINDS.persistentVolumeClaim, { ...named(suffix), namespace: NAMESPACE });
      const volume = (suffix: string) => left.get(KINDS.persistentVolume, named(suffix));
      // The authorizer learns of the pod a moment later, and of the volume when the claim is bound.
      await vi.waitFor(async () => {
        expect((await claim('mine')).metadata.name).toBe(`mine-${run}`);
        expect((await volume('mine')).metadata.name).toBe(`mine-${run}`);
      }, PATIENCE);
      await expect(claim('others')).rejects.toMatchObject({ type: 'Forbidden' });
      await expect(volume('others')).rejects.toMatchObject({ type: 'Forbidden' });
    });

    test('a node reads the custom objects that RBAC names to it, and no others', async () => {
      const left = await cluster.asNode(`left-${run}`);
      await admin.create(WIDGET, widget('mine'));
      await admin.create(WIDGET, widget('others'));
      const rules = [
        { apiGroups: [WIDGET.group], resources: [WIDGET.plural], verbs: ['get'], resourceNames: [`mine-${run}`] },
      ];
      await admin.create(KINDS.clusterRole, { metadata: named('reader'), rules } as KubernetesObject);
      await admin.create(KINDS.clusterRoleBinding, {
        metadata: named('reader'),
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: `reader-${run}` },
        subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: `system:node:left-${run}` }],
      } as KubernetesObject);
      await vi.waitFor(async () => {
        expect((await left.get<Widget>(WIDGET, named('mine'))).spec).toEqual({ size: 1 });
      }, PATIENCE);
      await expect(left.get(WIDGET, named('others'))).rejects.toMatchObject({ type: 'Forbidden' });
      await expect(left.list(WIDGET)).rejects.toMatchObject({ type: 'Forbidden' });
    });
  });
}
