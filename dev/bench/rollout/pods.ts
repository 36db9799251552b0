import pMap from 'p-map';
import { KINDS, type KubernetesClient, type KubernetesObject } from '../../../activities/kubernetes/client.js';
import { waitUntil } from '../../processes/wait-until.js';
import type { Log } from '../../tools/cache.js';

const NAMESPACE = 'bench';
const AT_ONCE = 20;
const TIMEOUT_MS = 300_000;

export interface PodsToCreate {
  readonly client: KubernetesClient;
  readonly names: readonly string[];
  readonly perNode: number;
  readonly log: Log;
}

type Deployment = KubernetesObject & { status?: { availableReplicas?: number } };

/** Deployments of one pod a node on average, guarded by no budget; what is evicted is scheduled somewhere else. */
export async function createPods({ client, names, perNode, log }: PodsToCreate): Promise<void> {
  if (perNode === 0) return;
  log(`creating ${perNode} pods a node`);
  await client.create(KINDS.namespace, { metadata: { name: NAMESPACE } });
  const deployments = Array.from({ length: perNode }, (_, index) => deployment(`pods-${index + 1}`, names.length));
  await pMap(deployments, (object) => client.create(KINDS.deployment, object), { concurrency: AT_ONCE });
  for (const { metadata } of deployments) {
    await waitUntil(
      async () => {
        const { status } = await client.get<Deployment>(KINDS.deployment, metadata);
        return status?.availableReplicas === names.length;
      },
      { what: `the pods of ${metadata.name} to run`, timeoutMs: TIMEOUT_MS, intervalMs: 1_000 },
    );
  }
}

function deployment(name: string, replicas: number): KubernetesObject {
  const labels = { app: name };
  const container = { name: 'main', image: 'registry.example/bench:1' };
  // Evenly, as a scheduler with real loads would.
  const spread = { maxSkew: 1, topologyKey: 'kubernetes.io/hostname', whenUnsatisfiable: 'ScheduleAnyway' };
  const template = {
    metadata: { labels },
    spec: {
      containers: [container],
      terminationGracePeriodSeconds: 1,
      topologySpreadConstraints: [{ ...spread, labelSelector: { matchLabels: labels } }],
    },
  };
  return {
    metadata: { name, namespace: NAMESPACE },
    spec: { replicas, selector: { matchLabels: labels }, template },
  } as KubernetesObject;
}
