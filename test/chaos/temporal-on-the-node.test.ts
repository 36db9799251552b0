import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { KINDS, type KubernetesObject } from '../../activities/kubernetes/client.js';
import { failedWith } from '../../activities/kubernetes/failures.js';
import { createKubernetesClient, type ClosableKubernetesClient } from '../../activities/kubernetes/rest.js';
import { NAMESPACE } from '../../dev/demo/workloads.js';
import { ChaosLab, OLDEST } from '../support/chaos-lab.js';

describe('a rollout over the node that Temporal itself runs on', () => {
  let chaos: ChaosLab;
  let client: ClosableKubernetesClient;
  beforeAll(async () => {
    chaos = await ChaosLab.start();
    client = createKubernetesClient({ kubeconfigPath: chaos.lab.kubernetes.kubeconfigPath });
  });
  afterAll(async () => {
    await client.close();
    await chaos.stop();
  });

  const addPod = (name: string, labels: Record<string, string>) =>
    client.create(KINDS.pod, {
      metadata: { name, namespace: NAMESPACE, labels },
      spec: { nodeName: OLDEST, containers: [{ name: 'main', image: 'none' }], terminationGracePeriodSeconds: 1 },
    } as KubernetesObject);

  /** Pods on the oldest node that nobody has told to go. */
  async function podsThatStay(): Promise<string[]> {
    const pods = await client.list(KINDS.pod, { namespace: NAMESPACE, fieldSelector: `spec.nodeName=${OLDEST}` });
    const staying = pods.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
    return staying.map(({ metadata }) => metadata.name).sort();
  }

  it('evicts Temporal when nothing else is left there, and goes on once it is back elsewhere', async () => {
    const budget = { name: 'cart', namespace: NAMESPACE };
    await addPod('temporal-server', { 'app.kubernetes.io/part-of': 'temporal' });
    await addPod('cart', { app: 'cart' });
    await client.create(KINDS.podDisruptionBudget, {
      metadata: budget,
      spec: { minAvailable: 1, selector: { matchLabels: { app: 'cart' } } },
    } as KubernetesObject);

    await chaos.rollOutThrough(async () => {
      await chaos.waitFor(`the drain of ${OLDEST} to be held by the budget alone`, async () => {
        const staying = await podsThatStay();
        return !chaos.node(OLDEST).schedulable && staying.join() === 'cart,temporal-server';
      });
      await client.delete(KINDS.podDisruptionBudget, budget);
      await chaos.waitFor('Temporal to be told to go', async () => !(await podsThatStay()).includes('temporal-server'));
      await expect(client.get(KINDS.pod, { name: 'cart', namespace: NAMESPACE })).rejects.toSatisfy((error) =>
        failedWith(error, 'NotFound'),
      );
      // With its pod the server goes, at once and in the middle of the drain, and comes back on another node.
      await chaos.lab.temporal.kill('SIGKILL');
      await chaos.lab.temporal.restart();
    });
  });
});
