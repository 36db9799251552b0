import { vi } from 'vitest';
import { KINDS, type KubernetesObject } from '../../activities/kubernetes/client.js';
import { createKubernetesClient, type ClosableKubernetesClient } from '../../activities/kubernetes/rest.js';
import { startLab } from '../../dev/lab.js';
import { describeClusterBehaviour, WIDGET, WIDGET_CRD } from '../support/cluster-behaviour.js';
import { PATIENCE } from '../support/patience.js';

describeClusterBehaviour('a real API server', async () => {
  const lab = await startLab({ temporal: false });
  const clients: ClosableKubernetesClient[] = [];
  const open = (kubeconfigPath: string): ClosableKubernetesClient => {
    const client = createKubernetesClient({ kubeconfigPath });
    clients.push(client);
    return client;
  };
  const admin = open(lab.kubernetes.kubeconfigPath);
  await admin.create<KubernetesObject>(KINDS.customResourceDefinition, WIDGET_CRD);
  // Served a moment after it is accepted.
  await vi.waitFor(() => admin.list(WIDGET), { ...PATIENCE, interval: 100 });
  return {
    admin,
    asNode: async (name) => open(await lab.kubernetes.nodeKubeconfig(name)),
    close: async () => {
      await Promise.all(clients.map((client) => client.close()));
      await lab.stop();
    },
  };
});
