import type { ApplicationFailure } from '@temporalio/common';
import { describe, expect, it } from 'vitest';
import { KINDS, type KubernetesObject } from '../../../activities/kubernetes/client.js';
import { file } from '../../support/fake-host.js';
import { setUpNode } from '../../support/node-under-test.js';

const CONTROL_PLANE = { 'node-role.kubernetes.io/control-plane': '' };
const BOOTED_AT = Date.parse('2026-11-30T12:05:00Z');
const BEFORE_BOOT = '2026-11-30T11:00:00Z';
const AFTER_BOOT = '2026-11-30T12:05:40Z';

interface Shown {
  readonly ready?: boolean;
  readonly startedAt?: string;
  readonly readySince?: string;
}

/** A node that is back from the reboot of its update, booted at BOOTED_AT. */
async function setUpRebooted(labels: Record<string, string> = CONTROL_PLANE) {
  const node = await setUpNode();
  await node.cluster.patch(KINDS.node, { name: 'n1' }, { metadata: { labels } });
  node.fake.host.bootedAt = () => Promise.resolve(BOOTED_AT);
  const target = node.store({ storage: { files: [file('/etc/new', 'new\n')] } });
  await node.grant(target);
  const step = { ...node.step, target };
  for (const name of ['prepare', 'cordon', 'apply', 'reboot'] as const) await node.run(name, step);
  await node.fake.boot();
  await node.reportBoot();
  const show = (name: string, { ready = true, startedAt = BEFORE_BOOT, readySince = BEFORE_BOOT }: Shown = {}) =>
    node.cluster.add(KINDS.pod, {
      metadata: {
        name: `${name}-n1`,
        namespace: 'kube-system',
        annotations: { 'kubernetes.io/config.mirror': 'hash' },
      },
      spec: { nodeName: 'n1' },
      status: {
        conditions: [{ type: 'Ready', status: ready ? 'True' : 'False', lastTransitionTime: readySince }],
        containerStatuses: [{ name, state: { running: { startedAt } } }],
      },
    } as KubernetesObject);
  return { ...node, show, confirm: () => node.run('confirm', step) };
}

const waitsFor = (...names: string[]) =>
  expect.objectContaining({
    type: 'NodeNotReady',
    nonRetryable: false,
    message: `n1 waits until its static pods run again after the boot: ${names.join(' and ')}`,
  }) as ApplicationFailure;

describe('a node of the control plane that is back from its reboot', () => {
  it('waits while what is shown of its static pods is from before the boot, however Ready', async () => {
    const node = await setUpRebooted();
    node.show('etcd');
    node.show('kube-apiserver', { startedAt: AFTER_BOOT });
    await expect(node.confirm()).rejects.toEqual(waitsFor('etcd-n1'));
    node.show('etcd', { startedAt: AFTER_BOOT });
    await expect(node.confirm()).resolves.toMatchObject({ rebooted: true });
  });

  it('waits while they are not Ready', async () => {
    const node = await setUpRebooted();
    node.show('etcd', { startedAt: AFTER_BOOT, ready: false });
    node.show('kube-apiserver', { startedAt: AFTER_BOOT, ready: false });
    await expect(node.confirm()).rejects.toEqual(waitsFor('etcd-n1', 'kube-apiserver-n1'));
  });

  it('takes a pod for started that has become Ready since, whatever the clock said when it started', async () => {
    const node = await setUpRebooted();
    node.show('etcd', { startedAt: '1970-01-01T00:00:09Z', readySince: AFTER_BOOT });
    await expect(node.confirm()).resolves.toMatchObject({ rebooted: true });
  });

  it('does not wait for pods that are no static ones', async () => {
    const node = await setUpRebooted();
    node.cluster.add(KINDS.pod, {
      metadata: { name: 'cart', namespace: 'shop' },
      spec: { nodeName: 'n1' },
      status: { conditions: [{ type: 'Ready', status: 'False' }] },
    } as KubernetesObject);
    await expect(node.confirm()).resolves.toMatchObject({ rebooted: true });
  });
});

it('a worker does not wait for static pods', async () => {
  const node = await setUpRebooted({ 'node-role.kubernetes.io/worker': '' });
  node.show('proxy');
  await expect(node.confirm()).resolves.toMatchObject({ rebooted: true });
});
