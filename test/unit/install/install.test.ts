import { describe, expect, it } from 'vitest';
import { KINDS, type KubernetesObject } from '../../../activities/kubernetes/client.js';
import { install, InstallRefused } from '../../../client/install.js';
import { customResourceDefinitions, sharedDefinitions } from '../../../machine-config/api/crd.js';
import { apiFlavour, FLAVOUR_NAMES, type FlavourName } from '../../../machine-config/api/flavour.js';
import { matchesSelector } from '../../../machine-config/api/label-selector.js';
import type { MachineConfigPool } from '../../../machine-config/api/machine-config-pool.js';
import {
  parseMachineConfig,
  parseMachineConfigPool,
  parseMachineConfiguration,
} from '../../../machine-config/api/parse.js';
import { establishCrds } from '../../support/established-crds.js';
import { FakeCluster } from '../../support/fake-cluster.js';

const CONTROL_PLANE = 'node-role.kubernetes.io/control-plane';
const MASTER = 'node-role.kubernetes.io/master';
const CRDS = KINDS.customResourceDefinition;
const flavour = apiFlavour('openshift');
const [mcCrd] = customResourceDefinitions(flavour);
const ALL_CRDS = customResourceDefinitions(flavour).length + sharedDefinitions().length;
const mcCrdName = mcCrd!.metadata.name;

function clusterWith(nodes: Record<string, Record<string, string>> = {}): FakeCluster {
  const cluster = new FakeCluster();
  establishCrds(cluster);
  for (const [name, labels] of Object.entries(nodes)) cluster.add(KINDS.node, { metadata: { name, labels } });
  return cluster;
}

/** Everything that is stored, for "nothing has changed". */
async function everything(cluster: FakeCluster): Promise<KubernetesObject[]> {
  const kinds = [CRDS, KINDS.node, flavour.machineConfig, flavour.machineConfigPool, flavour.machineConfiguration];
  return (await Promise.all(kinds.map((kind) => cluster.list(kind)))).flat();
}

function poolOf(cluster: FakeCluster, name: string): MachineConfigPool {
  return cluster.peek<MachineConfigPool>(flavour.machineConfigPool, name)!;
}

/** The pools among master and worker whose selector takes a node with these labels. */
function poolsFor(cluster: FakeCluster, labels: Record<string, string>): string[] {
  return ['master', 'worker'].filter((name) => matchesSelector(poolOf(cluster, name).spec.nodeSelector, labels));
}

