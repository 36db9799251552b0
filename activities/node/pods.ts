import { mustMove, type DrainPod } from '../../machine-config/drain/drain-pods.js';
import type { KubernetesObject } from '../kubernetes/client.js';
import { KINDS } from '../kubernetes/client.js';
import type { NodeDependencies } from './dependencies.js';

type Pod = KubernetesObject & DrainPod;

/** All pods that are bound to the own node. */
export function podsHere({ client, node }: Pick<NodeDependencies, 'client' | 'node'>): Promise<Pod[]> {
  return client.list<Pod>(KINDS.pod, { fieldSelector: `spec.nodeName=${node}` });
}

/** The pods on the own node that a drain has to see go. */
export async function podsToMove(deps: NodeDependencies): Promise<Pod[]> {
  return (await podsHere(deps)).filter((pod) => mustMove(pod, deps.ownPod));
}
