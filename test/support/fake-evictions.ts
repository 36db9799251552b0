import type { EvictedPod } from '../../activities/kubernetes/eviction.js';
import type { Refusal } from '../../activities/kubernetes/failures.js';
import { matchesLabels, type LabelSelector, type StoredObject } from './object-rules.js';

interface BudgetSpec {
  readonly selector?: LabelSelector;
  readonly minAvailable?: number | string;
  readonly maxUnavailable?: number | string;
}

const condition = (pod: StoredObject, type: string): string | undefined =>
  (pod.status?.conditions as { type: string; status: string }[] | undefined)?.find((one) => one.type === type)?.status;

const isHealthy = (pod: StoredObject): boolean =>
  pod.metadata.deletionTimestamp === undefined && condition(pod, 'Ready') === 'True';

const phaseOf = (pod: StoredObject): unknown => pod.status?.phase;

/** Percentages round up, of minAvailable and of maxUnavailable alike. */
function absolute(value: number | string, of: number): number {
  return typeof value === 'number' ? value : Math.ceil((Number.parseFloat(value) / 100) * of);
}

/** The fake counts the pods that exist, where the disruption controller asks their controllers how many there should be. */
function requiredHealthy(spec: BudgetSpec, expected: number): number {
  if (spec.minAvailable !== undefined) return absolute(spec.minAvailable, expected);
  return spec.maxUnavailable === undefined ? 0 : expected - absolute(spec.maxUnavailable, expected);
}

/** What the eviction subresource answers; status 201 means that the pod is to be deleted. */
export function answerEviction(
  wanted: EvictedPod,
  pod: StoredObject | undefined,
  pods: readonly StoredObject[],
  budgets: readonly StoredObject[],
): Refusal {
  if (pod === undefined) {
    return { status: 404, body: { reason: 'NotFound', message: `pods "${wanted.name}" not found` } };
  }
  if (wanted.uid !== undefined && wanted.uid !== pod.metadata.uid) {
    const message = `the UID in the precondition (${wanted.uid}) does not match the UID in record (${pod.metadata.uid})`;
    return { status: 409, body: { reason: 'Conflict', message } };
  }
  if (['Pending', 'Succeeded', 'Failed'].includes(String(phaseOf(pod))) || pod.metadata.deletionTimestamp) {
    return { status: 201, body: {} };
  }
  const inNamespace = (object: StoredObject): boolean => object.metadata.namespace === pod.metadata.namespace;
  const covering = budgets.filter(
    (budget) => inNamespace(budget) && matchesLabels((budget.spec as BudgetSpec).selector ?? {}, pod.metadata.labels),
  );
  if (covering.length > 1) {
    const message = 'This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.';
    return { status: 500, body: { message } };
  }
  const [budget] = covering;
  return budget === undefined ? { status: 201, body: {} } : askBudget(budget, pod, pods.filter(inNamespace));
}

function askBudget(budget: StoredObject, pod: StoredObject, pods: readonly StoredObject[]): Refusal {
  const spec = budget.spec as BudgetSpec;
  const selected = pods.filter(
    (other) =>
      matchesLabels(spec.selector ?? {}, other.metadata.labels) &&
      !['Succeeded', 'Failed'].includes(String(phaseOf(other))),
  );
  const healthy = selected.filter(isHealthy).length;
  const required = requiredHealthy(spec, selected.length);
  const lost = isHealthy(pod) ? 1 : 0;
  if (healthy - lost >= required) return { status: 201, body: {} };
  const { name } = budget.metadata;
  return {
    status: 429,
    body: {
      reason: 'TooManyRequests',
      message: "Cannot evict pod as it would violate the pod's disruption budget.",
      details: {
        causes: [
          {
            reason: 'DisruptionBudget',
            message: `The disruption budget ${name} needs ${required} healthy pods and has ${healthy} currently`,
          },
        ],
      },
    },
  };
}