describe('install on a cluster without nodes', () => {
  it.each(FLAVOUR_NAMES)(
    'creates CRDs, settings, configs and pools of flavour %s, all valid',
    async (name: FlavourName) => {
      const cluster = clusterWith();
      const result = await install({ client: cluster, flavour: apiFlavour(name) });
      const { machineConfig, machineConfigPool, machineConfiguration, group, roleLabel } = apiFlavour(name);

      expect(result.objects.map(({ kind, name, action }) => `${kind} ${name} ${action}`)).toEqual([
        `CustomResourceDefinition machineconfigs.${group} created`,
        `CustomResourceDefinition machineconfigpools.${group} created`,
        `CustomResourceDefinition machineconfigurations.${machineConfiguration.group} created`,
        `CustomResourceDefinition machineconfignodes.${group} created`,
        `CustomResourceDefinition controllerconfigs.${group} created`,
        `CustomResourceDefinition kubeletconfigs.${group} created`,
        `CustomResourceDefinition containerruntimeconfigs.${group} created`,
        'CustomResourceDefinition imagedigestmirrorsets.config.openshift.io created',
        'CustomResourceDefinition imagetagmirrorsets.config.openshift.io created',
        'Namespace drydock created',
        'ServiceAccount drydock-control created',
        `ClusterRole drydock:${name}:control-worker created`,
        `ClusterRoleBinding drydock:${name}:control-worker created`,
        `ClusterRole drydock:${name}:gates created`,
        `ClusterRoleBinding drydock:${name}:gates created`,
        'Role drydock:control-worker created',
        'RoleBinding drydock:control-worker created',
        'Role drydock:templates created',
        'RoleBinding drydock:templates created',
        'Role drydock:certificates created',
        'RoleBinding drydock:certificates created',
        `ClusterRole drydock:${name}:viewer created`,
        `ClusterRole drydock:${name}:operator created`,
        `ValidatingAdmissionPolicy drydock-nodes-${name} created`,
        `ValidatingAdmissionPolicyBinding drydock-nodes-${name} created`,
        `ValidatingAdmissionPolicy drydock-pools-${name} created`,
        `ValidatingAdmissionPolicyBinding drydock-pools-${name} created`,
        `ValidatingAdmissionPolicy drydock-machine-configs-${name} created`,
        `ValidatingAdmissionPolicyBinding drydock-machine-configs-${name} created`,
        'MachineConfiguration cluster created',
        'MachineConfig 00-master created',
        'MachineConfig 00-worker created',
        'MachineConfigPool master created',
        'MachineConfigPool worker created',
      ]);
      expect(result).toMatchObject({ changed: true, notes: [] });
      for (const role of ['master', 'worker']) {
        const config = parseMachineConfig(cluster.peek(machineConfig, `00-${role}`));
        expect(config.ok && config.value.spec).toEqual({ config: { ignition: { version: '3.4.0' } } });
        const pool = parseMachineConfigPool(cluster.peek(machineConfigPool, role));
        expect(pool.ok && pool.value.spec).toMatchObject({
          paused: false,
          machineConfigSelector: { matchLabels: { [roleLabel]: role } },
        });
        expect(config.ok && config.value.metadata.labels).toEqual({ [roleLabel]: role });
      }
      const settings = parseMachineConfiguration(cluster.peek(machineConfiguration, 'cluster'));
      expect(settings.ok && settings.value.spec).toEqual({ managementState: 'Managed' });
    },
  );

  it('waits until the API server has accepted the CRDs', async () => {
    const cluster = new FakeCluster();
    let early = 0;
    let established = 0;
    cluster.observe(flavour.machineConfigPool, () => (early += established < ALL_CRDS ? 1 : 0));
    const installing = install({ client: cluster, flavour });
    cluster.observe(CRDS, (type, crd) => {
      if (type !== 'ADDED') return;
      setTimeout(() => {
        established += 1;
        const status = { conditions: [{ type: 'Established', status: 'True' }] };
        void cluster.patch(CRDS, { name: crd.metadata.name }, { status }, 'status');
      }, 20);
    });
    await installing;
    expect({ early, established }).toEqual({ early: 0, established: ALL_CRDS });
  });

  it.each(['NotFound', 'ApiUnavailable'] as const)('waits while listing a new kind answers %s', async (code) => {
    const cluster = clusterWith();
    cluster.failNext({ verb: 'list', kind: 'MachineConfigPool' }, { code, times: 2 });
    await expect(install({ client: cluster, flavour })).resolves.toMatchObject({ changed: true });
  });

  it('gives up on a kind that is not served in time, and says which', async () => {
    const cluster = clusterWith();
    cluster.failNext({ verb: 'list', kind: 'MachineConfigPool' }, { code: 'NotFound', times: 1_000 });
    await expect(install({ client: cluster, flavour, crdTimeoutMs: 50 })).rejects.toThrow(
      /does not serve machineconfigpools\.machineconfiguration\.openshift\.io yet; run install again/,
    );
    expect(await cluster.list(flavour.machineConfiguration)).toEqual([]);
  });

  it('names the CRDs that the API server did not accept in time, and why', async () => {
    const cluster = new FakeCluster();
    cluster.observe(CRDS, (type, crd) => {
      if (type !== 'ADDED') return;
      const conditions = [{ type: 'NamesAccepted', status: 'False', message: '"mc" is already in use' }];
      void cluster.patch(CRDS, { name: crd.metadata.name }, { status: { conditions } }, 'status');
    });
    await expect(install({ client: cluster, flavour, crdTimeoutMs: 50 })).rejects.toThrow(
      /machineconfigs\.machineconfiguration\.openshift\.io \("mc" is already in use\)/,
    );
  });
});

