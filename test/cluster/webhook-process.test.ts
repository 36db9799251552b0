import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import type { KubernetesObject } from '../../activities/kubernetes/client.js';
import { createKubernetesClient, type ClosableKubernetesClient } from '../../activities/kubernetes/rest.js';
import { install } from '../../client/install.js';
import { startDrydock } from '../../dev/drydock-processes.js';
import { startLab, type Lab } from '../../dev/lab.js';
import { prepareWebhook } from '../../dev/webhook.js';
import { apiFlavour } from '../../machine-config/api/flavour.js';

const flavour = apiFlavour('openshift');

let lab: Lab;
let admin: ClosableKubernetesClient;
beforeAll(async () => {
  lab = await startLab();
  admin = createKubernetesClient({ kubeconfigPath: lab.kubernetes.kubeconfigPath });
  const webhook = await prepareWebhook(lab);
  await install({ client: admin, flavour, webhook: webhook.place });
  await lab.kubernetes.createNodes([{ name: 'worker-1' }]);
  await startDrydock(lab, { nodes: ['worker-1'], webhook });
});
afterAll(async () => {
  await admin.close();
  await lab.stop();
});

test('the control worker itself serves the webhook, and renders what passes it', async () => {
  let attempt = 0;
  const create = (source: string) =>
    admin.create(flavour.machineConfig, {
      metadata: { name: `95-probe-${(attempt += 1)}`, labels: { [flavour.roleLabel]: 'worker' } },
      spec: {
        config: { ignition: { version: '3.4.0' }, storage: { files: [{ path: '/etc/a', contents: { source } }] } },
      },
    } as KubernetesObject);
  // Changes pass until the control worker answers.
  await vi.waitFor(
    () =>
      expect(create('data:;base64,@@')).rejects.toMatchObject({
        message: expect.stringMatching(
          /admission webhook .* denied the request: MachineConfig 95-probe-\d+: spec\.config\.storage\.files\[0\]\.contents\.source/u,
        ) as string,
      }),
    { timeout: 90_000, interval: 500 },
  );
  for (const { metadata } of await admin.list(flavour.machineConfig)) {
    if (metadata.name.startsWith('95-probe-')) await admin.delete(flavour.machineConfig, { name: metadata.name });
  }
  await create('data:,good');
  // Its own changes of pool and configs go on beside that.
  await vi.waitFor(
    async () => {
      const pool = await admin.get<KubernetesObject & { spec: { configuration?: { source?: { name?: string }[] } } }>(
        flavour.machineConfigPool,
        { name: 'worker' },
      );
      expect(pool.spec.configuration?.source?.map(({ name }) => name)).toContain(`95-probe-${attempt}`);
    },
    { timeout: 90_000, interval: 500 },
  );
});
