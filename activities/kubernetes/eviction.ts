import type { EvictionResult } from './client.js';
import { refusedCall, type Refusal } from './failures.js';

export interface EvictedPod {
  readonly name: string;
  readonly namespace: string;
  readonly uid?: string;
}

/** The body of POST pods/NAME/eviction; the uid keeps it from evicting a new pod of the same name. */
export function evictionBody(pod: EvictedPod): object {
  return {
    apiVersion: 'policy/v1',
    kind: 'Eviction',
    metadata: { name: pod.name, namespace: pod.namespace },
    ...(pod.uid === undefined ? {} : { deleteOptions: { preconditions: { uid: pod.uid } } }),
  };
}

interface RefusedBecause {
  readonly why: string;
  readonly budget?: string;
}

/** The budget's name is only in prose: `The disruption budget NAME needs …`, `The disruption budget NAME is still being …`. */
function budgetRefusal(pod: EvictedPod, causes: readonly string[]): RefusedBecause | undefined {
  for (const cause of causes) {
    const match = /disruption budget (\S+) (.*)/.exec(cause);
    if (match === null) continue;
    const [, name = '', rest = ''] = match;
    const budget = `${pod.namespace}/${name}`;
    const is = rest.includes('still being processed') ? 'is not processed yet' : 'allows 0 disruptions';
    return { why: `PDB ${budget} ${is}`, budget };
  }
  return undefined;
}

function refusalOf(pod: EvictedPod, { status, body }: Refusal): RefusedBecause | undefined {
  const causes = body.details?.causes ?? [];
  if (status === 429) {
    const byBudget = budgetRefusal(
      pod,
      causes.map((cause) => cause.message ?? ''),
    );
    if (byBudget !== undefined) return byBudget;
    // Without a cause only the sentence tells a budget's refusal from an API server that sheds load.
    const isBudgets = /disruption budget/.test(body.message ?? '');
    return isBudgets ? { why: 'a PodDisruptionBudget allows 0 disruptions' } : undefined;
  }
  if (status === 500 && /more than one PodDisruptionBudget/.test(body.message ?? '')) {
    const name = `${pod.namespace}/${pod.name}`;
    return { why: `more than one PodDisruptionBudget selects pod ${name}, which eviction does not support` };
  }
  if (status === 403 && causes.some((cause) => cause.reason === 'NamespaceTerminating')) {
    return { why: `namespace ${pod.namespace} is being deleted` };
  }
  return undefined;
}

/**
 * What an answer to an eviction means. Throws the failure of every answer that is neither an eviction, nor a missing
 * pod, nor a budget's refusal.
 */
export function evictionResult(pod: EvictedPod, answer: Refusal): EvictionResult {
  if (answer.status < 300) return { outcome: 'evicted' };
  if (answer.status === 404) return { outcome: 'gone' };
  // The pod of that uid is gone; another one has its name.
  if (answer.status === 409 && /UID/.test(answer.body.message ?? '')) return { outcome: 'gone' };
  const refused = refusalOf(pod, answer);
  if (refused === undefined) throw refusedCall({ verb: 'evict', kind: 'Pod', ...pod }, answer);
  const retryAfterSeconds = answer.retryAfterSeconds;
  return { outcome: 'refused', ...refused, ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }) };
}