describe('install run again', () => {
  it('changes nothing', async () => {
    const cluster = clusterWith({ a: { [CONTROL_PLANE]: '' }, b: {} });
    await install({ client: cluster, flavour });
    const before = await everything(cluster);
    const result = await install({ client: cluster, flavour });
    expect(result.changed).toBe(false);
    expect(new Set(result.objects.map(({ action }) => action))).toEqual(new Set(['unchanged']));
    expect(await everything(cluster)).toEqual(before);
  });

  it('leaves pools, configs and settings as people changed them', async () => {
    const cluster = clusterWith({ b: {} });
    await install({ client: cluster, flavour });
    await cluster.patch(flavour.machineConfigPool, { name: 'worker' }, { spec: { paused: false, maxUnavailable: 3 } });
    await cluster.patch(flavour.machineConfig, { name: '00-worker' }, { spec: { kernelArguments: ['quiet'] } });
    await cluster.patch(flavour.machineConfiguration, { name: 'cluster' }, { spec: { managementState: 'Unmanaged' } });
    const before = await everything(cluster);
    await install({ client: cluster, flavour });
    expect(await everything(cluster)).toEqual(before);
  });

  it('creates only what is missing', async () => {
    const cluster = clusterWith();
    await install({ client: cluster, flavour });
    await cluster.delete(flavour.machineConfig, { name: '00-worker' });
    const { objects } = await install({ client: cluster, flavour });
    expect(objects.filter(({ action }) => action !== 'unchanged')).toEqual([
      { kind: 'MachineConfig', name: '00-worker', action: 'created' },
    ]);
  });

  it('brings a CRD of an older version up to date and keeps what others added to it', async () => {
    const cluster = clusterWith();
    await install({ client: cluster, flavour });
    const versions = [{ ...mcCrd!.spec.versions[0]!, additionalPrinterColumns: [] }];
    await cluster.patch(
      CRDS,
      { name: mcCrdName },
      { metadata: { labels: { team: 'x' } }, spec: { versions, conversion: { strategy: 'None' } } },
    );
    const { objects } = await install({ client: cluster, flavour });
    expect(objects[0]).toEqual({ kind: 'CustomResourceDefinition', name: mcCrdName, action: 'updated' });
    expect(cluster.peek(CRDS, mcCrdName)).toMatchObject({
      metadata: { labels: { team: 'x', ...mcCrd!.metadata.labels } },
      spec: { ...mcCrd!.spec, conversion: { strategy: 'None' } },
      status: { conditions: [{ type: 'Established' }] },
    });
    expect((await install({ client: cluster, flavour })).changed).toBe(false);
  });

  it('reads a CRD again when somebody wrote it in between', async () => {
    const cluster = clusterWith();
    await install({ client: cluster, flavour });
    await cluster.patch(CRDS, { name: mcCrdName }, { spec: { scope: 'Namespaced' } });
    cluster.failNext({ verb: 'update', kind: 'CustomResourceDefinition' }, { code: 'Conflict' });
    expect((await install({ client: cluster, flavour })).objects[0]).toMatchObject({ action: 'updated' });
  });

  it('may run twice at once', async () => {
    const cluster = clusterWith();
    const results = await Promise.all([install({ client: cluster, flavour }), install({ client: cluster, flavour })]);
    const created = results.flatMap(({ objects }) => objects).filter(({ action }) => action === 'created');
    expect(created.map(({ name }) => name).sort()).toEqual(results[0].objects.map(({ name }) => name).sort());
  });
});

describe('install on a cluster with nodes', () => {
  it('creates the pools paused, says so, and changes no node', async () => {
    const cluster = clusterWith({ a: { [CONTROL_PLANE]: '' }, b: {} });
    const nodes = await cluster.list(KINDS.node);
    const { notes } = await install({ client: cluster, flavour });
    expect([poolOf(cluster, 'master').spec.paused, poolOf(cluster, 'worker').spec.paused]).toEqual([true, true]);
    expect(notes).toHaveLength(1);
    expect(notes[0]).toMatch(/paused.*master, worker.*drydock pool resume/);
    expect(await cluster.list(KINDS.node)).toEqual(nodes);
  });

  it('creates them running when told to', async () => {
    const cluster = clusterWith({ b: {} });
    const { notes } = await install({ client: cluster, flavour, nodeExistsPolicy: 'run' });
    expect([poolOf(cluster, 'master').spec.paused, poolOf(cluster, 'worker').spec.paused]).toEqual([false, false]);
    expect(notes).toEqual([]);
  });

  it.each<[string, Record<string, string>, string[]]>([
    ['control plane', { [CONTROL_PLANE]: '', 'kubernetes.io/os': 'linux' }, ['master']],
    ['control plane with both labels', { [CONTROL_PLANE]: '', [MASTER]: '' }, ['master']],
    ['worker', { 'kubernetes.io/os': 'linux' }, ['worker']],
    ['worker with a role label', { 'node-role.kubernetes.io/worker': '', type: 'gpu' }, ['worker']],
    ['Windows', { 'kubernetes.io/os': 'windows' }, []],
    ['virtual', { 'kubernetes.io/os': 'linux', type: 'virtual-kubelet' }, []],
    ['node with the old label only', { [MASTER]: '' }, []],
  ])('puts a %s node where it belongs', async (_what, labels, pools) => {
    const cluster = clusterWith({ a: { [CONTROL_PLANE]: '' }, b: labels });
    await install({ client: cluster, flavour });
    expect(poolsFor(cluster, labels)).toEqual(pools);
  });

  it('uses the old label where the cluster knows no other', async () => {
    const cluster = clusterWith({ a: { [MASTER]: '' }, b: {} });
    await install({ client: cluster, flavour });
    expect(poolsFor(cluster, { [MASTER]: '' })).toEqual(['master']);
    expect(poolsFor(cluster, {})).toEqual(['worker']);
  });

  it('names the number of nodes that no pool can select', async () => {
    const cluster = clusterWith({ a: { [CONTROL_PLANE]: '' }, b: { [MASTER]: '' } });
    const { notes } = await install({ client: cluster, flavour });
    expect(notes.join('\n')).toContain(`1 node has the label ${MASTER} without ${CONTROL_PLANE} and is in no pool`);
  });
});

