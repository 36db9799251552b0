import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { KINDS, type KubernetesObject } from '../../../activities/kubernetes/client.js';
import { install } from '../../../client/install.js';
import { renderManifestFiles } from '../../../client/install/manifest-files.js';
import { CONTROL_USER } from '../../../client/install/rbac.js';
import { apiFlavour } from '../../../machine-config/api/flavour.js';
import { FakeCluster } from '../../support/fake-cluster.js';

const flavour = apiFlavour('openshift');
const POLICY = 'drydock-nodes-openshift';
const ROLE = 'drydock:openshift:control-worker';

type Policy = KubernetesObject & {
  spec: { failurePolicy?: string; variables: { name: string; expression: string }[] };
};
type Binding = KubernetesObject & { subjects?: object[] };

function emptyCluster(): FakeCluster {
  const cluster = new FakeCluster();
  cluster.observe(KINDS.customResourceDefinition, (type, { metadata: { name } }) => {
    if (type !== 'ADDED') return;
    const status = { conditions: [{ type: 'Established', status: 'True' }] };
    void cluster.patch(KINDS.customResourceDefinition, { name }, { status }, 'status');
  });
  return cluster;
}

const controlOf = (cluster: FakeCluster) =>
  cluster.peek<Policy>(KINDS.validatingAdmissionPolicy, POLICY)?.spec.variables.find(({ name }) => name === 'isControl')
    ?.expression;
const subjectsOf = (cluster: FakeCluster) => cluster.peek<Binding>(KINDS.clusterRoleBinding, ROLE)?.subjects;

test('the files in deploy are what install applies', async () => {
  for (const [path, text] of renderManifestFiles()) {
    const file = join(import.meta.dirname, '../../../deploy', path);
    expect(await readFile(file, 'utf8'), `${path} is out of date: npm run generate`).toBe(text);
  }
});

describe('the user of the control worker', () => {
  test('is its service account, and gets the role', async () => {
    const cluster = emptyCluster();
    await install({ client: cluster, flavour });
    expect(controlOf(cluster)).toContain(JSON.stringify(CONTROL_USER));
    expect(subjectsOf(cluster)).toEqual([{ kind: 'ServiceAccount', name: 'drydock-control', namespace: 'drydock' }]);
  });

  test('is kept by the next installation that says nothing of it', async () => {
    const cluster = emptyCluster();
    await install({ client: cluster, flavour, controlUser: 'drydock' });
    expect(await install({ client: cluster, flavour })).toMatchObject({ changed: false });
    expect(controlOf(cluster)).toContain('"drydock"');
    expect(subjectsOf(cluster)).toEqual([{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'drydock' }]);
    await install({ client: cluster, flavour, controlUser: 'other' });
    expect(controlOf(cluster)).toContain('"other"');
  });
});

test('what somebody changed of a policy or a role is put right, and what others added stays', async () => {
  const cluster = emptyCluster();
  await install({ client: cluster, flavour });
  await cluster.patch(KINDS.clusterRole, { name: ROLE }, { rules: [], metadata: { annotations: { theirs: 'yes' } } });
  await cluster.patch(KINDS.validatingAdmissionPolicy, { name: POLICY }, { spec: { failurePolicy: 'Ignore' } });
  const { objects } = await install({ client: cluster, flavour });
  expect(objects.filter(({ action }) => action === 'updated').map(({ name }) => name)).toEqual([ROLE, POLICY]);
  expect(cluster.peek<Policy>(KINDS.validatingAdmissionPolicy, POLICY)?.spec.failurePolicy).toBe('Fail');
  expect(cluster.peek(KINDS.clusterRole, ROLE)?.metadata.annotations).toEqual({ theirs: 'yes' });
});

test('refuses a cluster that knows no admission policies, and writes nothing', async () => {
  const cluster = emptyCluster();
  const old = Object.assign(Object.create(cluster) as FakeCluster, { discover: () => Promise.resolve(undefined) });
  await expect(install({ client: old, flavour })).rejects.toMatchObject({
    name: 'InstallRefused',
    message: expect.stringContaining('Kubernetes 1.32 or newer is needed') as string,
  });
  expect(await cluster.list(KINDS.customResourceDefinition)).toEqual([]);
});
