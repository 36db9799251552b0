import { KINDS, type KubernetesClient, type KubernetesObject } from '../../activities/kubernetes/client.js';
import { waitUntil } from '../processes/wait-until.js';

export const NAMESPACE = 'shop';
/** Seconds on an idle machine; a busy one takes long to schedule. */
const WORKLOAD_TIMEOUT_MS = 180_000;

export interface Workload {
  readonly name: string;
  readonly replicas: number;
  /** Of the budget: so many must be available. */
  readonly minAvailable: number;
}

type Deployment = KubernetesObject & { status?: { availableReplicas?: number } };

/** Deployments with PodDisruptionBudgets, so that a drain has something to respect. Resolves when all their pods run. */
export async function createWorkloads(client: KubernetesClient, workloads: readonly Workload[]): Promise<void> {
  await client.create(KINDS.namespace, { metadata: { name: NAMESPACE } });
  for (const { name, replicas, minAvailable } of workloads) {
    const metadata = { name, namespace: NAMESPACE };
    const labels = { app: name };
    const deployment = {
      metadata,
      spec: {
        replicas,
        selector: { matchLabels: labels },
        template: {
          metadata: { labels },
          spec: { containers: [{ name: 'main', image: 'registry.example/shop:1' }], terminationGracePeriodSeconds: 1 },
        },
      },
    };
    await client.create(KINDS.deployment, deployment);
    const budget = { metadata, spec: { minAvailable, selector: { matchLabels: labels } } };
    await client.create(KINDS.podDisruptionBudget, budget);
  }
  for (const { name, replicas } of workloads) {
    await waitUntil(
      async () => {
        const deployment = await client.get<Deployment>(KINDS.deployment, { name, namespace: NAMESPACE });
        return deployment.status?.availableReplicas === replicas;
      },
      { what: `the ${replicas} pods of ${name} to run`, timeoutMs: WORKLOAD_TIMEOUT_MS },
    );
  }
}
