import {
  CONTROL_PLANE_COMPONENTS,
  controlPlaneObstacle,
  isControlPlaneNode,
  type ControlPlanePod,
} from '../../machine-config/pool/control-plane.js';
import { KINDS, type KubernetesClient, type KubernetesObject } from '../kubernetes/client.js';
import { ifThere } from '../kubernetes/failures.js';
import type { ControlDependencies, NodeResource } from './control-dependencies.js';
import { factsOf } from './pool-view.js';

/** Where kubeadm and its kin run the static pods of the control plane, and the label by which they are told apart. */
const NAMESPACE = 'kube-system';
const COMPONENT_LABEL = 'component';

type Dependencies = Pick<ControlDependencies, 'client' | 'flavour' | 'nodes'>;

/** The part of a Pod that is looked at. */
type StaticPod = KubernetesObject & {
  spec?: { nodeName?: string };
  status?: { conditions?: { type: string; status: string }[] };
};

/**
 * Why a node must not be taken out of service now because of the rest of the control plane, in one sentence; undefined:
 * it may, or it is not of the control plane. Pods and etcd are asked of the API server at this moment, Nodes of the
 * watch, unless `live`.
 *
 * @throws the client's failures.
 */
export async function obstacleOfControlPlane(
  dependencies: Dependencies,
  node: string,
  { live = false }: { readonly live?: boolean } = {},
): Promise<string | undefined> {
  const { client, flavour, nodes } = dependencies;
  const isMember = ({ metadata }: NodeResource) => isControlPlaneNode({ labels: metadata.labels ?? {} });
  const own = nodes.get(node);
  if (own === undefined || !isMember(own)) return undefined;
  const seen = nodes.list().filter(isMember);
  const [members, pods, etcdProblem] = await Promise.all([
    live ? Promise.all(seen.map((each) => readAgain(client, each))) : seen,
    client.list<StaticPod>(KINDS.pod, {
      namespace: NAMESPACE,
      labelSelector: `${COMPONENT_LABEL} in (${CONTROL_PLANE_COMPONENTS.join(',')})`,
    }),
    client.etcdProblem(),
  ]);
  return controlPlaneObstacle(node, {
    nodes: members.flatMap((each) => each ?? []).map((each) => factsOf(each, flavour)),
    pods: pods.flatMap((pod) => controlPlanePod(pod) ?? []),
    etcdProblem,
  });
}

function readAgain(client: KubernetesClient, { metadata: { name } }: NodeResource): Promise<NodeResource | undefined> {
  return ifThere(() => client.get<NodeResource>(KINDS.node, { name }));
}

function controlPlanePod({ metadata, spec, status }: StaticPod): ControlPlanePod | undefined {
  const component = CONTROL_PLANE_COMPONENTS.find((each) => each === metadata.labels?.[COMPONENT_LABEL]);
  if (component === undefined || spec?.nodeName === undefined) return undefined;
  const isReady = status?.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True') ?? false;
  return {
    name: `${NAMESPACE}/${metadata.name}`,
    node: spec.nodeName,
    component,
    ready: isReady && metadata.deletionTimestamp === undefined,
  };
}
