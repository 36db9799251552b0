import type { NodeFacts } from './facts.js';
import { clip, MAX_SENTENCE_LENGTH } from './sentences.js';

/** The labels by which Kubernetes distributions mark the nodes of the control plane. */
const CONTROL_PLANE_LABELS = ['node-role.kubernetes.io/control-plane', 'node-role.kubernetes.io/master'] as const;

/** Where members of etcd have nodes of their own, these bear it, and all others have none. */
const ETCD_LABEL = 'node-role.kubernetes.io/etcd';

/** The static pods without which a node is not part of the control plane, by their label `component`. */
export const CONTROL_PLANE_COMPONENTS = ['kube-apiserver', 'etcd'] as const;
export type ControlPlaneComponent = (typeof CONTROL_PLANE_COMPONENTS)[number];

const WORDS: Readonly<Record<ControlPlaneComponent, string>> = { 'kube-apiserver': 'API server', etcd: 'etcd' };

const ALL_LABELS: readonly string[] = [...CONTROL_PLANE_LABELS, ETCD_LABEL];

type Labelled = Pick<NodeFacts, 'labels'>;

/** Whether the API server or a member of etcd runs there: such nodes are updated one at a time. */
export function isControlPlaneNode({ labels }: Labelled): boolean {
  return ALL_LABELS.some((label) => Object.hasOwn(labels, label));
}

/** A static pod of the control plane, as its mirror pod shows it. */
export interface ControlPlanePod {
  /** `namespace/name`. */
  readonly name: string;
  readonly node: string;
  readonly component: ControlPlaneComponent;
  readonly ready: boolean;
}

export interface ControlPlaneState {
  /** All nodes of the cluster's control plane, those of other pools too. */
  readonly nodes: readonly NodeFacts[];
  readonly pods: readonly ControlPlanePod[];
  /** What the API server says of its etcd when it is not well; absent: it is, or could not be asked. */
  readonly etcdProblem?: string | undefined;
}

/** A component that no node shows as a pod is run in another way: nothing can be said of it, and nothing is asked. */
function isExpected(component: ControlPlaneComponent, node: NodeFacts, { nodes, pods }: ControlPlaneState): boolean {
  const bearing = nodes.filter(({ labels }) => Object.hasOwn(labels, ETCD_LABEL));
  const places = component === 'etcd' && bearing.length > 0 ? bearing : nodes.filter(isApiServerNode);
  const names = new Set(places.map(({ name }) => name));
  return names.has(node.name) && pods.some((pod) => pod.component === component && names.has(pod.node));
}

function isApiServerNode({ labels }: Labelled): boolean {
  return CONTROL_PLANE_LABELS.some((label) => Object.hasOwn(labels, label));
}

/** Why a node carries less of the control plane than it should; undefined: all is well there. */
function problemOf(node: NodeFacts, facts: ControlPlaneState): string | undefined {
  if (node.deleting) return `${node.name} is being deleted`;
  if (!node.ready) return `${node.name} is not ready (${node.notReadyBecause ?? 'no reason given'})`;
  for (const component of CONTROL_PLANE_COMPONENTS) {
    const here = facts.pods.filter((pod) => pod.component === component && pod.node === node.name);
    const broken = here.find(({ ready }) => !ready);
    if (broken !== undefined) return `the ${WORDS[component]} of ${node.name} is not Ready (pod ${broken.name})`;
    if (here.length === 0 && isExpected(component, node, facts)) {
      return `${node.name} has no ${WORDS[component]} (no pod of component ${component} there)`;
    }
  }
  return undefined;
}

/**
 * Why a node of the control plane must not be taken out of service now, in one sentence; undefined: it may. All others
 * have to be Ready with their API server and etcd Ready, since a control plane that lacks one member already may lose
 * its quorum with the next. What is wrong with the node itself is no obstacle: its update may be what mends it.
 */
export function controlPlaneObstacle(node: string, facts: ControlPlaneState): string | undefined {
  const problems = facts.nodes
    .filter(({ name }) => name !== node)
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap((other) => problemOf(other, facts) ?? []);
  // With nobody else there is nobody who could take over, and nothing to wait for.
  const others = facts.nodes.some(({ name }) => name !== node);
  if (others && facts.etcdProblem !== undefined) problems.push(`etcd is not healthy (${clip(facts.etcdProblem, 200)})`);
  const [first, ...more] = problems;
  if (first === undefined) return undefined;
  const rest = more.length === 0 ? '' : ` and ${more.length} more: ${more.slice(0, 2).join('; ')}`;
  return clip(
    `${node} is part of the control plane and waits until all others of it are well: ${first}${rest}; ` +
      `bring that back, or delete the Node object if the machine is gone`,
    MAX_SENTENCE_LENGTH,
  );
}
