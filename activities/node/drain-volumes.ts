import pMap from 'p-map';
import { claimNames, podName, type DrainPod } from '../../machine-config/drain/drain-pods.js';
import type { Blocker } from '../../machine-config/drain/drain-sentence.js';
import { KINDS, type KubernetesObject } from '../kubernetes/client.js';
import { failedWith } from '../kubernetes/failures.js';
import type { NodeDependencies } from './dependencies.js';
import type { DrainMemory } from './node-memory.js';

type Claim = KubernetesObject & { spec?: { volumeName?: string } };
type Volume = KubernetesObject & { spec?: { csi?: { driver: string; volumeHandle: string } } };

const READS_AT_ONCE = 5;

/**
 * Remembers the volumes of pods that are about to be evicted, by the names that the kubelet gives them in the Node's
 * status. A node may read claims and volumes of its pods as long as they are there, so it is asked before. Only volumes of
 * CSI drivers are followed; what cannot be read is not waited for.
 */
export async function rememberVolumes(
  pods: readonly DrainPod[],
  memory: DrainMemory,
  { client }: Pick<NodeDependencies, 'client'>,
): Promise<void> {
  const claims = pods.flatMap((pod) => claimNames(pod).map((claim) => ({ pod, claim })));
  await pMap(
    claims,
    async ({ pod, claim }) => {
      const volume = await volumeBehind(claim, pod.metadata.namespace ?? 'default', client);
      if (volume !== undefined) memory.volumes.set(volume, podName(pod));
    },
    { concurrency: READS_AT_ONCE },
  );
}

async function volumeBehind(
  name: string,
  namespace: string,
  client: NodeDependencies['client'],
): Promise<string | undefined> {
  try {
    const claim = await client.get<Claim>(KINDS.persistentVolumeClaim, { name, namespace });
    const volumeName = claim.spec?.volumeName;
    if (volumeName === undefined || volumeName === '') return undefined;
    const { spec } = await client.get<Volume>(KINDS.persistentVolume, { name: volumeName });
    return spec?.csi && uniqueName(spec.csi);
  } catch (error) {
    if (failedWith(error, 'NotFound', 'Forbidden', 'ApiUnavailable')) return undefined;
    throw error;
  }
}

/** As the kubelet names it in `status.volumesInUse`. */
function uniqueName({ driver, volumeHandle }: { driver: string; volumeHandle: string }): string {
  return `kubernetes.io/csi/${driver}^${volumeHandle}`;
}

/** The volumes of evicted pods that the node still has in use. */
export function volumeBlockers(memory: DrainMemory, inUse: readonly string[]): Blocker[] {
  return inUse.flatMap((volume) => {
    const pod = memory.volumes.get(volume);
    return pod === undefined ? [] : [{ pod, cause: 'volume' as const, why: `volume ${volume} is still in use` }];
  });
}
