import { beforeEach, describe, expect, it } from 'vitest';
import { renderPool } from '../../../activities/cluster/render-pool.js';
import type {
  MachineConfigResource,
  MachineConfigurationResource,
} from '../../../activities/cluster/control-dependencies.js';
import { DRYDOCK_ANNOTATIONS } from '../../../machine-config/api/flavour.js';
import type { NodeDisruptionPolicy } from '../../../machine-config/api/node-disruption-policy.js';
import { readPolicies } from '../../../machine-config/change/frozen-policies.js';
import { DEFAULT_POLICIES, defaultPolicies, policyForFile } from '../../../machine-config/change/policies.js';
import { CLUSTER, FakeControl, POOL } from './fake-control.js';

const MOTD = '/etc/motd';
const motd = (text: string) => ({
  storage: { files: [{ path: MOTD, mode: 0o644, overwrite: true, contents: { source: `data:,${text}` } }] },
});
const policyFor = (path: string): NodeDisruptionPolicy => ({
  files: [{ path, actions: [{ type: 'Restart', restart: { serviceName: 'motd.service' } }] }],
});

let control: FakeControl;
beforeEach(() => {
  control = new FakeControl();
  control.addPool();
  control.addConfig('50-motd', motd('one'));
});

const render = () => renderPool(control.dependencies, { cluster: CLUSTER, pool: POOL });
const rendered = async () => {
  const result = await render();
  if (result.outcome !== 'rendered') throw new Error(JSON.stringify(result));
  return result.rendered;
};
const configOf = (name: string): MachineConfigResource => {
  const config = control.cluster.peek<MachineConfigResource>(control.flavour.machineConfig, name);
  if (config === undefined) throw new Error(`there is no ${name}`);
  return config;
};
const costOf = (name: string) => policyForFile(MOTD, readPolicies(configOf(name)));
const frozenGeneration = (name: string): unknown =>
  (
    JSON.parse(configOf(name).metadata.annotations?.[DRYDOCK_ANNOTATIONS.disruptionPolicies] ?? '{}') as {
      generation?: number;
    }
  ).generation;
const configuration = () =>
  control.cluster.peek<MachineConfigurationResource>(control.flavour.machineConfiguration, 'cluster');
const renderDegraded = () => control.pool().status?.conditions?.find(({ type }) => type === 'RenderDegraded');

describe('the policies of a rendered config', () => {
  it('are the built-in ones in a cluster without MachineConfiguration', async () => {
    const name = await rendered();
    expect(readPolicies(configOf(name))).toEqual(DEFAULT_POLICIES);
    expect(frozenGeneration(name)).toBeUndefined();
  });

  it('are those of the group in the other flavour', async () => {
    control = new FakeControl('alauda');
    control.addPool();
    control.addConfig('50-motd', motd('one'));
    expect(readPolicies(configOf(await rendered()))).toEqual(defaultPolicies(control.flavour));
  });

  it('change without the name, which is made of the contents alone', async () => {
    const name = await rendered();
    await control.setPolicies({ nodeDisruptionPolicy: policyFor(MOTD) });
    expect(await render()).toEqual({ outcome: 'rendered', rendered: name, changed: false, sources: 1 });
    expect(costOf(name)).toMatchObject({ path: MOTD, origin: 'user' });
    expect(frozenGeneration(name)).toBe(configuration()?.metadata.generation);
    await control.setPolicies({});
    await render();
    expect(costOf(name)).toBeUndefined();
  });

  it.each(['policy first', 'config first'])(
    'are there before the pool names a config that came in the same second: %s',
    async (order) => {
      const first = await rendered();
      const addPolicy = () => control.setPolicies({ nodeDisruptionPolicy: policyFor(MOTD) });
      if (order === 'policy first') await addPolicy();
      control.addConfig('60-motd', motd('two'));
      if (order === 'config first') await addPolicy();
      const seen: unknown[] = [];
      control.cluster.observe(control.flavour.machineConfigPool, () => {
        const target = control.pool().spec.configuration?.name ?? '';
        if (target !== first) seen.push(costOf(target)?.origin);
      });
      expect(await rendered()).not.toBe(first);
      expect(seen.length).toBeGreaterThan(0);
      expect(new Set(seen)).toEqual(new Set(['user']));
    },
  );

  it('reach the config that is being rolled out although the next one cannot be rendered', async () => {
    const name = await rendered();
    control.addConfig('60-bad', { storage: { files: [{ path: 'relative' }] } });
    await control.setPolicies({ nodeDisruptionPolicy: policyFor(MOTD) });
    expect(await render()).toMatchObject({ outcome: 'refused' });
    expect(costOf(name)).toMatchObject({ origin: 'user' });
  });

  it('are brought up to date on an older config that the pool goes back to', async () => {
    const first = await rendered();
    control.addConfig('60-motd', motd('two'));
    await rendered();
    await control.setPolicies({ nodeDisruptionPolicy: policyFor(MOTD) });
    await control.cluster.delete(control.flavour.machineConfig, { name: '60-motd' });
    expect(await rendered()).toBe(first);
    expect(costOf(first)).toMatchObject({ origin: 'user' });
  });

  it('are put back when somebody changes them, without a touch on what others annotate', async () => {
    const name = await rendered();
    const annotations = { [DRYDOCK_ANNOTATIONS.disruptionPolicies]: '{}', 'example.com/mine': 'kept' };
    await control.cluster.patch(control.flavour.machineConfig, { name }, { metadata: { annotations } });
    await render();
    expect(readPolicies(configOf(name))).toEqual(DEFAULT_POLICIES);
    expect(configOf(name).metadata.annotations?.['example.com/mine']).toBe('kept');
  });

  it('are written once: run again, nothing changes', async () => {
    await control.setPolicies({ nodeDisruptionPolicy: policyFor(MOTD) });
    const name = await rendered();
    const versions = () =>
      [configOf(name), configuration(), control.pool()].map((object) => object?.metadata.resourceVersion);
    const before = versions();
    await render();
    expect(versions()).toEqual(before);
  });
});