describe('install beside another machine-config operator', () => {
  const deployments = KINDS.deployment;
  const operators = {
    group: 'config.openshift.io',
    version: 'v1',
    plural: 'clusteroperators',
    kind: 'ClusterOperator',
    namespaced: false,
  };
  const foreignCrd = (plural: string, group: string) => ({ metadata: { name: `${plural}.${group}` }, spec: { group } });

  it.each<[string, (cluster: FakeCluster) => unknown, RegExp]>([
    [
      'its Deployment',
      (cluster) =>
        cluster.add(deployments, {
          metadata: { name: 'machine-config-operator', namespace: 'openshift-machine-config-operator' },
        }),
      /^Deployment openshift-machine-config-operator\/machine-config-operator exists/,
    ],
    [
      'its ClusterOperator',
      (cluster) => cluster.add(operators, { metadata: { name: 'machine-config' } }),
      /ClusterOperator machine-config exists/,
    ],
    [
      'a CRD that we do not have',
      (cluster) => cluster.add(CRDS, foreignCrd('controllerconfigs', 'machineconfiguration.openshift.io')),
      /controllerconfigs\.machineconfiguration\.openshift\.io exists and is not Drydock's/,
    ],
    [
      'a CRD of the same name as ours',
      (cluster) => cluster.add(CRDS, foreignCrd('machineconfigs', 'machineconfiguration.openshift.io')),
      /machineconfigs\.machineconfiguration\.openshift\.io exists and is not Drydock's/,
    ],
    [
      'the CRD of its settings',
      (cluster) => cluster.add(CRDS, foreignCrd('machineconfigurations', 'operator.openshift.io')),
      /machineconfigurations\.operator\.openshift\.io exists and is not Drydock's/,
    ],
  ])('refuses on %s, in one line, before it writes anything', async (_what, prepare, message) => {
    for (const name of FLAVOUR_NAMES) {
      const cluster = clusterWith();
      prepare(cluster);
      const before = await everything(cluster);
      const error: unknown = await install({ client: cluster, flavour: apiFlavour(name) }).catch(
        (reason: unknown) => reason,
      );
      expect(error).toBeInstanceOf(InstallRefused);
      expect((error as Error).message).toMatch(message);
      expect((error as Error).message).not.toContain('\n');
      expect(await everything(cluster)).toEqual(before);
    }
  });

  it.each([
    ['ingresscontrollers', 'operator.openshift.io'],
    ['machineconfigs', 'example.org'],
  ])('is not alarmed by a CRD %s.%s', async (plural, group) => {
    const cluster = clusterWith();
    cluster.add(CRDS, foreignCrd(plural, group));
    await expect(install({ client: cluster, flavour })).resolves.toMatchObject({ changed: true });
  });

  it('is not alarmed by CRDs that were applied from deploy/crds', async () => {
    const cluster = clusterWith();
    for (const crd of [...customResourceDefinitions(flavour), ...sharedDefinitions()]) await cluster.create(CRDS, crd);
    const { objects } = await install({ client: cluster, flavour });
    expect(objects.filter(({ kind }) => kind === CRDS.kind).map(({ action }) => action)).toEqual(
      Array(ALL_CRDS).fill('unchanged'),
    );
  });

  it('leaves the kinds of image mirrors that others brought as they are', async () => {
    const cluster = clusterWith();
    const [theirs] = sharedDefinitions();
    const labels = { brought: 'by-others' };
    await cluster.create(CRDS, { ...theirs!, metadata: { ...theirs!.metadata, labels } });
    const { objects } = await install({ client: cluster, flavour });
    expect(objects.find(({ name }) => name === theirs!.metadata.name)?.action).toBe('unchanged');
    expect(cluster.peek<KubernetesObject>(CRDS, theirs!.metadata.name)?.metadata.labels).toEqual(labels);
  });

  it('passes on the failure when it cannot find out', async () => {
    const cluster = clusterWith();
    cluster.failNext({ verb: 'get', kind: 'Deployment' }, { code: 'Forbidden' });
    await expect(install({ client: cluster, flavour })).rejects.toMatchObject({ type: 'Forbidden' });
    expect(await cluster.list(CRDS)).toEqual([]);
  });
});
