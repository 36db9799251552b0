import { access, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { SourceResource } from '../../activities/cluster/source.js';
import type { KubernetesObject } from '../../activities/kubernetes/client.js';
import { ifThere } from '../../activities/kubernetes/failures.js';
import { FleetLab, flavour, POOL } from '../support/fleet-lab.js';

/*
 * KubeletConfigs on a real API server with the product's own processes: a control worker with the rights that an
 * installation gives it, its watches and workflows, and a simulated machine.
 */

const NODE = 'machine-1';
const NAME = `99-${POOL}-generated-kubelet`;
const DROP_IN = 'etc/kubernetes/kubelet.conf.d/90-drydock.conf';
const UNIT = 'etc/systemd/system/kubelet.service.d/90-drydock-config-dir.conf';

let fleet: FleetLab;
beforeAll(async () => {
  fleet = await FleetLab.start([NODE]);
});
afterAll(() => fleet.stop());

const create = (name: string, kubeletConfig: object) =>
  fleet.admin.create(flavour.kubeletConfig, {
    apiVersion: `${flavour.group}/${flavour.version}`,
    kind: flavour.kubeletConfig.kind,
    metadata: { name },
    spec: {
      machineConfigPoolSelector: { matchLabels: { [`pools.operator.${flavour.group}/${POOL}`]: '' } },
      kubeletConfig,
    },
  } as KubernetesObject);
const change = (name: string, kubeletConfig: object) =>
  fleet.admin.patch(flavour.kubeletConfig, { name }, { spec: { kubeletConfig } });
const source = (name: string) => ifThere(() => fleet.admin.get<SourceResource>(flavour.kubeletConfig, { name }));
const generated = (name = NAME) => ifThere(() => fleet.admin.get(flavour.machineConfig, { name }));
const onDisk = (file: string) => readFile(join(fleet.processes.rootOf(NODE), file), 'utf8').catch(() => undefined);
const said = async (name: string, type: string) =>
  (await source(name))?.status?.conditions?.find((condition) => condition.type === type);
const accepted = (name: string, status: 'True' | 'False') =>
  fleet.until(`${name} to be ${status === 'True' ? 'accepted' : 'refused'}`, async () => {
    const condition = await said(name, 'Accepted');
    const { metadata, status: whole } = (await source(name))!;
    return whole?.observedGeneration === metadata.generation && condition?.status === status && condition;
  });
const settled = (what: string, isThere: (fields: Record<string, unknown> | undefined) => boolean) =>
  fleet.until(what, async () => {
    const [target, node, text] = [await fleet.target(), await fleet.facts(NODE), await onDisk(DROP_IN)];
    const fields = text === undefined ? undefined : (JSON.parse(text) as Record<string, unknown>);
    return node.current === target && node.state === 'Done' && !node.unschedulable && isThere(fields);
  });

test('a KubeletConfig is generated, rendered and rolled out, and says so', async () => {
  const before = await fleet.target();
  await create('limits', { maxPods: 42, systemReserved: { memory: '1Gi' } });
  expect(await accepted('limits', 'True')).toMatchObject({ message: 'Success' });
  expect((await generated())?.metadata.ownerReferences).toMatchObject([{ kind: 'KubeletConfig', name: 'limits' }]);
  await settled('the machine to have it', (fields) => fields?.maxPods === 42);
  expect(await fleet.target()).not.toBe(before);
  expect(await onDisk(UNIT)).toContain('--config-dir=/etc/kubernetes/kubelet.conf.d');
  // With kubeadm this is the kubelet's kubeconfig.
  await expect(access(join(fleet.processes.rootOf(NODE), 'etc/kubernetes/kubelet.conf'))).rejects.toThrow();
});

test('what is wrong is said, and the nodes keep what they have', async () => {
  const before = await fleet.target();
  await change('limits', { maxPods: 42, evictionSoft: { 'memory.available': '1Gi' } });
  expect(await accepted('limits', 'False')).toMatchObject({
    reason: 'InvalidField',
    message: expect.stringMatching(/^Error: spec\.kubeletConfig\.evictionSoft.*needs a grace period/) as string,
  });
  expect(await said('limits', 'Failure')).toMatchObject({ status: 'True' });
  expect(await fleet.target()).toBe(before);

  await change('limits', { maxPods: 42, evictionSoft: null });
  await accepted('limits', 'True');
  expect(await said('limits', 'Failure')).toBeUndefined();
  expect(await fleet.target()).toBe(before);
});

test('a second one builds on the first', async () => {
  await create('more', { podsPerCore: 4 });
  await accepted('more', 'True');
  await settled('the machine to have both', (fields) => fields?.podsPerCore === 4 && fields.maxPods === 42);
});

test('a generated config that somebody deletes comes back, and with it the same rendered config', async () => {
  const before = await fleet.target();
  const { uid } = (await generated())!.metadata;
  await fleet.admin.delete(flavour.machineConfig, { name: NAME });
  await fleet.until('the config to be there again', async () => {
    const again = await generated();
    return again !== undefined && again.metadata.uid !== uid;
  });
  await settled('the machine to be as it was', (fields) => fields?.maxPods === 42 && fields.podsPerCore === 4);
  expect(await fleet.target()).toBe(before);
});

test('a deleted one takes its config along, from the nodes too', async () => {
  for (const name of ['limits', 'more']) await fleet.admin.delete(flavour.kubeletConfig, { name });
  await fleet.until('the objects and their configs to be gone', async () => {
    const left = await Promise.all([source('limits'), source('more'), generated(), generated(`${NAME}-1`)]);
    return left.every((each) => each === undefined);
  });
  await settled('the machine to be without', (fields) => fields === undefined);
  expect(await onDisk(UNIT)).toBeUndefined();
});
