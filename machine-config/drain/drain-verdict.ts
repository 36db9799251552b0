import { clip } from '../pool/sentences.js';
import { inWords } from './duration-words.js';
import { isOverdue, podName, sortPods, type DrainPod, type OwnPod, type SortedPods } from './drain-pods.js';
import type { DrainPolicy } from './drain-policy.js';

export interface DrainSituation {
  readonly policy: DrainPolicy;
  /** All pods that are bound to the node. */
  readonly pods: readonly DrainPod[];
  readonly ownPod?: OwnPod | undefined;
  /** Epoch milliseconds at which the drain began. */
  readonly since: number;
  /** Epoch milliseconds. */
  readonly now: number;
}

export interface DrainVerdict {
  /** Pods that shall go now: `evict` within their budgets, `delete` past them. */
  readonly act: 'evict' | 'delete';
  readonly move: readonly DrainPod[];
  /** All that the drain still waits for, those to move included. */
  readonly left: readonly DrainPod[];
  /** Of those left, the ones that nobody evicts. */
  readonly awaited: readonly DrainPod[];
  /** Pods that are as good as gone, and are not waited for any longer. */
  readonly givenUp: readonly DrainPod[];
  /** The node is to be given back: why, and when it is tried again. */
  readonly giveBack?: { readonly reason: string; readonly retryAfterSeconds: number };
}

/**
 * What a drain does next, by the pool's policy. Past the limit of `drain.timeout` it waits on, gives the node back or
 * forces; that is about the pods to be evicted alone, pods to be waited for have a limit of their own. Forced, a pod is
 * deleted with its own grace period, and one that is still there a minute after that is not waited for: its kubelet,
 * which is this node's, has ended its containers, and what holds the object is elsewhere.
 */
export function drainVerdict(situation: DrainSituation): DrainVerdict {
  const { policy, pods, ownPod, since, now } = situation;
  const waited = now - since;
  const { waitFor } = policy;
  const awaitedTooLong = waitFor?.limitMs !== undefined && waited >= waitFor.limitMs;
  const evictAwaited = awaitedTooLong && waitFor.onLimit === 'Evict';
  const isLate = waited >= policy.timeoutMs;
  const isForced = isLate && policy.onTimeout === 'Force';
  const all = sortPods(pods, { policy, ownPod, evictAwaited });
  const givenUp = isForced ? [...all.evict, ...all.last].filter((pod) => isOverdue(pod, now)) : [];
  const sorted = without(all, givenUp);
  const toEvict = [...sorted.evict, ...sorted.last];
  const reason = whyGiveBack({ situation, sorted, toEvict, isLate, awaitedTooLong });
  return {
    act: isForced ? 'delete' : 'evict',
    move: sorted.evict.length + sorted.awaited.length === 0 ? sorted.last : sorted.evict,
    left: [...toEvict, ...sorted.awaited],
    awaited: sorted.awaited,
    givenUp,
    ...(reason === undefined ? {} : { giveBack: { reason, retryAfterSeconds: Math.ceil(policy.retryAfterMs / 1000) } }),
  };
}

interface Limits {
  readonly situation: DrainSituation;
  readonly sorted: SortedPods;
  readonly toEvict: readonly DrainPod[];
  readonly isLate: boolean;
  readonly awaitedTooLong: boolean;
}

const LONGEST_REASON = 500;

function whyGiveBack({ situation, sorted, toEvict, isLate, awaitedTooLong }: Limits): string | undefined {
  const { timeoutMs, onTimeout, waitFor } = situation.policy;
  const [held] = toEvict;
  if (isLate && onTimeout === 'GiveBack' && held !== undefined) {
    const what = `${podName(held)}${andMore(toEvict)} not gone after ${inWords(timeoutMs)} (spec.rollout.drain.timeout)`;
    return clip(`pod ${what}`, LONGEST_REASON);
  }
  const [running] = sorted.awaited;
  if (awaitedTooLong && running !== undefined) {
    const limit = inWords(waitFor?.limitMs ?? 0);
    const what = `${podName(running)}${andMore(sorted.awaited)} not ended after ${limit}`;
    return clip(`pod ${what} (spec.rollout.waitForPods.limit)`, LONGEST_REASON);
  }
  return undefined;
}

function andMore(pods: readonly DrainPod[]): string {
  return pods.length > 1 ? ` and ${pods.length - 1} more` : '';
}

function without({ evict, awaited, last }: SortedPods, gone: readonly DrainPod[]): SortedPods {
  const isLeft = (pod: DrainPod) => !gone.includes(pod);
  return { awaited, evict: evict.filter(isLeft), last: last.filter(isLeft) };
}
