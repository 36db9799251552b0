import { beforeEach, describe, expect, it } from 'vitest';
import type { MachineConfigResource, PoolResource } from '../../../activities/cluster/control-dependencies.js';
import type { ControllerConfigResource } from '../../../activities/cluster/controller-config.js';
import { GENERATED_FINALIZER } from '../../../activities/cluster/mark-source.js';
import { reconcileSources } from '../../../activities/cluster/reconcile-sources.js';
import type { SourceResource } from '../../../activities/cluster/source.js';
import { KINDS, type KubernetesObject } from '../../../activities/kubernetes/client.js';
import { emptyConfig } from '../../../client/install/objects.js';
import type { ControllerConfigSpec } from '../../../machine-config/api/controller-config.js';
import { IMAGE_DIGEST_MIRROR_SET } from '../../../machine-config/api/image-mirrors.js';
import { fileIn } from '../../../machine-config/sources/kubelet/present-files.js';
import { CLUSTER, FakeControl, POOL } from './fake-control.js';

const NAME = 'machine-config-controller';
const REGISTRIES = `99-${POOL}-generated-registries`;
const TEMPLATES = { namespace: 'drydock', name: 'templates' };

let control: FakeControl;
beforeEach(() => {
  control = new FakeControl();
  control.addPool();
  control.cluster.add<MachineConfigResource>(control.flavour.machineConfig, emptyConfig(control.flavour, 'worker'));
});

const create = (spec: ControllerConfigSpec) =>
  control.cluster.add<ControllerConfigResource>(control.flavour.controllerConfig, { metadata: { name: NAME }, spec });
const change = (spec: object) => control.cluster.patch(control.flavour.controllerConfig, { name: NAME }, { spec });
const reconcile = () => reconcileSources(control.dependencies, { cluster: CLUSTER, kind: 'ControllerConfig' });
const config = (name: string) => control.cluster.peek<MachineConfigResource>(control.flavour.machineConfig, name);
const text = (name: string, file: string) => {
  const found = config(name);
  return found && fileIn(found, file)?.text;
};
const controllerConfig = () => control.cluster.peek<ControllerConfigResource>(control.flavour.controllerConfig, NAME);
const condition = (type: string) => controllerConfig()?.status?.conditions?.find((each) => each.type === type);
const addMirrors = (source: string, name = 'mirrors') =>
  control.cluster.add(IMAGE_DIGEST_MIRROR_SET, {
    metadata: { name },
    spec: { imageDigestMirrors: [{ source, mirrors: ['mirror.example.com'] }] },
  } as KubernetesObject);
const accepted = (name = 'mirrors') =>
  control.cluster
    .peek<SourceResource>(IMAGE_DIGEST_MIRROR_SET, name)
    ?.status?.conditions?.find(({ type }) => type === 'Accepted');
const putTemplates = (data: Record<string, string>) =>
  control.cluster.add(KINDS.configMap, { metadata: TEMPLATES, data } as KubernetesObject);
const file = (content: string) => `path: /etc/a\ncontents: {inline: ${content}}\n`;

