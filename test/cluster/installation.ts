import { readFile } from 'node:fs/promises';
import { basename } from 'node:path';
import { beforeAll, describe, expect, test, vi } from 'vitest';
import { parse } from 'yaml';
import { KINDS, type KubernetesObject } from '../../activities/kubernetes/client.js';
import type { NodeResource, PoolResource } from '../../activities/cluster/control-dependencies.js';
import { install } from '../../client/install.js';
import { customResourceDefinitions } from '../../machine-config/api/crd.js';
import { renderCrdFiles } from '../../machine-config/api/crd-files.js';
import { apiFlavour, type ApiFlavour, type FlavourName } from '../../machine-config/api/flavour.js';
import { versionsOf, type RealCluster } from '../support/real-cluster.js';
import { PATIENCE } from '../support/patience.js';

const CRDS = KINDS.customResourceDefinition;
const MASTER = 'node-role.kubernetes.io/master';
const CONTROL_PLANE = 'node-role.kubernetes.io/control-plane';

type Crd = KubernetesObject & {
  spec: { versions: object[] };
  status?: { conditions?: { type: string; status: string }[] };
};
type ManagedNode = NodeResource & {
  spec?: { taints?: object[] };
  metadata: { managedFields?: { manager?: string }[] };
};

/** Runs first: it wants a cluster that nobody has installed anything on. Leaves both flavours installed. */
export function describeInstallation(cluster: () => RealCluster): void {
  describe('install, on a cluster that has nodes already', () => {
    const openshift = apiFlavour('openshift');
    const alauda = apiFlavour('alauda');
    let before: ManagedNode[];

    const everything = async (flavour: ApiFlavour) => {
      const { admin } = cluster();
      const { machineConfig, machineConfigPool, machineConfiguration } = flavour;
      const lists = [CRDS, machineConfig, machineConfigPool, machineConfiguration].map((kind) => admin.list(kind));
      return (await Promise.all(lists)).map(versionsOf);
    };
    const selectorOf = async (flavour: ApiFlavour, name: string) => {
      const pool = await cluster().admin.get<PoolResource>(flavour.machineConfigPool, { name });
      return pool.spec.nodeSelector?.matchExpressions?.map(({ key, operator }) => `${key} ${operator}`);
    };
    /** Path and name of each: the name of a CRD is that of its file. */
    const checkedIn = (flavour: FlavourName) =>
      [...renderCrdFiles().keys()]
        .filter((path) => path.startsWith(`${flavour}/`))
        .map((path) => ({ path: `deploy/crds/${path}`, name: basename(path, '.yaml') }));

    beforeAll(async () => {
      const { kubernetes, admin } = cluster();
      await kubernetes.createNodes([
        { name: 'old-master', labels: { [MASTER]: '' } },
        { name: 'plain-1' },
        { name: 'plain-2' },
      ]);
      // The controllers take the taint of a new node off a moment after it is Ready.
      before = await vi.waitFor(
        async () => {
          const nodes = await admin.list<ManagedNode>(KINDS.node);
          expect(nodes.flatMap(({ spec }) => spec?.taints ?? [])).toEqual([]);
          return nodes;
        },
        { ...PATIENCE, interval: 100 },
      );
    });

    test('refuses beside the operator of OpenShift, and writes nothing', async () => {
      const { admin } = cluster();
      const operator = { name: 'machine-config-operator', namespace: 'openshift-machine-config-operator' };
      const labels = { app: 'operator' };
      await admin.create(KINDS.namespace, { metadata: { name: operator.namespace } });
      await admin.create<KubernetesObject & { spec: object }>(KINDS.deployment, {
        metadata: operator,
        spec: {
          replicas: 0,
          selector: { matchLabels: labels },
          template: { metadata: { labels }, spec: { containers: [{ name: 'main', image: 'none' }] } },
        },
      });
      await expect(install({ client: admin, flavour: openshift })).rejects.toMatchObject({
        name: 'InstallRefused',
        message: expect.stringContaining(`${operator.namespace}/${operator.name}`) as string,
      });
      expect(await admin.list(CRDS)).toEqual([]);
      await admin.delete(KINDS.deployment, operator);
    });

    test('creates everything, the pools paused', async () => {
      const { admin } = cluster();
      const result = await install({ client: admin, flavour: openshift });
      expect(result.objects.map(({ name, action }) => `${action} ${name}`)).toEqual([
        'created machineconfigs.machineconfiguration.openshift.io',
        'created machineconfigpools.machineconfiguration.openshift.io',
        'created machineconfigurations.operator.openshift.io',
        'created machineconfignodes.machineconfiguration.openshift.io',
        'created controllerconfigs.machineconfiguration.openshift.io',
        'created kubeletconfigs.machineconfiguration.openshift.io',
        'created containerruntimeconfigs.machineconfiguration.openshift.io',
        'created imagedigestmirrorsets.config.openshift.io',
        'created imagetagmirrorsets.config.openshift.io',
        'created drydock',
        'created drydock-control',
        'created drydock:openshift:control-worker',
        'created drydock:openshift:control-worker',
        'created drydock:openshift:gates',
        'created drydock:openshift:gates',
        'created drydock:control-worker',
        'created drydock:control-worker',
        'created drydock:templates',
        'created drydock:templates',
        'created drydock:certificates',
        'created drydock:certificates',
        'created drydock:openshift:viewer',
        'created drydock:openshift:operator',
        'created drydock-nodes-openshift',
        'created drydock-nodes-openshift',
        'created drydock-pools-openshift',
        'created drydock-pools-openshift',
        'created drydock-machine-configs-openshift',
        'created drydock-machine-configs-openshift',
        'created cluster',
        'created 00-master',
        'created 00-worker',
        'created master',
        'created worker',
      ]);
      expect(result.notes[0]).toMatch(/has nodes already \(3\).*paused.*master, worker.*drydock pool resume POOL/);
      const pools = await admin.list<PoolResource>(openshift.machineConfigPool);
      expect(pools.map(({ metadata, spec }) => [metadata.name, spec.paused])).toEqual([
        ['master', true],
        ['worker', true],
      ]);
    });

    test('takes the label master for the control plane where no node has the newer one', async () => {
      expect(await selectorOf(openshift, 'master')).toContain(`${MASTER} Exists`);
      expect(await selectorOf(openshift, 'worker')).toEqual(
        expect.arrayContaining([`${MASTER} DoesNotExist`, `${CONTROL_PLANE} DoesNotExist`]),
      );
    });

    test('run again, changes nothing', async () => {
      const first = await everything(openshift);
      const again = await install({ client: cluster().admin, flavour: openshift });
      expect(again).toMatchObject({ changed: false, notes: [] });
      expect(await everything(openshift)).toEqual(first);
    });

    test('keeps what an administrator made of a pool, also when it is run again', async () => {
      const { admin } = cluster();
      const { machineConfigPool } = openshift;
      await admin.patch(machineConfigPool, { name: 'worker' }, { spec: { paused: false, maxUnavailable: '20%' } });
      await install({ client: admin, flavour: openshift });
      const { spec } = await admin.get<PoolResource>(machineConfigPool, { name: 'worker' });
      expect(spec).toMatchObject({ paused: false, maxUnavailable: '20%' });
      await admin.patch(machineConfigPool, { name: 'worker' }, { spec: { paused: true, maxUnavailable: null } });
    });

    test('the checked-in CRDs of openshift are, to the letter, what it installed and what is established', async () => {
      const { admin } = cluster();
      for (const { path, name } of checkedIn('openshift')) {
        const file = parse(await readFile(path, 'utf8')) as Crd;
        const live = await admin.get<Crd>(CRDS, { name });
        expect(live.spec.versions, path).toEqual(file.spec.versions);
        expect(live.status?.conditions, path).toContainEqual(
          expect.objectContaining({ type: 'Established', status: 'True' }),
        );
      }
      const applied = await cluster().kubectl('apply', '--dry-run=server', '-f', 'deploy/crds/openshift');
      expect(applied.trim().split('\n')).toHaveLength(customResourceDefinitions(openshift).length);
    });

    test('the checked-in CRDs of alauda are accepted, established, and no stranger to a later install', async () => {
      const { admin } = cluster();
      await cluster().kubectl('create', '-f', 'deploy/crds/alauda');
      // Its control-plane nodes carry both labels by now.
      await admin.patch(KINDS.node, { name: 'old-master' }, { metadata: { labels: { [CONTROL_PLANE]: '' } } });
      const result = await install({ client: admin, flavour: alauda });
      const names = checkedIn('alauda').map(({ name }) => name);
      expect(names).toHaveLength(
        customResourceDefinitions(alauda).filter(({ spec }) => spec.group === alauda.group).length,
      );
      for (const name of names) {
        expect(result.objects).toContainEqual({ kind: 'CustomResourceDefinition', name, action: 'unchanged' });
        const live = await admin.get<Crd>(CRDS, { name });
        expect(live.status?.conditions).toContainEqual(
          expect.objectContaining({ type: 'Established', status: 'True' }),
        );
      }
      expect(await selectorOf(alauda, 'master')).toContain(`${CONTROL_PLANE} Exists`);
      const first = await everything(alauda);
      expect(await install({ client: admin, flavour: alauda })).toMatchObject({ changed: false });
      expect(await everything(alauda)).toEqual(first);
    });

    test('no Node was written to', async () => {
      const plain = (all: readonly ManagedNode[]) => all.filter(({ metadata }) => metadata.name.startsWith('plain-'));
      const nodes = plain(await cluster().admin.list<ManagedNode>(KINDS.node));
      // Controllers may have added to them since.
      expect(nodes).toMatchObject(
        plain(before).map(({ metadata: { name, labels, annotations }, spec }) => ({
          metadata: { name, labels, annotations },
          spec,
        })),
      );
      const writers = nodes.flatMap(({ metadata }) => metadata.managedFields?.map(({ manager }) => manager) ?? []);
      expect(writers).toContain('kube-controller-manager');
      expect(writers).not.toContain('drydock');
    });
  });
}