describe('the status of MachineConfiguration', () => {
  it('says the policies in force and for which generation, as the field has it', async () => {
    await control.setPolicies({ nodeDisruptionPolicy: policyFor(MOTD) });
    await render();
    const { status, metadata } = configuration() ?? {};
    expect(status?.observedGeneration).toBe(metadata?.generation);
    const policies = status?.nodeDisruptionPolicyStatus?.clusterPolicies;
    expect(policies?.files).toHaveLength(DEFAULT_POLICIES.files.length + 1);
    expect(policies?.files?.at(-1)).toEqual({ path: MOTD, actions: policyFor(MOTD).files?.[0]?.actions });
    expect(policies?.sshkey).toEqual({ actions: [{ type: 'None' }] });
  });

  it('does not stop a render when somebody else writes it at the same moment', async () => {
    await control.setPolicies({ nodeDisruptionPolicy: policyFor(MOTD) });
    control.cluster.failNext({ verb: 'update', kind: 'MachineConfiguration' }, { code: 'Conflict' });
    expect(await render()).toMatchObject({ outcome: 'rendered' });
  });
});

describe('a policy that could match nothing', () => {
  const message = /^MachineConfiguration cluster: spec\.nodeDisruptionPolicy\.files\[0\]\.path .*wildcard/;

  it('is said on the pool and on itself, and nothing is rolled out under it', async () => {
    const first = await rendered();
    control.addConfig('60-motd', motd('two'));
    await control.setPolicies({ nodeDisruptionPolicy: policyFor('/etc/*.conf') });
    expect(await render()).toMatchObject({ outcome: 'refused', reason: expect.stringMatching(message) as string });
    expect(control.pool().spec.configuration?.name).toBe(first);
    expect(readPolicies(configOf(first))).toEqual(DEFAULT_POLICIES);
    expect(renderDegraded()).toMatchObject({ status: 'True', message: expect.stringMatching(message) as string });
    const { status, metadata } = configuration() ?? {};
    expect(status?.observedGeneration).not.toBe(metadata?.generation);
    expect(status?.conditions).toEqual([
      expect.objectContaining({ status: 'True', message: expect.stringMatching(message) as string }),
    ]);

    await control.setPolicies({ nodeDisruptionPolicy: policyFor('/etc') });
    expect(await render()).toMatchObject({ outcome: 'rendered', changed: true });
    expect(renderDegraded()).toMatchObject({ status: 'False' });
    expect(configuration()?.status?.conditions).toEqual([expect.objectContaining({ status: 'False', message: '' })]);
  });

  it('is found too where the cluster has a definition of the kind that lets anything pass', async () => {
    const actions = [{ type: 'Restart' as const }];
    await control.setPolicies({ nodeDisruptionPolicy: { units: [{ name: 'a.service', actions }] } });
    expect(await render()).toMatchObject({
      outcome: 'refused',
      reason: expect.stringMatching(/spec\.nodeDisruptionPolicy\.units\[0\]\.actions.* restart is needed/) as string,
    });
  });
});

describe('members that cannot do what a config asks of the operating system', () => {
  const host = (cannot: object, arch = 'amd64') => ({
    [DRYDOCK_ANNOTATIONS.host]: JSON.stringify({ os: 'Debian 12', arch, backend: 'none', cannot }),
  });
  const because = { kernelArguments: 'nothing here sets the kernel command line' };

  it('keep it from becoming the target: the field, the nodes and the reason are named', async () => {
    const first = await rendered();
    control.addNode('able', host({}));
    control.addNode('untold');
    control.addNode('b-unable', host(because));
    control.addNode('a-unable', host(because));
    control.addConfig('60-arguments', {}, { kernelArguments: ['quiet'] });
    const reason = expect.stringMatching(
      /^spec\.kernelArguments cannot be done on a-unable and b-unable: nothing here sets .*; leave it out/,
    ) as string;
    expect(await render()).toMatchObject({ outcome: 'refused', reason });
    expect(renderDegraded()).toMatchObject({ status: 'True', message: reason });
    expect(control.pool().spec.configuration?.name).toBe(first);
  });

  it('do not matter where the field is not used, or the config is the target already', async () => {
    control.addConfig('60-arguments', {}, { kernelArguments: ['quiet'] });
    const first = await rendered();
    control.addNode('late', host(because));
    expect(await rendered()).toBe(first);
    await control.cluster.delete(control.flavour.machineConfig, { name: '60-arguments' });
    expect(await render()).toMatchObject({ outcome: 'rendered', changed: true });
  });

  it('are those of another architecture for a kernel with large pages', async () => {
    control.addNode('arm', host({}, 'arm64'));
    control.addNode('pc', host({}));
    control.addConfig('60-pages', {}, { kernelType: '64k-pages' });
    expect(await render()).toMatchObject({
      outcome: 'refused',
      reason: expect.stringMatching(/^spec\.kernelType cannot be done on pc: .*arm64/) as string,
    });
  });
});
