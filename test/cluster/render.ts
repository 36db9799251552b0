import { beforeAll, describe, expect, test } from 'vitest';
import { collectRendered } from '../../activities/cluster/collect-rendered.js';
import type {
  MachineConfigResource,
  MachineConfigurationResource,
} from '../../activities/cluster/control-dependencies.js';
import { readPolicies } from '../../machine-config/change/frozen-policies.js';
import { DEFAULT_POLICIES, policyForFile } from '../../machine-config/change/policies.js';
import type { RenderPoolResult } from '../../workflows/contract/activities.js';
import type { RealCluster, RealControl } from '../support/real-cluster.js';

const POOL = 'rendering';
const motd = (text: string, mode: number | string = 0o644): object => ({
  storage: { files: [{ path: '/etc/motd', mode, overwrite: true, contents: { source: `data:,${text}` } }] },
});

export function describeRender(cluster: () => RealCluster, control: () => RealControl): void {
  describe('rendering a pool', () => {
    let first: string;

    const render = (): Promise<RenderPoolResult> =>
      control().activities.renderPool({ cluster: cluster().uid, pool: POOL });
    const renderedAs = async (): Promise<string> => {
      const result = await render();
      if (result.outcome !== 'rendered') throw new Error(JSON.stringify(result));
      return result.rendered;
    };
    const config = (name: string) =>
      cluster().admin.get<MachineConfigResource>(cluster().flavour.machineConfig, { name });
    const change = (name: string, spec: object) =>
      cluster().admin.patch(cluster().flavour.machineConfig, { name }, { spec });
    const renderDegraded = async () => {
      const { status } = await cluster().pool(POOL);
      return status?.conditions?.find(({ type }) => type === 'RenderDegraded');
    };
    const configuration = async () => (await cluster().pool(POOL)).spec.configuration;

    beforeAll(async () => {
      await cluster().createPool(POOL);
    });

    test('a pool that selects nothing is RenderDegraded, in words that help', async () => {
      expect(await render()).toMatchObject({ outcome: 'refused' });
      expect(await renderDegraded()).toMatchObject({
        status: 'True',
        message: expect.stringMatching(/rendering selects no MachineConfig.*machineConfigSelector/) as string,
      });
      expect(await configuration()).toBeUndefined();
    });

    test('stores a config that the pool owns, and names it and its sources in the pool’s spec', async () => {
      // Made in the wrong order: the names decide.
      await cluster().createConfig(POOL, '60-late', motd('late'));
      await cluster().createConfig(POOL, '50-early', motd('early'), { kernelArguments: ['quiet'] });
      first = await renderedAs();
      expect(first).toMatch(/^rendered-rendering-[0-9a-f]{32}$/);
      const stored = await config(first);
      const pool = await cluster().pool(POOL);
      expect(stored.metadata.ownerReferences).toEqual([
        expect.objectContaining({ kind: 'MachineConfigPool', name: POOL, uid: pool.metadata.uid, controller: true }),
      ]);
      expect(stored.spec).toMatchObject({
        kernelArguments: ['quiet'],
        config: { storage: { files: [{ path: '/etc/motd', contents: { source: 'data:,late' } }] } },
      });
      expect(pool.spec.configuration).toMatchObject({
        name: first,
        source: [{ name: '50-early' }, { name: '60-late' }],
      });
      expect(await renderDegraded()).toMatchObject({ status: 'False' });
    });

    test('run again, writes nothing', async () => {
      const versions = async () =>
        [await cluster().pool(POOL), await config(first)].map(({ metadata }) => metadata.resourceVersion);
      const before = await versions();
      expect(await render()).toEqual({ outcome: 'rendered', rendered: first, changed: false, sources: 2 });
      expect(await versions()).toEqual(before);
    });

    test('a bad MachineConfig is named with the place in it, and the pool keeps its config', async () => {
      await cluster().createConfig(POOL, '70-bad', motd('bad', '0644'));
      expect(await render()).toMatchObject({ outcome: 'refused' });
      expect(await renderDegraded()).toMatchObject({
        status: 'True',
        message: expect.stringMatching(/^MachineConfig 70-bad: spec\.config\.storage\.files\[0\]\.mode: /) as string,
      });
      expect((await configuration())?.name).toBe(first);
    });

    test('mended, it is rendered, and nothing is degraded any more', async () => {
      await change('70-bad', { config: { ignition: { version: '3.4.0' }, ...motd('mended') } });
      expect(await render()).toMatchObject({ outcome: 'rendered', changed: true, sources: 3 });
      expect(await renderDegraded()).toMatchObject({ status: 'False', message: '' });
      const now = await configuration();
      expect(now?.name).not.toBe(first);
      expect(now?.source?.map(({ name }) => name)).toEqual(['50-early', '60-late', '70-bad']);
    });

    test('taken back, the pool is given the config of before, under the name of before', async () => {
      await cluster().admin.delete(cluster().flavour.machineConfig, { name: '70-bad' });
      expect(await renderedAs()).toBe(first);
    });

    test('a rendered config that was edited by hand, disowned or deleted is put back', async () => {
      const { admin, flavour } = cluster();
      const whole = await config(first);
      const same = async () => {
        expect(await renderedAs()).toBe(first);
        const now = await config(first);
        expect(now.spec).toEqual(whole.spec);
        expect(now.metadata.ownerReferences).toEqual(whole.metadata.ownerReferences);
      };
      await change(first, { kernelArguments: ['init=/bin/sh'] });
      await same();
      await admin.patch(flavour.machineConfig, { name: first }, { metadata: { ownerReferences: null } });
      await same();
      await admin.delete(flavour.machineConfig, { name: first });
      await same();
    });

    test.each([
      ['directories', { directories: [{ path: '/srv/data', mode: 0o755 }] }],
      ['links', { links: [{ path: '/etc/localtime', target: '/usr/share/zoneinfo/UTC' }] }],
    ])('a change of %s, which running nodes cannot follow, names who asks for it', async (field, storage) => {
      await cluster().createConfig(POOL, '80-first-boot', { storage });
      const result = await render();
      expect(result).toMatchObject({
        outcome: 'refused',
        reason: expect.stringMatching(`^MachineConfig 80-first-boot: spec\\.config\\.storage\\.${field}: `) as string,
      });
      expect(await renderDegraded()).toMatchObject({
        status: 'True',
        message: result.outcome === 'refused' ? result.reason : '',
      });
      expect((await configuration())?.name).toBe(first);
      await cluster().admin.delete(cluster().flavour.machineConfig, { name: '80-first-boot' });
      expect(await renderedAs()).toBe(first);
      expect(await renderDegraded()).toMatchObject({ status: 'False' });
    });

    test('storage that nodes cannot follow is accepted once MachineConfiguration says so', async () => {
      const { admin, flavour } = cluster();
      const overrides = (storage: string[] | null) =>
        admin.patch(
          flavour.machineConfiguration,
          { name: 'cluster' },
          { spec: { irreconcilableValidationOverrides: storage === null ? null : { storage } } },
        );
      await cluster().createConfig(POOL, '80-disk', { storage: { disks: [{ device: '/dev/vdb', wipeTable: true }] } });
      expect(await render()).toMatchObject({ outcome: 'refused' });
      await overrides(['Disks']);
      expect(await render()).toMatchObject({ outcome: 'rendered', changed: true });
      await overrides(null);
    });

    test('carries the policies of now in its annotation, and MachineConfiguration says them in its status', async () => {
      const { admin, flavour } = cluster();
      const files = (actions: object[] | null) =>
        admin.patch<MachineConfigurationResource>(
          flavour.machineConfiguration,
          { name: 'cluster' },
          { spec: { nodeDisruptionPolicy: actions === null ? null : { files: [{ path: '/etc/motd', actions }] } } },
        );
      const name = await renderedAs();
      const changed = await files([{ type: 'Restart', restart: { serviceName: 'motd.service' } }]);
      expect(await renderedAs()).toBe(name);
      expect(policyForFile('/etc/motd', readPolicies(await config(name)))).toEqual({
        path: '/etc/motd',
        origin: 'user',
        actions: [{ type: 'Restart', restart: { serviceName: 'motd.service' } }],
      });
      const { status } = await admin.get<MachineConfigurationResource>(flavour.machineConfiguration, {
        name: 'cluster',
      });
      expect(status?.observedGeneration).toBe(changed.metadata.generation);
      expect(status?.nodeDisruptionPolicyStatus?.clusterPolicies?.files).toContainEqual({
        path: '/etc/motd',
        actions: [{ type: 'Restart', restart: { serviceName: 'motd.service' } }],
      });
      await files(null);
      expect(await renderedAs()).toBe(name);
      expect(readPolicies(await config(name))).toEqual(DEFAULT_POLICIES);
    });

    test('configs that nothing names any more are deleted once they are old, with the rights of a control worker', async () => {
      const { admin, flavour, uid } = cluster();
      const settings = { metadata: { name: 'machine-config-controller' }, spec: { keepRenderedConfigs: 0 } };
      await admin.create(flavour.controllerConfig, settings);
      const named = await renderedAs();
      const own = async () => {
        const all = await admin.list<MachineConfigResource>(flavour.machineConfig);
        return all.map(({ metadata }) => metadata.name).filter((name) => name.startsWith(`rendered-${POOL}-`));
      };
      expect((await own()).length).toBeGreaterThan(1);
      const collect = (hours: number) =>
        collectRendered(
          { ...control().dependencies, now: () => Date.now() + hours * 3_600_000 },
          { cluster: uid, pool: POOL },
        );
      expect(await collect(0)).toEqual({ deleted: 0 });
      await collect(25);
      expect(await own()).toEqual([named]);
      expect(await renderedAs()).toBe(named);
      await admin.delete(flavour.controllerConfig, settings.metadata);
    });

    test('a pool that is gone is no error, one of another cluster is', async () => {
      await cluster().admin.delete(cluster().flavour.machineConfigPool, { name: POOL });
      expect(await render()).toEqual({ outcome: 'poolGone' });
      await expect(control().activities.renderPool({ cluster: 'another', pool: POOL })).rejects.toMatchObject({
        type: 'WrongCluster',
      });
    });
  });
}