describe('a ControllerConfig', () => {
  it('takes over the empty config of the installation, and gives it back empty', async () => {
    create({ templates: { source: 'builtin', version: 'v1' } });
    const { generated, refused } = await reconcile();
    expect(refused).toEqual([]);
    expect(generated).toEqual(['00-worker', '01-worker-container-runtime', '01-worker-kubelet']);
    expect(text('00-worker', '/etc/modules-load.d/50-kubernetes.conf')).toContain('br_netfilter');
    expect(config('00-worker')?.metadata.ownerReferences).toMatchObject([{ kind: 'ControllerConfig', name: NAME }]);
    expect(condition('TemplateControllerCompleted')?.status).toBe('True');

    await change({ templates: { source: 'none', version: null } });
    expect((await reconcile()).generated).toEqual(['00-worker']);
    expect(config('00-worker')?.spec).toEqual({ config: { ignition: { version: '3.4.0' } } });
    expect(config('01-worker-kubelet')).toBeUndefined();
  });

  it('leaves a 00-config alone into which somebody wrote something, and says so', async () => {
    const mine = { config: { ignition: { version: '3.4.0' } }, kernelArguments: ['quiet'] };
    await control.cluster.patch(control.flavour.machineConfig, { name: '00-worker' }, { spec: mine });
    create({ templates: { source: 'builtin', version: 'v1' } });
    await reconcile();
    expect(config('00-worker')?.spec).toEqual(mine);
    expect(config('01-worker-kubelet')).toBeUndefined();
    expect(condition('TemplateControllerFailing')).toMatchObject({
      status: 'True',
      reason: 'NameTaken',
      message: expect.stringContaining('00-worker') as string,
    });
  });

  it('renders anew when its templates or its values change, and writes nothing when they do not', async () => {
    putTemplates({ 'common__files__a.yaml': file('"{{values.a}}"') });
    create({ templates: { source: 'configMap', configMap: TEMPLATES }, templateValues: { a: 'one' } });
    expect((await reconcile()).written).toBe(1);
    expect(text('00-worker', '/etc/a')).toBe('one');
    expect((await reconcile()).written).toBe(0);
    await change({ templateValues: { a: 'two' } });
    await reconcile();
    expect(text('00-worker', '/etc/a')).toBe('two');
    await control.cluster.patch(KINDS.configMap, TEMPLATES, { data: { 'common__files__a.yaml': file('three') } });
    await reconcile();
    expect(text('00-worker', '/etc/a')).toBe('three');
  });

  it.each<[string, ControllerConfigSpec, string]>([
    ['version', { templates: { source: 'builtin', version: 'v999' } }, 'no built-in templates v999, only v1'],
    ['ConfigMap', { templates: { source: 'configMap', configMap: TEMPLATES } }, 'there is no ConfigMap templates'],
    ['folder', { templates: { source: 'folder', folder: '/nowhere/at/all' } }, '(ENOENT)'],
  ])('keeps what there is where its %s is not there', async (_, spec, message) => {
    create({ templates: { source: 'builtin', version: 'v1' } });
    await reconcile();
    const before = config('01-worker-kubelet');
    await change({ templates: { version: null, ...spec.templates } });
    const { refused } = await reconcile();
    expect(refused).toEqual([expect.stringContaining(message) as string]);
    expect(condition('TemplateControllerFailing')).toMatchObject({ status: 'True', reason: 'TemplatesNotFound' });
    expect(config('01-worker-kubelet')).toEqual(before);
  });

  it('says so where it may not read the ConfigMap', async () => {
    create({ templates: { source: 'configMap', configMap: TEMPLATES } });
    control.cluster.failNext({ verb: 'get', kind: 'ConfigMap' }, { code: 'Forbidden' });
    await reconcile();
    expect(condition('TemplateControllerFailing')?.message).toContain('may not read the ConfigMap templates');
  });

  it('that generates nothing is not held back from being deleted', async () => {
    create({ nodeFlavour: 'kubeadm' });
    await reconcile();
    expect(controllerConfig()?.metadata).not.toHaveProperty('finalizers');
    expect(condition('TemplateControllerCompleted')?.status).toBe('True');
  });

  it('takes all that it generated along', async () => {
    addMirrors('docker.io');
    create({ templates: { source: 'builtin', version: 'v1' } });
    await reconcile();
    expect(controllerConfig()?.metadata).toMatchObject({ finalizers: [GENERATED_FINALIZER] });
    await control.cluster.delete(control.flavour.controllerConfig, { name: NAME });
    await reconcile();
    expect(controllerConfig()).toBeUndefined();
    expect(config(REGISTRIES)).toBeUndefined();
    expect(config('01-worker-kubelet')).toBeUndefined();
    expect(accepted()).toMatchObject({ status: 'False', reason: 'NoControllerConfig' });
  });
});

describe('image mirror sets', () => {
  const hosts = '/etc/containerd/certs.d/docker.io/hosts.toml';

  it('are written with the ControllerConfig, and all told what became of them', async () => {
    create({});
    addMirrors('docker.io');
    addMirrors('quay.io', 'more');
    await reconcile();
    expect(text(REGISTRIES, hosts)).toContain('[host."https://mirror.example.com"]');
    expect([accepted(), accepted('more')]).toMatchObject([{ status: 'True' }, { status: 'True' }]);
    expect((await reconcile()).written).toBe(0);
  });

  it('that cannot be written leave everything as it was', async () => {
    create({});
    addMirrors('docker.io');
    await reconcile();
    const before = config(REGISTRIES);
    addMirrors('quay.io/org', 'narrow');
    await reconcile();
    expect(config(REGISTRIES)).toEqual(before);
    const said = { status: 'False', message: expect.stringContaining('quay.io/org') as string };
    expect([accepted(), accepted('narrow')]).toMatchObject([said, said]);
    expect(condition('ImageMirrorsFailing')).toMatchObject({ status: 'True', reason: 'NotInContainerd' });
    expect(condition('TemplateControllerFailing')?.status).toBe('False');
  });

  it('go from the nodes with the last of them', async () => {
    create({});
    addMirrors('docker.io');
    await reconcile();
    await control.cluster.delete(IMAGE_DIGEST_MIRROR_SET, { name: 'mirrors' });
    await reconcile();
    expect(config(REGISTRIES)).toBeUndefined();
  });

  it('want a ControllerConfig', async () => {
    addMirrors('docker.io');
    expect(await reconcile()).toMatchObject({ objects: 0, generated: [] });
    expect(accepted()).toMatchObject({ status: 'False', reason: 'NoControllerConfig' });
  });

  it('are put together for custom pools that get nothing from another one', async () => {
    create({});
    addMirrors('docker.io');
    control.cluster.add<PoolResource>(control.flavour.machineConfigPool, {
      metadata: { name: 'edge' },
      spec: { machineConfigSelector: { matchLabels: { [control.flavour.roleLabel]: 'edge' } } },
    });
    expect((await reconcile()).generated).toEqual(['99-edge-generated-registries', REGISTRIES]);
  });
});
