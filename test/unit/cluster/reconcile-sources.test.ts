import { beforeEach, describe, expect, it } from 'vitest';
import type { MachineConfigResource, PoolResource } from '../../../activities/cluster/control-dependencies.js';
import { GENERATED_FINALIZER } from '../../../activities/cluster/mark-source.js';
import { reconcileSources } from '../../../activities/cluster/reconcile-sources.js';
import type { SourceResource } from '../../../activities/cluster/source.js';
import type { KubernetesObject } from '../../../activities/kubernetes/client.js';
import type { KubeletConfig } from '../../../machine-config/api/kubelet-config.js';
import { CLUSTER, FakeControl, POOL } from './fake-control.js';

type KubeletConfigResource = KubernetesObject & KubeletConfig;

let control: FakeControl;
let writes: string[];
beforeEach(() => {
  control = new FakeControl();
  control.addPool();
  const { cluster, flavour } = control;
  void cluster.patch<PoolResource>(flavour.machineConfigPool, { name: POOL }, { metadata: { labels: { pool: POOL } } });
  writes = [];
  for (const kind of [flavour.machineConfig, flavour.kubeletConfig]) {
    cluster.observe(kind, (type, object) => writes.push(`${type} ${object.metadata.name}`));
  }
});

const NAME = '99-worker-generated-kubelet';
const create = (name: string, fields: object) =>
  control.cluster.add<KubeletConfigResource>(control.flavour.kubeletConfig, {
    metadata: { name, annotations: { 'example.com/mine': 'yes' } },
    spec: {
      machineConfigPoolSelector: { matchLabels: { pool: POOL } },
      kubeletConfig: fields as Record<string, unknown>,
    },
  });
const reconcile = () => reconcileSources(control.dependencies, { cluster: CLUSTER, kind: 'KubeletConfig' });
const config = (name = NAME) => control.cluster.peek<MachineConfigResource>(control.flavour.machineConfig, name);
const source = (name: string) =>
  control.cluster.peek<KubeletConfigResource & SourceResource>(control.flavour.kubeletConfig, name);
const accepted = (name: string) => source(name)?.status?.conditions?.find(({ type }) => type === 'Accepted');
const change = (name: string, fields: object) =>
  control.cluster.patch(control.flavour.kubeletConfig, { name }, { spec: { kubeletConfig: fields } });
const remove = (name: string) => control.cluster.delete(control.flavour.kubeletConfig, { name });

