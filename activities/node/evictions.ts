import pMap from 'p-map';
import { isOverdue, isTerminating, ownerName, podName, type DrainPod } from '../../machine-config/drain/drain-pods.js';
import type { Blocker } from '../../machine-config/drain/drain-sentence.js';
import type { DrainVerdict } from '../../machine-config/drain/drain-verdict.js';
import { KINDS } from '../kubernetes/client.js';
import { failedWith } from '../kubernetes/failures.js';
import type { NodeDependencies } from './dependencies.js';
import { rememberVolumes } from './drain-volumes.js';
import type { DrainMemory } from './node-memory.js';

const EVICTIONS_AT_ONCE = 5;
/** A refused eviction is tried again after so long, growing; later if the API server says so. */
const FIRST_RETRY_MS = 5_000;
const LONGEST_RETRY_MS = 30_000;
/** Longer than any honest advice of the API server. */
const LONGEST_ADVISED_RETRY_MS = 300_000;

type Act = DrainVerdict['act'];

/** What was refused of a pod, and when it is worth another try. */
interface Refusal {
  readonly act: Act;
  readonly why: string;
  readonly cause: 'budget' | 'refused';
  readonly budget?: string;
  readonly delayMs: number;
  readonly nextTryAt: number;
}

type Attempt =
  { readonly gone: true } | (Pick<Refusal, 'why' | 'cause' | 'budget'> & { readonly retryAfterMs?: number });

/** The evictions of one slice of a drain: tries again what was refused, each pod at its own pace. */
export class Evictions {
  readonly #deps: NodeDependencies;
  readonly #memory: DrainMemory;
  readonly #moved = new Set<string>();
  readonly #refusals = new Map<string, Refusal>();
  readonly #lookedAt = new Set<string>();

  constructor(deps: NodeDependencies, memory: DrainMemory) {
    this.#deps = deps;
    this.#memory = memory;
  }

  /** How many pods were told to go. */
  get count(): number {
    return this.#moved.size;
  }

  /** Asks those to go that are not on their way yet and whose next try is due. Returns those that went by force. */
  async move({ act, move }: DrainVerdict, signal: AbortSignal): Promise<DrainPod[]> {
    const due = move.filter((pod) => !isTerminating(pod) && this.#isDue(pod, act));
    const forced: DrainPod[] = [];
    await pMap(
      due,
      async (pod) => {
        // A cancelled drain must not go on evicting; the loop's next sleep ends it.
        if (signal.aborted) return;
        const isGone = await this.#attempt(pod, act);
        if (isGone && act === 'delete') forced.push(pod);
      },
      { concurrency: EVICTIONS_AT_ONCE },
    );
    return forced;
  }

  /** Why each of the pods that are left is still there. */
  blockers({ left, awaited, move }: DrainVerdict, waitWords: string): Blocker[] {
    const now = this.#deps.now().getTime();
    return left.map((pod) => {
      const name = podName(pod);
      const refusal = this.#refusals.get(name);
      if (isTerminating(pod)) return { pod: name, ...ending(pod, now) };
      if (awaited.includes(pod)) return { pod: name, cause: 'awaited', why: waitWords };
      if (!move.includes(pod)) return { pod: name, cause: 'going', why: 'is evicted last, since Temporal runs in it' };
      if (refusal === undefined) return { pod: name, cause: 'going', why: 'is about to be evicted' };
      const { why, cause, budget } = refusal;
      return { pod: name, why, cause, ...(budget === undefined ? {} : { budget }) };
    });
  }

  #isDue(pod: DrainPod, act: Act): boolean {
    const refusal = this.#refusals.get(podName(pod));
    return refusal?.act !== act || refusal.nextTryAt <= this.#deps.now().getTime();
  }

  /** True: it is told to go. */
  async #attempt(pod: DrainPod, act: Act): Promise<boolean> {
    await this.#look(pod);
    const answer = await (act === 'delete' ? this.#delete(pod) : this.#evict(pod));
    const name = podName(pod);
    if ('gone' in answer) {
      this.#refusals.delete(name);
      this.#moved.add(pod.metadata.uid ?? name);
      const owner = ownerName(pod);
      if (owner !== undefined) this.#memory.owners.add(owner);
      return true;
    }
    const before = this.#refusals.get(name);
    const grown = before?.act === act ? Math.min(before.delayMs * 2, LONGEST_RETRY_MS) : FIRST_RETRY_MS;
    const advised = Math.min(answer.retryAfterMs ?? 0, LONGEST_ADVISED_RETRY_MS);
    const delayMs = Math.max(grown, advised);
    const { why, cause, budget } = answer;
    const nextTryAt = this.#deps.now().getTime() + delayMs;
    this.#refusals.set(name, {
      act,
      why,
      cause,
      delayMs: grown,
      nextTryAt,
      ...(budget === undefined ? {} : { budget }),
    });
    return false;
  }

  /** What has to be known of a pod later, while it is still there. */
  async #look(pod: DrainPod): Promise<void> {
    const key = pod.metadata.uid ?? podName(pod);
    if (this.#lookedAt.has(key)) return;
    await rememberVolumes([pod], this.#memory, this.#deps);
    this.#lookedAt.add(key);
  }

  async #evict(pod: DrainPod): Promise<Attempt> {
    try {
      const answer = await this.#deps.client.evict(addressOf(pod));
      if (answer.outcome !== 'refused') return { gone: true };
      const { why, budget, retryAfterSeconds } = answer;
      const cause = why.includes('PDB') || why.includes('PodDisruptionBudget') ? 'budget' : 'refused';
      const advice = retryAfterSeconds === undefined ? {} : { retryAfterMs: retryAfterSeconds * 1000 };
      return { why, cause, ...(budget === undefined ? {} : { budget }), ...advice };
    } catch (error) {
      return { why: messageOf(error), cause: 'refused' };
    }
  }

  async #delete(pod: DrainPod): Promise<Attempt> {
    try {
      await this.#deps.client.delete(KINDS.pod, addressOf(pod));
      return { gone: true };
    } catch (error) {
      // Gone, or another pod has its name by now.
      if (failedWith(error, 'NotFound', 'Conflict')) return { gone: true };
      return { why: messageOf(error), cause: 'refused' };
    }
  }
}

function addressOf({ metadata: { name, namespace = 'default', uid } }: DrainPod) {
  return { name, namespace, ...(uid === undefined ? {} : { uid }) };
}

function ending(pod: DrainPod, now: number): Pick<Blocker, 'why' | 'cause'> {
  const { deletionTimestamp = '', finalizers = [] } = pod.metadata;
  if (!isOverdue(pod, now)) return { cause: 'going', why: `is being deleted, until ${deletionTimestamp}` };
  const held = finalizers.length === 0 ? 'its kubelet has not ended it' : `finalizer ${finalizers.join(', ')} holds it`;
  return { cause: 'stuck', why: `should have been gone at ${deletionTimestamp}, and ${held}` };
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
