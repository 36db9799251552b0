import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { syncCertificateAccess } from '../../activities/cluster/certificate-access.js';
import type { ControllerConfigResource } from '../../activities/cluster/controller-config.js';
import { KINDS, type KubernetesClient, type KubernetesObject } from '../../activities/kubernetes/client.js';
import { ifThere } from '../../activities/kubernetes/failures.js';
import { startCertificateKeeper } from '../../activities/node/certificates.js';
import { CONTROL_USER, NAMESPACE } from '../../client/install/rbac.js';
import { CONTROLLER_CONFIG_NAME, type NodeCertificate } from '../../machine-config/api/controller-config.js';
import { READ_BY_NAME } from '../../machine-config/certificates/objects.js';
import { fakeHost } from '../support/fake-host.js';
import type { RealCluster, RealControl } from '../support/real-cluster.js';
import { PATIENCE } from '../support/patience.js';

const POOL = 'certified';
const [NODE, OTHER_NODE, STRANGER] = ['certified-1', 'certified-2', 'uncertified-1'] as const;
/** Where an administrator let the control worker read, and where nobody did. */
const [OPEN, CLOSED] = ['trust-open', 'trust-closed'] as const;
const forbidden = expect.objectContaining({ type: 'Forbidden' }) as Error;

const base64 = (text: string) => Buffer.from(text).toString('base64');
const from = (namespace: string, name = 'ca'): NodeCertificate => ({
  secret: { namespace, name },
  key: 'ca.crt',
  path: `/etc/pki/${namespace}/${name}`,
});