describe('the objects that configs are generated from', () => {
  it('get their config, which they own, and say so', async () => {
    const { metadata } = create('one', { maxPods: 9 });
    expect(await reconcile()).toEqual({ known: true, objects: 1, generated: [NAME], refused: [], written: 1 });
    expect(config()?.metadata).toMatchObject({
      labels: { [control.flavour.roleLabel]: 'worker' },
      ownerReferences: [{ kind: 'KubeletConfig', name: 'one', uid: metadata.uid, controller: true }],
    });
    expect(source('one')?.metadata).toMatchObject({
      annotations: { 'example.com/mine': 'yes', [`${control.flavour.group}/mc-name-suffix`]: '' },
      finalizers: [GENERATED_FINALIZER],
    });
    expect(accepted('one')).toMatchObject({ status: 'True', message: 'Success' });
  });

  it('are not written again as long as nothing changes', async () => {
    create('one', { maxPods: 9 });
    create('bad', { maxPods: 'nine' });
    await reconcile();
    writes.length = 0;
    control.cluster.intercept(({ verb }) => {
      if (verb !== 'get' && verb !== 'list') writes.push(verb);
    });
    control.dependencies = { ...control.dependencies, now: () => Date.parse('2026-03-02T12:00:00Z') };
    expect(await reconcile()).toMatchObject({ written: 0 });
    expect(writes).toEqual([]);
  });

  it('say why they are refused, and what they generated before stays', async () => {
    create('one', { maxPods: 9 });
    await reconcile();
    const before = config()?.spec;
    await change('one', { maxPods: 'ten' });
    expect(await reconcile()).toMatchObject({
      refused: [expect.stringMatching(/^one: spec\.kubeletConfig\.maxPods: /)],
    });
    expect(config()?.spec).toEqual(before);
    expect(accepted('one')).toMatchObject({ status: 'False', reason: 'InvalidField' });
    expect(source('one')?.status?.conditions?.at(-1)).toMatchObject({ type: 'Failure', status: 'True' });
  });

  it('take their config with them', async () => {
    create('one', { maxPods: 9 });
    await reconcile();
    await remove('one');
    expect(source('one')?.metadata.deletionTimestamp).toBeDefined();
    expect(await reconcile()).toMatchObject({ written: 1 });
    expect([source('one'), config()]).toEqual([undefined, undefined]);
  });

  it('keep the finalizers of others, and drop those of older controllers, when they go', async () => {
    create('one', { maxPods: 9 });
    await reconcile();
    const finalizers = [GENERATED_FINALIZER, NAME, 'example.com/mine'];
    await control.cluster.patch(control.flavour.kubeletConfig, { name: 'one' }, { metadata: { finalizers } });
    await remove('one');
    await reconcile();
    expect(source('one')?.metadata.finalizers).toEqual(['example.com/mine']);
  });

  it('leave nothing behind where nobody could be asked', async () => {
    create('one', { maxPods: 9 });
    await reconcile();
    await control.cluster.patch(control.flavour.kubeletConfig, { name: 'one' }, { metadata: { finalizers: null } });
    await remove('one');
    expect(config()).toBeDefined();
    await reconcile();
    expect(config()).toBeUndefined();
  });

  it('have their config put back when somebody changes or deletes it', async () => {
    create('one', { maxPods: 9 });
    await reconcile();
    const before = config();
    await control.cluster.patch(control.flavour.machineConfig, { name: NAME }, { spec: { config: null } });
    await reconcile();
    expect(config()?.spec).toEqual(before?.spec);
    await control.cluster.delete(control.flavour.machineConfig, { name: NAME });
    await reconcile();
    expect(config()?.spec).toEqual(before?.spec);
  });

  it('do not overwrite what people wrote under the same name', async () => {
    control.addConfig(NAME, {}, { kernelArguments: ['mine'] });
    create('one', { maxPods: 9 });
    await reconcile();
    expect(config()?.spec?.kernelArguments).toEqual(['mine']);
    expect(accepted('one')).toMatchObject({ status: 'False', reason: 'NameTaken' });
  });

  it('lose the configs of pools that they do not choose any more', async () => {
    create('one', { maxPods: 9 });
    await reconcile();
    control.cluster.add<PoolResource>(control.flavour.machineConfigPool, {
      metadata: { name: 'infra', labels: { pool: 'infra' } },
      spec: { machineConfigSelector: { matchLabels: { [control.flavour.roleLabel]: 'infra' } } },
    });
    const machineConfigPoolSelector = { matchLabels: { pool: 'infra' } };
    await control.cluster.patch(
      control.flavour.kubeletConfig,
      { name: 'one' },
      { spec: { machineConfigPoolSelector } },
    );
    await reconcile();
    expect(config()).toBeUndefined();
    expect(config('99-infra-generated-kubelet')).toBeDefined();
  });

  it('do not matter to a cluster without the kind', async () => {
    control.cluster.failNext({ verb: 'list', kind: 'KubeletConfig' }, { code: 'NotFound' });
    expect(await reconcile()).toMatchObject({ known: false, written: 0 });
  });

  it('are let alone by the worker of another cluster', async () => {
    create('one', { maxPods: 9 });
    const input = { cluster: 'another', kind: 'KubeletConfig' as const };
    await expect(reconcileSources(control.dependencies, input)).rejects.toMatchObject({ type: 'WrongCluster' });
    expect(config()).toBeUndefined();
  });

  it('write as little as there is to write when the API server fails in between', async () => {
    create('one', { maxPods: 9 });
    control.cluster.failNext({ verb: 'create', kind: 'MachineConfig' }, { code: 'ApiUnavailable', afterEffect: true });
    await expect(reconcile()).rejects.toMatchObject({ type: 'ApiUnavailable' });
    expect(await reconcile()).toMatchObject({ written: 0, generated: [NAME] });
    expect(accepted('one')).toMatchObject({ status: 'True' });
  });
});
