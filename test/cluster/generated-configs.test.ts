import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { MachineConfigResource } from '../../activities/cluster/control-dependencies.js';
import type { SourceResource } from '../../activities/cluster/source.js';
import { KINDS, type KubernetesObject } from '../../activities/kubernetes/client.js';
import { ifThere } from '../../activities/kubernetes/failures.js';
import { IMAGE_DIGEST_MIRROR_SET, IMAGE_TAG_MIRROR_SET } from '../../machine-config/api/image-mirrors.js';
import { apiVersionOf, type ResourceKind } from '../../machine-config/api/flavour.js';
import { FleetLab, flavour, POOL } from '../support/fleet-lab.js';

/*
 * Templates, container runtimes and image mirrors on a real API server with the product's own processes: a control
 * worker with the rights that an installation gives it, its watches and workflows, and a simulated machine.
 */

const NODE = 'machine-1';
const CONTROLLER_CONFIG = 'machine-config-controller';
const RUNTIME = `99-${POOL}-generated-containerruntime`;
const REGISTRIES = `99-${POOL}-generated-registries`;
const SYSCTL = 'etc/sysctl.d/50-kubernetes.conf';
const LOG_LEVEL = 'etc/containerd/conf.d/01-ctrcfg-logLevel.toml';
const HOSTS = 'etc/containerd/certs.d/docker.io/hosts.toml';

let fleet: FleetLab;
beforeAll(async () => {
  fleet = await FleetLab.start([NODE]);
});
afterAll(() => fleet.stop());

const create = (resource: ResourceKind, name: string, spec: object) =>
  fleet.admin.create(resource, {
    apiVersion: apiVersionOf(resource),
    kind: resource.kind,
    metadata: { name },
    spec,
  } as KubernetesObject);
const runtimeConfig = (containerRuntimeConfig: object) => ({
  machineConfigPoolSelector: { matchLabels: { [`pools.operator.${flavour.group}/${POOL}`]: '' } },
  containerRuntimeConfig,
});
const mirrorsOf = (source: string) => ({ imageDigestMirrors: [{ source, mirrors: ['mirror.example.com/hub'] }] });
const generated = (name: string) =>
  ifThere(() => fleet.admin.get<MachineConfigResource>(flavour.machineConfig, { name }));
const onDisk = (file: string) => readFile(join(fleet.processes.rootOf(NODE), file), 'utf8').catch(() => undefined);

/** Resolves with a condition of an object once it has that status. */
const said = (resource: ResourceKind, name: string, type: string, status: 'True' | 'False') =>
  fleet.until(`${resource.kind} ${name} to say ${type}=${status}`, async () => {
    const object = await fleet.admin.get<SourceResource>(resource, { name });
    const condition = object.status?.conditions?.find((each) => each.type === type);
    const isCurrent = object.status?.observedGeneration === object.metadata.generation;
    return isCurrent && condition?.status === status && condition;
  });
/** The machine runs the pool's target, and its disk is as it should be. */
const settled = (what: string, isThere: () => Promise<boolean>) =>
  fleet.until(`the machine to have ${what}`, async () => {
    const [target, node] = [await fleet.target(), await fleet.facts(NODE)];
    return node.current === target && node.state === 'Done' && !node.unschedulable && (await isThere());
  });

test('the built-in templates reach a machine, in configs that the ControllerConfig owns', async () => {
  await create(flavour.controllerConfig, CONTROLLER_CONFIG, { templates: { source: 'builtin', version: 'v1' } });
  await said(flavour.controllerConfig, CONTROLLER_CONFIG, 'TemplateControllerCompleted', 'True');
  const owner = { kind: 'ControllerConfig', name: CONTROLLER_CONFIG };
  for (const name of [`00-${POOL}`, `01-${POOL}-kubelet`, `01-${POOL}-container-runtime`]) {
    expect((await generated(name))?.metadata.ownerReferences).toMatchObject([owner]);
  }
  await settled('the base', async () => (await onDisk(SYSCTL))?.includes('net.ipv4.ip_forward = 1') === true);
  expect(await onDisk('etc/containerd/config.toml')).toContain('/etc/containerd/conf.d/*.toml');
  expect(await onDisk('etc/systemd/system/kubelet.service.d/50-kubernetes.conf')).toContain('CPUAccounting=true');
});

test('a value is changed for the nodes by changing it in the ControllerConfig', async () => {
  const change = { spec: { templateValues: { inotifyInstances: 4321 } } };
  await fleet.admin.patch(flavour.controllerConfig, { name: CONTROLLER_CONFIG }, change);
  await settled('the new value', async () => (await onDisk(SYSCTL))?.includes('max_user_instances = 4321') === true);
});

