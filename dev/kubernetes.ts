import { join } from 'node:path';
import { startControlPlane, type ControlPlane, type ControlPlaneProcesses } from './kubernetes/control-plane.js';
import type { KubeletTiming } from './kubernetes/kubelets.js';
import { createNodes, switchKubelet, type LabNode } from './kubernetes/nodes.js';
import type { Supervisor } from './processes/supervisor.js';
import type { KubernetesTools } from './tools/kubernetes-tools.js';

export type { LabNode } from './kubernetes/nodes.js';
export { NEVER_READY_LABEL, TERMINATION_ANNOTATION } from './kubernetes/kubelets.js';

export interface LabKubernetes {
  /** `https://127.0.0.1:41234` */
  readonly server: string;
  /** A kubeconfig of an administrator (system:masters). */
  readonly kubeconfigPath: string;
  /** kubectl of the same version; always pass it the kubeconfig. */
  readonly kubectl: string;
  /** Where etcd serves clients; on a cluster of the user's own unknown. */
  readonly etcdUrl?: string;
  /** For crash tests; on a cluster of the user's own there is only kwok. */
  readonly processes: Partial<ControlPlaneProcesses>;
  /**
   * A kubeconfig with the identity of a node's kubelet: user `system:node:NAME`, group `system:nodes`, so that the Node
   * authorizer and NodeRestriction apply. The Node need not exist. @returns the file.
   */
  nodeKubeconfig(name: string): Promise<string>;
  /** A kubeconfig of any other user, for tests of permissions. @returns the file. */
  userKubeconfig(user: string, group?: string): Promise<string>;
  /** Creates Nodes in this order and waits until they are Ready. */
  createNodes(nodes: readonly LabNode[]): Promise<void>;
  /** Stops a node's kubelet: no heartbeats, Pods stay as they are; NotReady after the grace period. */
  stopKubelet(node: string): Promise<void>;
  startKubelet(node: string): Promise<void>;
  /** Resolves when the API server answers as ready, for example after a restart. */
  waitUntilReady(): Promise<void>;
}

export interface KubernetesStart {
  readonly supervisor: Supervisor;
  readonly tools: KubernetesTools;
  readonly timing: KubeletTiming;
  /** See LabOptions. */
  readonly storesJson?: boolean;
  readonly audits?: boolean;
}

/** Starts a Kubernetes control plane of the lab's own, with kwok as the kubelets. It has no Nodes yet. */
export async function startKubernetes(start: KubernetesStart): Promise<LabKubernetes> {
  const plane = await startControlPlane(start);
  const directory = join(start.supervisor.directory, 'kubeconfigs');
  const kubeconfigPath = await plane.kubeconfigFor(
    { user: 'drydock-lab-admin', group: 'system:masters' },
    join(directory, 'admin.kubeconfig'),
  );
  const user = (name: string, group?: string) => userKubeconfig(plane, directory, name, group);
  const maker = { api: plane.api, etcdUrl: plane.etcdUrl };
  return {
    server: plane.server,
    kubeconfigPath,
    kubectl: start.tools.kubectl,
    etcdUrl: plane.etcdUrl,
    processes: plane.processes,
    nodeKubeconfig: (name) => user(`system:node:${name}`, 'system:nodes'),
    userKubeconfig: user,
    createNodes: (nodes) => createNodes(maker, nodes),
    stopKubelet: (node) => switchKubelet(plane.api, node, false),
    startKubelet: (node) => switchKubelet(plane.api, node, true),
    waitUntilReady: () => plane.waitUntilReady(),
  };
}

function userKubeconfig(plane: ControlPlane, directory: string, user: string, group?: string): Promise<string> {
  const file = join(directory, `${encodeURIComponent(user)}.kubeconfig`);
  return plane.kubeconfigFor({ user, ...(group === undefined ? {} : { group }) }, file);
}
