import { MANAGED_BY_DRYDOCK, MANAGED_BY_LABEL } from '../../machine-config/api/crd.js';
import { apiFlavour, FLAVOUR_NAMES, type ResourceKind } from '../../machine-config/api/flavour.js';
import {
  KINDS,
  type KubernetesClient,
  type KubernetesObject,
  type ObjectName,
} from '../../activities/kubernetes/client.js';
import { failedWith } from '../../activities/kubernetes/failures.js';

const CLUSTER_OPERATOR: ResourceKind = {
  group: 'config.openshift.io',
  version: 'v1',
  plural: 'clusteroperators',
  kind: 'ClusterOperator',
  namespaced: false,
};

const OPERATOR_NAMESPACE = 'openshift-machine-config-operator';
const TWO_OWNERS = 'two systems must not configure the same nodes';

interface CrdObject extends KubernetesObject {
  spec?: { group?: string };
}

/** The groups that the kinds of any flavour live in, and nobody else's kinds do. */
const MACHINE_CONFIG_GROUPS: readonly string[] = FLAVOUR_NAMES.map((name) => apiFlavour(name).group);
const OUR_CRD_NAMES: readonly string[] = FLAVOUR_NAMES.map((name) => apiFlavour(name).machineConfiguration).map(
  ({ plural, group }) => `${plural}.${group}`,
);

/**
 * One line that says why install must not go on, or undefined: OpenShift's own machine-config operator runs here (its
 * Deployment or its ClusterOperator is there, whatever their state: the cluster version operator would bring them
 * back), or a CRD of the MachineConfig API is there that is not ours. Ours are told by their label, so that a second
 * install, or CRDs applied from deploy/crds, raise no alarm.
 */
export async function findForeignOperator(client: KubernetesClient): Promise<string | undefined> {
  if (await exists(client, CLUSTER_OPERATOR, { name: 'machine-config' })) {
    return `this is an OpenShift cluster: ClusterOperator machine-config exists, so OpenShift's own machine-config operator manages the nodes, and ${TWO_OWNERS}; use a cluster without it`;
  }
  for (const name of ['machine-config-operator', 'machine-config-controller']) {
    if (await exists(client, KINDS.deployment, { name, namespace: OPERATOR_NAMESPACE })) {
      return `Deployment ${OPERATOR_NAMESPACE}/${name} exists, so OpenShift's own machine-config operator manages the nodes, and ${TWO_OWNERS}; use a cluster without it, or remove it first`;
    }
  }
  const crds = await client.list<CrdObject>(KINDS.customResourceDefinition);
  const foreign = crds.find(isForeign);
  return foreign === undefined
    ? undefined
    : `CustomResourceDefinition ${foreign.metadata.name} exists and is not Drydock's, so another machine-config operator may manage the nodes, and ${TWO_OWNERS}; remove that operator, or, if none runs, hand the CRD over: kubectl label crd ${foreign.metadata.name} ${MANAGED_BY_LABEL}=${MANAGED_BY_DRYDOCK} --overwrite`;
}

function isForeign(crd: CrdObject): boolean {
  const concernsUs = MACHINE_CONFIG_GROUPS.includes(crd.spec?.group ?? '') || OUR_CRD_NAMES.includes(crd.metadata.name);
  return concernsUs && crd.metadata.labels?.[MANAGED_BY_LABEL] !== MANAGED_BY_DRYDOCK;
}

async function exists(client: KubernetesClient, resource: ResourceKind, object: ObjectName): Promise<boolean> {
  try {
    await client.get(resource, object);
    return true;
  } catch (error) {
    // Also where the API server does not know the kind.
    if (failedWith(error, 'NotFound')) return false;
    throw error;
  }
}
