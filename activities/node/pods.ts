import type { KubernetesObject } from '../kubernetes/client.js';
import { KINDS } from '../kubernetes/client.js';
import type { NodeDependencies } from './dependencies.js';

export type Pod = KubernetesObject & { status?: { phase?: string } };

const MIRROR_ANNOTATION = 'kubernetes.io/config.mirror';

/**
 * The pods on the own node that a drain has to move. Not those of DaemonSets, which are made for this node and come back
 * at once; not mirror pods, which only show what the kubelet runs from files; not finished ones, which run nothing.
 */
export async function podsToEvict({ client, node }: Pick<NodeDependencies, 'client' | 'node'>): Promise<Pod[]> {
  const pods = await client.list<Pod>(KINDS.pod, { fieldSelector: `spec.nodeName=${node}` });
  return pods.filter((pod) => !isDaemonPod(pod) && !isMirrorPod(pod) && !isFinished(pod));
}

function isDaemonPod({ metadata }: Pod): boolean {
  return (metadata.ownerReferences ?? []).some(({ kind, controller }) => kind === 'DaemonSet' && controller === true);
}

function isMirrorPod({ metadata }: Pod): boolean {
  return metadata.annotations?.[MIRROR_ANNOTATION] !== undefined;
}

function isFinished({ status }: Pod): boolean {
  return status?.phase === 'Succeeded' || status?.phase === 'Failed';
}

export const podName = ({ metadata }: Pod): string => `${metadata.namespace ?? 'default'}/${metadata.name}`;
