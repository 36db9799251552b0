import { Context } from '@temporalio/activity';
import pMap from 'p-map';
import type { DrainBlocker, DrainInput, DrainResult } from '../../workflows/contract/activities.js';
import type { NodeDependencies } from './dependencies.js';
import { grantedNode } from './own-node.js';
import { podName, podsToEvict, type Pod } from './pods.js';

const EVICTIONS_AT_ONCE = 5;
/** A refused eviction is tried again after so long, growing. */
const FIRST_RETRY_MS = 5_000;
const LONGEST_RETRY_MS = 30_000;
/** How often the list of pods is read. */
const POLL_MS = 1_000;
const MOST_BLOCKERS = 30;

/** What one slice remembers of a pod. */
interface PodProgress {
  nextTryAt: number;
  delayMs: number;
  why: string;
}

/**
 * One slice of draining: evicts every pod that has to move and waits until it is gone, as far as the slice lasts. Never
 * goes past a PodDisruptionBudget; a pod keeps its own grace period. Heartbeats with counts; ends at once when cancelled.
 */
export async function drain(input: DrainInput, deps: NodeDependencies): Promise<DrainResult> {
  await grantedNode(input, deps);
  const context = Context.current();
  const slice = new DrainSlice(deps);
  const endsAt = deps.now().getTime() + input.sliceSeconds * 1000;
  for (;;) {
    const pods = await podsToEvict(deps);
    if (pods.length === 0) return slice.result(pods);
    await slice.evictDue(pods, context.cancellationSignal);
    context.heartbeat({ evicted: slice.evicted, remaining: pods.length });
    const left = endsAt - deps.now().getTime();
    if (left <= 0) return slice.result(await podsToEvict(deps));
    await context.sleep(Math.min(POLL_MS, left));
  }
}

class DrainSlice {
  private readonly deps: NodeDependencies;
  private readonly gone = new Set<string>();
  private readonly progress = new Map<string, PodProgress>();

  constructor(deps: NodeDependencies) {
    this.deps = deps;
  }

  get evicted(): number {
    return this.gone.size;
  }

  /** Asks for the eviction of the pods that are not on their way yet and whose next try is due. */
  async evictDue(pods: readonly Pod[], signal: AbortSignal): Promise<void> {
    const now = this.deps.now().getTime();
    const due = pods.filter((pod) => !isEnding(pod) && (this.progress.get(podName(pod))?.nextTryAt ?? 0) <= now);
    await pMap(due, (pod) => this.evict(pod, signal), { concurrency: EVICTIONS_AT_ONCE });
  }

  private async evict(pod: Pod, signal: AbortSignal): Promise<void> {
    // A cancelled drain must not go on evicting; the loop's next sleep ends it.
    if (signal.aborted) return;
    const { name, namespace = 'default', uid } = pod.metadata;
    let why: string;
    let retryAfterMs = 0;
    try {
      const answer = await this.deps.client.evict({ name, namespace, ...(uid === undefined ? {} : { uid }) });
      if (answer.outcome === 'evicted') this.gone.add(uid ?? podName(pod));
      if (answer.outcome !== 'refused') {
        this.progress.delete(podName(pod));
        return;
      }
      why = answer.why;
      retryAfterMs = (answer.retryAfterSeconds ?? 0) * 1000;
    } catch (error) {
      why = error instanceof Error ? error.message : String(error);
    }
    const delayMs = Math.max(FIRST_RETRY_MS, (this.progress.get(podName(pod))?.delayMs ?? 0) * 2, retryAfterMs);
    const bounded = Math.min(delayMs, LONGEST_RETRY_MS);
    this.progress.set(podName(pod), { why, delayMs: bounded, nextTryAt: this.deps.now().getTime() + bounded });
  }

  result(pods: readonly Pod[]): DrainResult {
    const blockers = pods.map<DrainBlocker>((pod) => ({ pod: podName(pod), why: this.whyStays(pod) }));
    // Refusals before pods that are merely on their way.
    blockers.sort((one, other) => Number(this.progress.has(other.pod)) - Number(this.progress.has(one.pod)));
    return {
      drained: pods.length === 0,
      evicted: this.evicted,
      remaining: pods.length,
      blockers: blockers.slice(0, MOST_BLOCKERS),
    };
  }

  private whyStays(pod: Pod): string {
    const refusal = this.progress.get(podName(pod))?.why;
    if (isEnding(pod)) return `is being deleted since ${pod.metadata.deletionTimestamp ?? 'now'}`;
    return refusal ?? 'is about to be evicted';
  }
}

const isEnding = ({ metadata }: Pod): boolean => metadata.deletionTimestamp !== undefined;
