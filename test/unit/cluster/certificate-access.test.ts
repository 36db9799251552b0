import { beforeEach, expect, it } from 'vitest';
import { syncCertificateAccess, syncCertificateAccessAsSeen } from '../../../activities/cluster/certificate-access.js';
import type { ControllerConfigResource } from '../../../activities/cluster/controller-config.js';
import { KINDS, type KubernetesObject } from '../../../activities/kubernetes/client.js';
import { CONTROLLER_CONFIG_NAME, type NodeCertificate } from '../../../machine-config/api/controller-config.js';
import { FakeControl } from './fake-control.js';

const ROLE = 'drydock:openshift:certificates';
type Binding = KubernetesObject & { subjects?: { name: string }[] };

let control: FakeControl;
let calls: string[];
let now: number;
beforeEach(() => {
  control = new FakeControl();
  now = 0;
  control.dependencies = { ...control.dependencies, now: () => now };
  control.addPool();
  control.addNode('a');
  control.addNode('b');
  // Not managed, and in no pool.
  control.addNode('unmanaged', { 'drydock.dev/worker': '' });
  control.cluster.add(KINDS.node, {
    metadata: { name: 'stray', annotations: { 'drydock.dev/worker': '1.0.0' } },
  });
  calls = [];
  control.cluster.intercept(({ verb, resource }) => void calls.push(`${verb} ${resource.kind}`));
});

const secret = (namespace: string, name: string): NodeCertificate => ({
  secret: { namespace, name },
  key: 'ca.crt',
  path: `/etc/pki/${name}`,
});
const kind = () => control.flavour.controllerConfig;
const seen = () => control.cluster.peek<ControllerConfigResource>(kind(), CONTROLLER_CONFIG_NAME);
async function sync(certificates?: NodeCertificate[]) {
  if (certificates !== undefined) {
    if (seen() === undefined)
      control.cluster.add(kind(), {
        metadata: { name: CONTROLLER_CONFIG_NAME },
        spec: { certificates },
      } as KubernetesObject);
    else await control.cluster.patch(kind(), { name: CONTROLLER_CONFIG_NAME }, { spec: { certificates } });
  }
  calls.length = 0;
  return syncCertificateAccess(control.dependencies, seen());
}
const node = (name: string) => control.cluster.as(`system:node:${name}`);
const read = (name: string, object: string, namespace = 'drydock') =>
  node(name)
    .get(KINDS.secret, { namespace, name: object })
    .then(
      () => 'read',
      (error: unknown) => (error as { type: string }).type,
    );
const namespaces = async () =>
  (await control.cluster.list(KINDS.role)).map(({ metadata }) => metadata.namespace).sort();

it('lets managed members of pools read what is named, by name, and nobody else and nothing else', async () => {
  for (const name of ['ca', 'other']) control.cluster.add(KINDS.secret, { metadata: { namespace: 'drydock', name } });
  expect(await sync([secret('drydock', 'ca')])).toBeUndefined();
  expect([await read('a', 'ca'), await read('b', 'ca')]).toEqual(['read', 'read']);
  expect([await read('unmanaged', 'ca'), await read('stray', 'ca')]).toEqual(['Forbidden', 'Forbidden']);
  expect(await read('a', 'other')).toBe('Forbidden');
  await expect(node('a').list(KINDS.secret, { namespace: 'drydock' })).rejects.toMatchObject({ type: 'Forbidden' });
  const byName = { namespace: 'drydock', fieldSelector: 'metadata.name=ca' };
  expect(await node('a').list(KINDS.secret, byName)).toHaveLength(1);
});

it('takes it back where nothing is named any more', async () => {
  control.cluster.add(KINDS.secret, { metadata: { namespace: 'drydock', name: 'ca' } });
  await sync([secret('drydock', 'ca'), secret('shop', 'trust')]);
  expect(await namespaces()).toEqual(['drydock', 'shop']);
  await sync([secret('drydock', 'new')]);
  expect(await namespaces()).toEqual(['drydock']);
  expect(await read('a', 'ca')).toBe('Forbidden');
  await control.cluster.delete(kind(), { name: CONTROLLER_CONFIG_NAME });
  await sync();
  expect(await namespaces()).toEqual([]);
  expect(await control.cluster.list(KINDS.roleBinding)).toEqual([]);
});

it('takes it back that an earlier control worker gave', async () => {
  control.cluster.add(KINDS.role, { metadata: { namespace: 'shop', name: ROLE } });
  control.cluster.add(KINDS.roleBinding, { metadata: { namespace: 'shop', name: ROLE } });
  control.cluster.add(KINDS.role, { metadata: { namespace: 'shop', name: 'theirs' } });
  await sync();
  expect((await control.cluster.list(KINDS.role)).map(({ metadata }) => metadata.name)).toEqual(['theirs']);
  expect(await control.cluster.list(KINDS.roleBinding)).toEqual([]);
});

it('asks for nothing where nothing changed, follows members, and makes good within a minute what others did', async () => {
  await sync([secret('drydock', 'ca')]);
  await sync();
  expect(calls).toEqual([]);
  control.addNode('c');
  await sync();
  const subjects = () =>
    control.cluster
      .peek<Binding>(KINDS.roleBinding, { namespace: 'drydock', name: ROLE })
      ?.subjects?.map(({ name }) => name);
  expect(subjects()).toEqual(['system:node:a', 'system:node:b', 'system:node:c']);
  await control.cluster.patch(KINDS.roleBinding, { namespace: 'drydock', name: ROLE }, { subjects: [] });
  now += 59_000;
  await sync();
  expect(subjects()).toEqual([]);
  now += 1_000;
  await sync();
  expect(subjects()).toHaveLength(3);
});

it('costs nothing in a cluster that has no certificates', async () => {
  await sync();
  now += 10 * 60_000;
  await sync();
  expect(calls).toEqual([]);
});

it('says in which namespace it may not, and does the others', async () => {
  control.cluster.failNext({ verb: 'create', kind: 'Role' }, { code: 'Forbidden' });
  const problem = await sync([secret('closed', 'ca'), secret('drydock', 'ca')]);
  expect(problem).toMatchObject({ reason: 'MayNotGrant' });
  expect(problem?.message).toContain('in closed; put');
  expect(await namespaces()).toEqual(['drydock']);
  now += 60_000;
  expect(await sync()).toBeUndefined();
  expect(await namespaces()).toEqual(['closed', 'drydock']);
});

it('does not hold up a pool where an older installation lets it not look at Roles', async () => {
  control.cluster.failNext({ verb: 'list', kind: 'RoleBinding' }, { code: 'Forbidden' });
  expect((await sync([secret('drydock', 'ca')]))?.message).toContain('run drydock install again');
});

it('goes by the ControllerConfig as it is, not by what a watch that lags shows', async () => {
  await sync([secret('drydock', 'ca')]);
  const old = seen();
  await sync([secret('shop', 'ca')]);
  await syncCertificateAccess(control.dependencies, old);
  expect(await namespaces()).toEqual(['shop']);
});

it('neither asks nor takes back anything before the watch has shown something', async () => {
  await sync([secret('drydock', 'ca')]);
  calls.length = 0;
  const controllerConfigs = { list: () => [], get: () => undefined, freshness: () => undefined };
  await syncCertificateAccessAsSeen({ ...control.dependencies, controllerConfigs });
  expect(calls).toEqual([]);
  expect(await namespaces()).toEqual(['drydock']);
});