test('templates of ones own replace them; one that cannot be filled in is named, and the nodes keep what they have', async () => {
  const configMap = { namespace: 'drydock', name: 'templates' };
  const data = { 'common__files__own.yaml': 'path: /etc/own\ncontents: {inline: "{{values.mssing}}"}\n' };
  await fleet.admin.create(KINDS.configMap, { metadata: configMap, data } as KubernetesObject);
  const before = await fleet.target();
  const templates = { source: 'configMap', version: null, configMap };
  await fleet.admin.patch(flavour.controllerConfig, { name: CONTROLLER_CONFIG }, { spec: { templates } });
  const failing = await said(flavour.controllerConfig, CONTROLLER_CONFIG, 'TemplateControllerFailing', 'True');
  expect(failing).toMatchObject({
    reason: 'InvalidTemplate',
    message: 'template common/files/own.yaml: there is no value values.mssing',
  });
  expect(await fleet.target()).toBe(before);

  // Nobody watches ConfigMaps: the control worker looks at this one from time to time.
  const mended = { 'common__files__own.yaml': 'path: /etc/own\ncontents: {inline: mine}\n' };
  await fleet.admin.patch(KINDS.configMap, configMap, { data: mended });
  await settled('the own template alone', async () => {
    const [own, base] = [await onDisk('etc/own'), await onDisk(SYSCTL)];
    return own === 'mine' && base === undefined;
  });
  expect(await generated(`01-${POOL}-kubelet`)).toBeUndefined();
});

test('a ContainerRuntimeConfig is written for containerd; what containerd cannot do is refused with the reason', async () => {
  await create(flavour.containerRuntimeConfig, 'logs', runtimeConfig({ logLevel: 'warn' }));
  expect(await said(flavour.containerRuntimeConfig, 'logs', 'Accepted', 'True')).toMatchObject({ reason: 'Generated' });
  await settled('its log level', async () => (await onDisk(LOG_LEVEL))?.includes('level = "warn"') === true);

  const target = await fleet.target();
  await create(flavour.containerRuntimeConfig, 'pids', runtimeConfig({ pidsLimit: 2048 }));
  expect(await said(flavour.containerRuntimeConfig, 'pids', 'Accepted', 'False')).toMatchObject({
    reason: 'InvalidField',
    message: expect.stringContaining('podPidsLimit in a KubeletConfig') as string,
  });
  expect(await generated(`${RUNTIME}-1`)).toBeUndefined();
  expect(await fleet.target()).toBe(target);
  for (const name of ['logs', 'pids']) await fleet.admin.delete(flavour.containerRuntimeConfig, { name });
  await settled('no log level', async () => (await onDisk(LOG_LEVEL)) === undefined);
});

test('mirrors reach a machine; a set that contradicts the others is refused, and all stays as it was', async () => {
  await create(IMAGE_DIGEST_MIRROR_SET, 'hub', mirrorsOf('docker.io'));
  await said(IMAGE_DIGEST_MIRROR_SET, 'hub', 'Accepted', 'True');
  await settled('the mirror', async () => (await onDisk(HOSTS))?.includes('mirror.example.com/v2/hub') === true);

  const target = await fleet.target();
  await create(IMAGE_TAG_MIRROR_SET, 'other', {
    imageTagMirrors: [{ source: 'quay.io/org', mirrors: ['mirror.example.com/org'] }],
  });
  expect(await said(IMAGE_TAG_MIRROR_SET, 'other', 'Accepted', 'False')).toMatchObject({
    reason: 'NotInContainerd',
    message: expect.stringContaining('write source: quay.io') as string,
  });
  await said(flavour.controllerConfig, CONTROLLER_CONFIG, 'ImageMirrorsFailing', 'True');
  expect(await generated(REGISTRIES)).toBeDefined();
  expect(await fleet.target()).toBe(target);
});

test.each<[string, ResourceKind, string, object, string]>([
  ['a second ControllerConfig', flavour.controllerConfig, 'other', {}, 'its name is'],
  [
    'templates without a version',
    flavour.controllerConfig,
    CONTROLLER_CONFIG,
    { templates: { source: 'builtin' } },
    'version is needed',
  ],
  [
    'a runtime that nobody knows',
    flavour.controllerConfig,
    CONTROLLER_CONFIG,
    { containerRuntime: 'docker' },
    'containerRuntime',
  ],
  [
    'a certificate from two places',
    flavour.controllerConfig,
    CONTROLLER_CONFIG,
    {
      certificates: [
        { key: 'k', path: '/a', secret: { namespace: 'a', name: 'b' }, configMap: { namespace: 'a', name: 'b' } },
      ],
    },
    'either secret or configMap',
  ],
  ['settings that are missing', flavour.containerRuntimeConfig, 'bad', {}, 'containerRuntimeConfig'],
  [
    'a store twice',
    flavour.containerRuntimeConfig,
    'bad',
    runtimeConfig({ additionalImageStores: [{ path: '/a' }, { path: '/a' }] }),
    'listed twice',
  ],
  [
    'a store that is no path',
    flavour.containerRuntimeConfig,
    'bad',
    runtimeConfig({ additionalLayerStores: [{ path: 'a//b' }] }),
    'absolute path',
  ],
  ['a mirror with a scheme', IMAGE_DIGEST_MIRROR_SET, 'bad', mirrorsOf('https://docker.io'), 'imageDigestMirrors'],
])('the API server refuses %s at once', async (_, resource, name, spec, message) => {
  const refused =
    name === CONTROLLER_CONFIG
      ? fleet.admin.patch(resource, { name }, { spec: { templates: null, ...spec } })
      : create(resource, name, spec);
  await expect(refused).rejects.toMatchObject({ type: 'Invalid', message: expect.stringContaining(message) as string });
});
