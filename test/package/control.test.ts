import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createKubernetesClient } from '../../activities/kubernetes/rest.js';
import { install } from '../../client/install.js';
import { startLab, type Lab } from '../../dev/lab.js';
import { waitUntil } from '../../dev/processes/wait-until.js';
import { apiFlavour } from '../../machine-config/api/flavour.js';
import { unpackedPackage } from '../support/node-package.js';

const flavour = apiFlavour('openshift');
let lab: Lab;
let folder: string;

beforeAll(async () => {
  lab = await startLab();
  folder = await unpackedPackage('control', join(lab.directory, 'package'));
});
afterAll(() => lab.stop());

it('renders a pool with the workflows that the package brings', async () => {
  const client = createKubernetesClient({ kubeconfigPath: lab.kubernetes.kubeconfigPath });
  try {
    await install({ client, flavour });
    const control = await lab.run({
      id: 'packaged-control',
      command: join(folder, 'bin/drydock-control'),
      args: [],
      env: {
        TEMPORAL_ADDRESS: lab.temporal.address,
        TEMPORAL_NAMESPACE: lab.temporal.namespace,
        DRYDOCK_KUBECONFIG: lab.kubernetes.kubeconfigPath,
        DRYDOCK_TUNING: JSON.stringify({ debounceSeconds: 0.1 }),
      },
    });
    const rendered = await waitUntil(
      async () => {
        const pool = await client.get(flavour.machineConfigPool, { name: 'worker' });
        const { spec } = pool as { spec?: { configuration?: { name?: string } } };
        return spec?.configuration?.name;
      },
      { what: 'the pool worker to have a config', timeoutMs: 60_000, check: () => control.assertRunning() },
    );
    expect(rendered).toMatch(/^rendered-worker-[0-9a-f]{32}$/);
    expect(await readFile(control.logFile, 'utf8')).not.toContain('Bundling');
  } finally {
    await client.close();
  }
});
