import { nameSome } from '../../machine-config/pool/sentences.js';
import { ok, problem, unknown, warning, type DoctorFinding } from './findings.js';

export interface InstallationFacts {
  /** Whether the API server serves ValidatingAdmissionPolicy of v1. */
  readonly servesPolicies: boolean;
  /** The user whom the policies take for the control worker; undefined: there are no policies. */
  readonly controlUser: string | undefined;
  readonly hasWebhook: boolean;
  readonly pools: readonly string[];
}

/** Whether the API, its policies and the webhook are there. */
export function examineInstallation(facts: InstallationFacts): DoctorFinding[] {
  const { servesPolicies, controlUser, hasWebhook, pools } = facts;
  return [
    servesPolicies
      ? ok('Kubernetes', 'The API server serves what Drydock needs')
      : problem(
          'Kubernetes',
          'The API server serves no ValidatingAdmissionPolicy v1: Kubernetes 1.32 or newer is needed',
        ),
    controlUser === undefined
      ? problem('admission policies', 'There are none, so any node may choose its own config: run drydock install')
      : ok('admission policies', `They take ${controlUser} for the control worker`),
    hasWebhook
      ? ok('webhook', 'Wrong objects are refused as they are applied')
      : warning(
          'webhook',
          'There is none, so most wrong objects are only found when a pool is rendered: see "Refused at once" in docs/operating.md',
        ),
    pools.length === 0
      ? problem('pools', 'There is no MachineConfigPool: run drydock install')
      : ok('pools', `There are ${nameSome([...pools])}`),
  ];
}

export interface EngineFacts {
  /** Pools whose workflow does not run. */
  readonly unmanaged: readonly string[];
  /** Why Temporal did not tell. */
  readonly problem: string | undefined;
}

/** Whether Temporal answers and looks after every pool. */
export function examineEngine({ unmanaged, problem: why }: EngineFacts): DoctorFinding[] {
  if (why !== undefined) return [problem('Temporal', `${why}: see that it runs, and that TEMPORAL_ADDRESS names it`)];
  if (unmanaged.length === 0) return [ok('Temporal', 'It answers, and looks after every pool')];
  const sentence = `Nobody looks after ${nameSome([...unmanaged])}: see that a control worker runs; it starts them within five minutes`;
  return [problem('Temporal', sentence)];
}

/** A pod of a Temporal server on the cluster that it rolls. */
export interface TemporalPod {
  readonly namespace: string;
  readonly name: string;
  readonly node: string;
}

export interface TemporalPods {
  readonly pods: readonly TemporalPod[];
  /** Namespaces of PodDisruptionBudgets that are for Temporal's pods. */
  readonly budgetIn: readonly string[];
}

/** A Temporal that runs on the nodes it updates has to outlive the drain of any one of them. */
export function examineTemporalPods(facts: TemporalPods | { readonly whyUnknown: string }): DoctorFinding[] {
  const check = 'Temporal on this cluster';
  if ('whyUnknown' in facts) return [unknown(check, facts.whyUnknown)];
  const { pods, budgetIn } = facts;
  if (pods.length === 0) return [ok(check, 'It does not run on the nodes that it updates')];
  const advice = 'give it replicas on several nodes, a PodDisruptionBudget, and a database elsewhere';
  if (new Set(pods.map(({ node }) => node)).size < 2) {
    const where = pods[0] === undefined ? '' : ` (${pods[0].namespace}/${pods[0].name} on ${pods[0].node})`;
    return [
      warning(
        check,
        `It runs on one node of the cluster that it updates${where} and is away while that is drained: ${advice}`,
      ),
    ];
  }
  const bare = [...new Set(pods.map(({ namespace }) => namespace))].filter((name) => !budgetIn.includes(name));
  if (bare.length === 0) return [ok(check, 'It runs on several nodes and has a PodDisruptionBudget')];
  return [
    warning(
      check,
      `Its pods in ${nameSome(bare)} have no PodDisruptionBudget, so a drain may take all of them at once: ${advice}`,
    ),
  ];
}
