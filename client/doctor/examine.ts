import { poolSelectors } from '../../activities/cluster/pool-view.js';
import { KINDS, type KubernetesClient, type KubernetesObject } from '../../activities/kubernetes/client.js';
import { failedWith, ifThere } from '../../activities/kubernetes/failures.js';
import { CONTROLLER_CONFIG_NAME, type ControllerConfig } from '../../machine-config/api/controller-config.js';
import { apiVersionOf } from '../../machine-config/api/flavour.js';
import { matchesSelector, type LabelSelector } from '../../machine-config/api/label-selector.js';
import { isTemporal } from '../../machine-config/drain/drain-pods.js';
import { nodeFacts } from '../../machine-config/pool/facts.js';
import { poolOf } from '../../machine-config/pool/membership.js';
import type { Engine } from '../engine.js';
import { installedControlUser } from '../install/admission.js';
import { installedWebhook } from '../install/webhook.js';
import type { NodeWithFacts } from '../node-report.js';
import { listPools, type DrydockCluster } from '../rollouts.js';
import type { DoctorFinding } from './findings.js';
import { examineEngine, examineInstallation, examineTemporalPods, type TemporalPods } from './installation.js';
import { examineSettings, examineWorkers, type ExaminedNode } from './nodes.js';

/**
 * Looks at an installation as a whole and says what is not as it should be. Changes nothing. What the user may not read
 * is `unknown`; rejects where the cluster does not answer.
 */
export async function examine(cluster: DrydockCluster, engine: Engine): Promise<DoctorFinding[]> {
  const { kubernetes, flavour } = cluster;
  const { validatingAdmissionPolicy } = KINDS;
  const policies = await kubernetes.discover(apiVersionOf(validatingAdmissionPolicy), validatingAdmissionPolicy.kind);
  const pools = await listPools(cluster);
  const names = pools.map(({ metadata }) => metadata.name).sort();
  const nodes = await memberNodes(cluster, pools);
  const controllerConfig = await ifThere(() =>
    kubernetes.get<KubernetesObject & ControllerConfig>(flavour.controllerConfig, { name: CONTROLLER_CONFIG_NAME }),
  );
  return [
    ...examineInstallation({
      servesPolicies: policies !== undefined,
      controlUser: policies === undefined ? undefined : await installedControlUser(kubernetes, flavour),
      hasWebhook: (await installedWebhook(kubernetes, flavour)) !== undefined,
      pools: names,
    }),
    ...examineEngine(await engineFacts(engine, names)),
    ...examineTemporalPods(await temporalPods(kubernetes)),
    ...examineWorkers(nodes),
    ...examineSettings(nodes, controllerConfig),
  ];
}

async function memberNodes(
  { kubernetes, flavour }: DrydockCluster,
  pools: Awaited<ReturnType<typeof listPools>>,
): Promise<ExaminedNode[]> {
  const selectors = poolSelectors(pools);
  const nodes = await kubernetes.list<NodeWithFacts>(KINDS.node);
  return nodes.flatMap((node) => {
    const { name, labels, annotations, worker } = nodeFacts(node, flavour);
    if (poolOf({ name, labels }, selectors).kind !== 'pool') return [];
    const { containerRuntimeVersion } = node.status?.nodeInfo ?? {};
    return [{ name, labels, annotations: annotations ?? {}, containerRuntimeVersion, worker }];
  });
}

async function engineFacts(engine: Engine, pools: readonly string[]) {
  const views = await Promise.all(pools.map(async (pool) => ({ pool, view: await engine.view(pool) })));
  const silent = views.find(({ view }) => view.manager === 'unknown');
  return {
    unmanaged: views.filter(({ view }) => view.manager === 'notRunning').map(({ pool }) => pool),
    problem: silent === undefined ? undefined : (silent.view.problem ?? 'Temporal does not answer'),
  };
}

type Pod = KubernetesObject & { readonly spec?: { readonly nodeName?: string } };
type Budget = KubernetesObject & { readonly spec?: { readonly selector?: LabelSelector } };

async function temporalPods(kubernetes: KubernetesClient): Promise<TemporalPods | { whyUnknown: string }> {
  try {
    const pods = (await kubernetes.list<Pod>(KINDS.pod)).filter((pod) => isTemporal(pod));
    const budgets = pods.length === 0 ? [] : await kubernetes.list<Budget>(KINDS.podDisruptionBudget);
    const guards = ({ metadata, spec }: Budget) =>
      pods.some(
        (pod) =>
          pod.metadata.namespace === metadata.namespace && matchesSelector(spec?.selector, pod.metadata.labels ?? {}),
      );
    return {
      pods: pods.map(({ metadata, spec }) => ({
        namespace: metadata.namespace ?? '',
        name: metadata.name,
        node: spec?.nodeName ?? '',
      })),
      budgetIn: budgets.filter(guards).map(({ metadata }) => metadata.namespace ?? ''),
    };
  } catch (error) {
    if (!failedWith(error, 'Forbidden')) throw error;
    return { whyUnknown: 'You may not list pods and PodDisruptionBudgets: ask with a user who may' };
  }
}