/** What nodes may read of Secrets and ConfigMaps, each with its own identity, as the real API server has it. */
export function describeCertificates(cluster: () => RealCluster, control: () => RealControl): void {
  describe('certificates', () => {
    const clients = new Map<string, KubernetesClient>();
    const as = (node: string) => clients.get(node)!;
    // The API server acts on a changed role or binding a moment later.
    const soon = <T>(condition: () => Promise<T>) => vi.waitFor(condition, { ...PATIENCE, interval: 20 });
    const get = (node: string, namespace: string, name = 'ca') => as(node).get(KINDS.secret, { namespace, name });
    const config = () => {
      const { admin, flavour } = cluster();
      const name = { name: CONTROLLER_CONFIG_NAME };
      return ifThere(() => admin.get<ControllerConfigResource>(flavour.controllerConfig, name));
    };
    const name = async (certificates: NodeCertificate[]) => {
      const { admin, flavour } = cluster();
      const metadata = { name: CONTROLLER_CONFIG_NAME };
      if ((await config()) === undefined)
        await admin.create(flavour.controllerConfig, { metadata, spec: { certificates } } as KubernetesObject);
      else await admin.patch(flavour.controllerConfig, metadata, { spec: { certificates } });
      await control().caughtUp();
    };
    const sync = async () => syncCertificateAccess(control().dependencies, await config());

    /** Takes a node out of every pool: the pool `worker` takes those that no other wants, but of this sort none does. */
    const expel = async (node: string) => {
      const labels = { 'test.drydock.dev/pool': null, type: 'virtual-kubelet' };
      await cluster().admin.patch(KINDS.node, { name: node }, { metadata: { labels } });
      await control().caughtUp();
    };

    beforeAll(async () => {
      const { admin } = cluster();
      await cluster().createPool(POOL);
      await cluster().createMembers(POOL, [{ name: NODE }, { name: OTHER_NODE }]);
      await cluster().kubernetes.createNodes([{ name: STRANGER }]);
      for (const node of [NODE, OTHER_NODE, STRANGER]) {
        await cluster().say(node, {});
        clients.set(node, await cluster().asNode(node));
      }
      await expel(STRANGER);
      for (const namespace of [OPEN, CLOSED]) await admin.create(KINDS.namespace, { metadata: { name: namespace } });
      for (const [namespace, secret] of [
        [NAMESPACE, 'ca'],
        [NAMESPACE, 'other'],
        [OPEN, 'ca'],
        [CLOSED, 'ca'],
      ] as const) {
        const metadata = { namespace, name: secret };
        await admin.create(KINDS.secret, { metadata, data: { 'ca.crt': base64('one') } } as KubernetesObject);
      }
      // As docs/certificates.md has it for a namespace of somebody else.
      const metadata = { name: 'drydock-certificates', namespace: OPEN };
      const rules = [{ apiGroups: [''], resources: ['secrets'], resourceNames: ['ca'], verbs: READ_BY_NAME }];
      await admin.create(KINDS.role, { metadata, rules } as KubernetesObject);
      await admin.create(KINDS.roleBinding, {
        metadata,
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: metadata.name },
        subjects: [{ kind: 'ServiceAccount', namespace: NAMESPACE, name: CONTROL_USER.split(':')[3] }],
      } as KubernetesObject);
    });
    afterAll(async () => {
      const { admin, flavour } = cluster();
      if ((await config()) !== undefined)
        await admin.delete(flavour.controllerConfig, { name: CONTROLLER_CONFIG_NAME });
    });

    test('a file follows its Secret on a node that was let read it a moment later', async () => {
      const { admin, flavour } = cluster();
      const fake = await fakeHost();
      const keeper = startCertificateKeeper(
        {
          node: NODE,
          clusterUid: cluster().uid,
          client: as(NODE),
          host: fake.host,
          store: fake.store,
          flavour,
          version: '0.1.0',
          now: () => new Date(),
          hasItsName: () => true,
          irreconcilable: () => [],
        },
        { logger: { info: () => undefined, warn: () => undefined } },
      );
      onTestFinished(() => keeper.stop());
      const onDisk = () => readFile(fake.path(`/etc/pki/${NAMESPACE}/ca`), 'utf8');
      await name([from(NAMESPACE), from(CLOSED)]);
      // The pool's members may read the ControllerConfig.
      await control().activities.syncPool({ cluster: cluster().uid, pool: POOL });
      await control().activities.reconcileSources({ cluster: cluster().uid, kind: 'ControllerConfig' });
      await soon(async () => expect(await onDisk()).toBe('one'));
      await admin.patch(KINDS.secret, { namespace: NAMESPACE, name: 'ca' }, { data: { 'ca.crt': base64('two') } });
      await soon(async () => expect(await onDisk()).toBe('two'));
    });

    test('where the control worker may not let nodes read, the ControllerConfig says so', async () => {
      const failing = (await config())?.status?.conditions?.find(({ type }) => type === 'CertificatesFailing');
      expect(failing).toMatchObject({ status: 'True', reason: 'MayNotGrant' });
      expect(failing?.message).toContain(`in ${CLOSED}; put`);
      await expect(get(NODE, CLOSED)).rejects.toEqual(forbidden);
    });

    test('members of pools read what is named, by name, and nothing else; others nothing at all', async () => {
      for (const node of [NODE, OTHER_NODE]) {
        await soon(() => get(node, NAMESPACE));
        const byName = { namespace: NAMESPACE, fieldSelector: 'metadata.name=ca' };
        expect(await as(node).list(KINDS.secret, byName)).toHaveLength(1);
        for (const refused of [
          () => get(node, NAMESPACE, 'other'),
          () => get(node, OPEN),
          () => as(node).list(KINDS.secret, { namespace: NAMESPACE }),
          () => as(node).list(KINDS.secret, { namespace: NAMESPACE, fieldSelector: 'metadata.name=other' }),
          () => as(node).list(KINDS.secret),
          () => as(node).get(KINDS.configMap, { namespace: NAMESPACE, name: 'ca' }),
          () => as(node).patch(KINDS.secret, { namespace: NAMESPACE, name: 'ca' }, { data: {} }),
          () => as(node).list(cluster().flavour.controllerConfig),
          () => as(node).patch(cluster().flavour.controllerConfig, { name: CONTROLLER_CONFIG_NAME }, { spec: {} }),
        ]) {
          await expect(refused(), refused.toString()).rejects.toEqual(forbidden);
        }
      }
      await expect(get(STRANGER, NAMESPACE)).rejects.toEqual(forbidden);
    });

    test('what is named elsewhere may be read there, where an administrator agreed, and no more where it was', async () => {
      await name([from(OPEN)]);
      expect(await sync()).toBeUndefined();
      await soon(() => get(NODE, OPEN));
      await soon(() => expect(get(NODE, NAMESPACE)).rejects.toEqual(forbidden));
      await expect(as(NODE).list(KINDS.secret, { namespace: OPEN })).rejects.toEqual(forbidden);
    });

    test('a node that leaves all pools reads nothing any more, and the others go on', async () => {
      await soon(() => get(OTHER_NODE, OPEN));
      await expel(OTHER_NODE);
      await sync();
      await soon(() => expect(get(OTHER_NODE, OPEN)).rejects.toEqual(forbidden));
      await get(NODE, OPEN);
    });

    test('names that are added and taken away in the same namespace are read and not read', async () => {
      await name([from(NAMESPACE, 'other')]);
      await sync();
      await soon(() => get(NODE, NAMESPACE, 'other'));
      await name([from(NAMESPACE)]);
      await sync();
      await soon(() => get(NODE, NAMESPACE));
      await soon(() => expect(get(NODE, NAMESPACE, 'other')).rejects.toEqual(forbidden));
    });

    test('without a ControllerConfig nothing is left of it', async () => {
      const { admin, flavour } = cluster();
      await admin.delete(flavour.controllerConfig, { name: CONTROLLER_CONFIG_NAME });
      await soon(async () => expect(await config()).toBeUndefined());
      await sync();
      const fieldSelector = `metadata.name=drydock:${flavour.name}:certificates`;
      expect(await admin.list(KINDS.role, { fieldSelector })).toEqual([]);
      expect(await admin.list(KINDS.roleBinding, { fieldSelector })).toEqual([]);
      await soon(() => expect(get(NODE, NAMESPACE)).rejects.toEqual(forbidden));
    });
  });
}
