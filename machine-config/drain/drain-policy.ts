import { durationOr, parseDuration } from '../api/duration.js';
import type { LabelSelector } from '../api/label-selector.js';
import type { Gate, RolloutPolicy } from '../api/rollout-policy.js';

const MINUTE_MS = 60_000;
const DEFAULT_TIMEOUT_MS = 60 * MINUTE_MS;
const DEFAULT_RETRY_AFTER_MS = 15 * MINUTE_MS;

/** What a pool says of the drains of its nodes, with every default filled in. */
export interface DrainPolicy {
  /** Counted from when the drain began; what holds afterwards is `onTimeout`. */
  readonly timeoutMs: number;
  readonly onTimeout: 'Wait' | 'GiveBack' | 'Force';
  /** When a node that was given back is tried again. */
  readonly retryAfterMs: number;
  /** Pods that are not evicted but waited for. */
  readonly waitFor?: AwaitedPods;
  /** A gate asks later what owns the pods that were evicted. */
  readonly remembersOwners: boolean;
}

export interface AwaitedPods {
  readonly selector: LabelSelector;
  /** Absent: everywhere. */
  readonly namespaces?: readonly string[];
  /** Counted from when the drain began; absent: they are waited for without end. */
  readonly limitMs?: number;
  readonly onLimit: 'Evict' | 'GiveBack';
}

/** The policy in `spec.rollout` of a pool; of a pool that says nothing, or that cannot be read, the one that waits. */
export function drainPolicy(rollout: RolloutPolicy | undefined): DrainPolicy {
  const { timeout, onTimeout = 'Wait', retryAfter } = rollout?.drain ?? {};
  const waitFor = awaitedPods(rollout?.waitForPods);
  return {
    timeoutMs: durationOr(timeout, DEFAULT_TIMEOUT_MS),
    onTimeout,
    retryAfterMs: durationOr(retryAfter, DEFAULT_RETRY_AFTER_MS),
    remembersOwners: gatesOf(rollout).some(({ podsRescheduled }) => podsRescheduled !== undefined),
    ...(waitFor === undefined ? {} : { waitFor }),
  };
}

function awaitedPods(pods: RolloutPolicy['waitForPods']): AwaitedPods | undefined {
  if (pods === undefined) return undefined;
  const { selector, namespaces, limit, onLimit = 'GiveBack' } = pods;
  const limitMs = limit === undefined ? undefined : parseDuration(limit);
  return {
    selector,
    onLimit,
    ...(namespaces === undefined ? {} : { namespaces }),
    ...(limitMs === undefined ? {} : { limitMs }),
  };
}

function gatesOf(rollout: RolloutPolicy | undefined): Gate[] {
  const { betweenNodes = [], afterNode = [] } = rollout?.gates ?? {};
  return [...betweenNodes, ...afterNode, ...(rollout?.stages ?? []).flatMap(({ gates = [] }) => gates)];
}
