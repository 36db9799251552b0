import { clip, timeOf } from '../pool/sentences.js';

/** Why a pod, or a volume of one, still holds a drain. */
export type BlockerCause =
  /** A PodDisruptionBudget allows no disruption. */
  | 'budget'
  /** The API server refuses for another reason, or does not answer. */
  | 'refused'
  /** It is waited for, as the pool says. */
  | 'awaited'
  /** It was told to go long ago and is still there. */
  | 'stuck'
  /** It has ended, and its volume is not given back. */
  | 'volume'
  /** It is on its way. */
  | 'going';

export interface Blocker {
  /** `namespace/name` of the pod. */
  readonly pod: string;
  /** For example `PDB shop/cart allows 0 disruptions`. */
  readonly why: string;
  readonly cause: BlockerCause;
  /** `namespace/name` of the PodDisruptionBudget. */
  readonly budget?: string;
}

/** The most worth knowing first. */
const WEIGHT: Readonly<Record<BlockerCause, number>> = {
  budget: 0,
  refused: 1,
  stuck: 2,
  awaited: 3,
  volume: 4,
  going: 5,
};

export function byWeight(one: Blocker, other: Blocker): number {
  return WEIGHT[one.cause] - WEIGHT[other.cause];
}

/** Whether somebody has to know of it: pods that are on their way go by themselves. */
export function isBlocking({ cause }: Blocker): boolean {
  return cause !== 'going';
}

const ADVICE: Readonly<Record<BlockerCause, string>> = {
  budget: 'free the pod or scale up what its budget guards',
  refused: 'delete the pod, or mend what refuses its eviction',
  stuck: 'remove what holds the pod, or delete it by force',
  awaited: 'it is not evicted, as spec.rollout.waitForPods of the pool says',
  volume: 'the drain goes on without it at its limit',
  going: 'it goes by itself',
};

const LONGEST_SENTENCE = 500;

/** What a drain waits for, of blockers in the order of `byWeight`; one sentence, the same as long as nothing changes. */
export function blockedSentence(node: string, since: number, blockers: readonly Blocker[]): string {
  const [first, ...others] = blockers;
  const began = `drain of ${node} since ${timeOf(since)}`;
  if (first === undefined) return `Waiting: ${began}`;
  const more = others.length === 0 ? '' : ` and ${others.length} more`;
  return clip(`Waiting: ${first.why} (pod ${first.pod}${more}); ${began}; ${ADVICE[first.cause]}`, LONGEST_SENTENCE);
}
