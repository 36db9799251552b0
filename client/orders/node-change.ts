import type { NodeResource } from '../../activities/cluster/control-dependencies.js';
import { KINDS } from '../../activities/kubernetes/client.js';
import { failedWith } from '../../activities/kubernetes/failures.js';
import { nodeFacts, type NodeFacts } from '../../machine-config/pool/facts.js';
import { CommandError } from '../command-error.js';
import type { DrydockCluster } from '../rollouts.js';

/** The kubelet writes its status as often as every ten seconds. */
const MOST_ATTEMPTS = 5;

/** What is to be written on a Node; no annotations: it is as it shall be already. */
export interface NodeDecision<T> {
  readonly annotations?: Readonly<Record<string, string | null>>;
  /** Lifts the cordon. */
  readonly uncordon?: boolean;
  readonly answer: T;
}

/** Decides about a Node and writes that in the very version that it was decided on, again where it was changed meanwhile. */
export async function changeNode<T>(
  cluster: DrydockCluster,
  name: string,
  decide: (node: NodeFacts) => NodeDecision<T> | Promise<NodeDecision<T>>,
): Promise<T> {
  const { kubernetes, flavour } = cluster;
  for (let attempt = 1; ; attempt++) {
    const node = await getNode(cluster, name);
    const { annotations, uncordon, answer } = await decide(nodeFacts(node, flavour));
    if (annotations === undefined) return answer;
    const { resourceVersion } = node.metadata;
    const spec = uncordon === true ? { spec: { unschedulable: null } } : {};
    try {
      await kubernetes.patch(KINDS.node, { name }, { metadata: { resourceVersion, annotations }, ...spec });
      return answer;
    } catch (error) {
      if (!failedWith(error, 'Conflict') || attempt === MOST_ATTEMPTS) throw error;
    }
  }
}

async function getNode({ kubernetes }: DrydockCluster, name: string): Promise<NodeResource> {
  try {
    return await kubernetes.get<NodeResource>(KINDS.node, { name });
  } catch (error) {
    if (!failedWith(error, 'NotFound')) throw error;
    throw new CommandError('refused', `Node ${name} not found: drydock nodes lists those that there are`, {
      cause: error,
    });
  }
}
