import { join } from 'node:path';
import { kubeletIdentity } from '../activities/host/kubelet-paths.js';
import type { RunProgram } from '../activities/host/run-program.js';
import { isThere } from '../activities/host/units.js';

/** Where kubelets keep the kubeconfig with the node's identity, by the distribution that does so. */
const WELL_KNOWN = [
  // kubeadm, and what is built on it.
  '/etc/kubernetes/kubelet.conf',
  // OpenShift.
  '/var/lib/kubelet/kubeconfig',
  // RKE2, before K3s: it has the folders of both.
  '/var/lib/rancher/rke2/agent/kubelet.kubeconfig',
  '/var/lib/rancher/k3s/agent/kubelet.kubeconfig',
];

export interface CredentialSearch {
  readonly root: string;
  readonly run: RunProgram;
}

/**
 * The kubeconfig with the node's own identity: what the kubelet itself is told by `--kubeconfig`, else where one is on
 * the usual distributions. Rejects with one line that names every place where none was; a node may get its kubelet
 * later, so ask again.
 */
export async function findNodeKubeconfig(search: CredentialSearch): Promise<string> {
  const { kubeconfigs } = await kubeletIdentity(search);
  const places = [...new Set([...kubeconfigs, ...WELL_KNOWN])];
  for (const place of places) if (await isThere(join(search.root, place))) return place;
  throw new Error(
    `no kubeconfig of a kubelet on this host: looked for ${places.join(', ')}; ` +
      'it is looked for again, or set DRYDOCK_KUBECONFIG to the file',
  );
}
