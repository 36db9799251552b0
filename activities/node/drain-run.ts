import { mustMove, podName, type DrainPod } from '../../machine-config/drain/drain-pods.js';
import { drainPolicy } from '../../machine-config/drain/drain-policy.js';
import { blockedSentence, byWeight, type Blocker } from '../../machine-config/drain/drain-sentence.js';
import { drainVerdict, type DrainVerdict } from '../../machine-config/drain/drain-verdict.js';
import { inWords } from '../../machine-config/drain/duration-words.js';
import { givesBackAt } from '../../machine-config/pool/policy/windows.js';
import { countOf, nameSome } from '../../machine-config/pool/sentences.js';
import type { DrainInput, DrainResult } from '../../workflows/contract/activities.js';
import { ensureCordoned } from './cordon.js';
import type { NodeDependencies } from './dependencies.js';
import { budgetsOf, DrainReport } from './drain-report.js';
import { volumeBlockers } from './drain-volumes.js';
import { Evictions } from './evictions.js';
import { newDrainMemory, type DrainMemory } from './node-memory.js';
import { ownDrainPolicy, type OwnPolicy } from './own-pool.js';
import { grantedNode, recentlyGrantedNode, type OwnNode } from './own-node.js';
import { podsHere } from './pods.js';

/** So often the own Node is read while it is drained: is it still granted, is it still cordoned? */
const NODE_EVERY_MS = 10_000;
/** So often the pool is read: a policy that was changed holds for a drain that has begun. */
const POLICY_EVERY_MS = 60_000;
/** A volume gets at least so long to be given back after its pod. */
const VOLUME_GRACE_MS = 120_000;
/** A slice costs some ten events: whatever the clocks say, there are not more than two a minute. */
const SHORTEST_SLICE_MS = 30_000;
const MOST_BLOCKERS = 30;

const DRAINED: DrainResult = { drained: true, evicted: 0, remaining: 0, blockers: [] };

/** One slice of a drain, look by look. */
export class DrainRun {
  readonly #input: DrainInput;
  readonly #deps: NodeDependencies;
  readonly #memory: DrainMemory;
  readonly #evictions: Evictions;
  readonly #report: DrainReport;
  #own: OwnNode;
  #ownAt: number;
  #policy: OwnPolicy = { policy: drainPolicy(undefined) };
  #policyAt = -Infinity;
  #remaining = 0;

  private constructor(input: DrainInput, deps: NodeDependencies, own: OwnNode) {
    const now = deps.now().getTime();
    const since = own.facts.drainSince ?? now;
    this.#input = input;
    this.#deps = deps;
    this.#own = own;
    this.#ownAt = now;
    this.#memory = deps.memory?.drain(since) ?? newDrainMemory(since);
    this.#evictions = new Evictions(deps, this.#memory);
    this.#report = new DrainReport(input, deps, this.#memory);
  }

  /** Throws NotGranted, and what reading the Node throws. */
  static async begin(input: DrainInput, deps: NodeDependencies): Promise<DrainRun> {
    return new DrainRun(input, deps, await cordonedNode(input, await recentlyGrantedNode(input, deps), deps));
  }

  get evicted(): number {
    return this.#evictions.count;
  }

  get remaining(): number {
    return this.#remaining;
  }

  /**
   * When the slice has to end that began at `from` and ends at `to` at the latest: where the window of the pool closes
   * and drained nodes are given back, so that the control worker is asked then. Whether they are is for that to say, by
   * its own clock; one of this host that goes ahead only makes the slices short.
   */
  endOfSlice(from: number, to: number): number {
    const { pool } = this.#policy;
    return (pool && givesBackAt(pool, from + SHORTEST_SLICE_MS, to)) ?? to;
  }

  /** Looks at the pods and does what is due; undefined: the slice goes on. */
  async look(isEnd: boolean, signal: AbortSignal): Promise<DrainResult | undefined> {
    if (this.#own.facts.noDrain === this.#input.target) return DRAINED;
    const pods = await podsHere(this.#deps);
    // A node that has nothing to move needs no policy; before anything is moved, or waited for, it is known.
    if (this.#memory.volumes.size > 0 || pods.some((pod) => mustMove(pod, this.#deps.ownPod))) await this.#refresh();
    const verdict = this.#decide(pods);
    this.#remaining = verdict.left.length;
    if (verdict.left.length === 0) return this.#awaitVolumes(verdict, isEnd);
    delete this.#memory.emptySince;
    if (verdict.giveBack !== undefined) return this.#giveBack(verdict, verdict.giveBack);
    const forced = await this.#evictions.move(verdict, signal);
    if (forced.length > 0) this.#tellForced(forced);
    const blockers = this.#blockers(verdict);
    this.#own = await this.#report.tell(this.#own, { blockers, policy: this.#policy.policy, isEnd });
    return isEnd ? this.#result(verdict, blockers) : undefined;
  }

  #decide(pods: readonly DrainPod[]): DrainVerdict {
    const { ownPod, now } = this.#deps;
    const { since } = this.#memory;
    return drainVerdict({ policy: this.#policy.policy, pods, ownPod, since, now: now().getTime() });
  }

  /** What the Node and the pool say by now, not more often than that matters. */
  async #refresh(): Promise<void> {
    const now = this.#deps.now().getTime();
    if (now - this.#ownAt >= NODE_EVERY_MS) {
      this.#own = await cordonedNode(this.#input, await grantedNode(this.#input, this.#deps), this.#deps);
      this.#ownAt = now;
    }
    if (now - this.#policyAt >= POLICY_EVERY_MS) {
      this.#policy = await ownDrainPolicy(this.#input.target, this.#deps);
      this.#policyAt = now;
    }
  }

  /** Nothing is left to move; the volumes of what was moved may still be at work. */
  async #awaitVolumes(verdict: DrainVerdict, isEnd: boolean): Promise<DrainResult | undefined> {
    const now = this.#deps.now().getTime();
    this.#memory.emptySince ??= now;
    const blockers = await this.#volumesInUse();
    const limit = Math.max(
      this.#memory.since + this.#policy.policy.timeoutMs,
      this.#memory.emptySince + VOLUME_GRACE_MS,
    );
    if (blockers.length > 0 && now < limit) {
      this.#own = await this.#report.tell(this.#own, { blockers, policy: this.#policy.policy, isEnd });
      return isEnd ? this.#result(verdict, blockers) : undefined;
    }
    this.#own = await this.#report.finish(this.#own, this.#policy.policy);
    this.#memory.isDone = true;
    const left = blockers.map(({ pod, why }) => `${why} (pod ${pod}) and was not waited for any longer`);
    return { ...DRAINED, evicted: this.evicted, ...this.#warnings(verdict, left) };
  }

  async #volumesInUse(): Promise<Blocker[]> {
    if (this.#memory.volumes.size === 0) return [];
    this.#own = await grantedNode(this.#input, this.#deps);
    this.#ownAt = this.#deps.now().getTime();
    return volumeBlockers(this.#memory, this.#own.volumesInUse ?? []);
  }

  async #giveBack(verdict: DrainVerdict, giveBack: NonNullable<DrainVerdict['giveBack']>): Promise<DrainResult> {
    const blockers = this.#blockers(verdict);
    const reason = `drain of ${this.#deps.node}: ${giveBack.reason}`;
    await this.#report.giveBack(this.#own, reason, { blockers, policy: this.#policy.policy });
    return { ...this.#result(verdict, blockers), giveBack: { ...giveBack, reason } };
  }

  #tellForced(forced: readonly DrainPod[]): void {
    const { policy } = this.#policy;
    const words = `${countOf(forced.length, 'pod')} past their budgets, ${nameSome(forced.map(podName), 10)}`;
    this.#deps.events?.warning('DrainForced', `after ${inWords(policy.timeoutMs)} of its drain deleted ${words}`);
  }

  #blockers(verdict: DrainVerdict): Blocker[] {
    const limitMs = this.#policy.policy.waitFor?.limitMs;
    const most = limitMs === undefined ? '' : `, for at most ${inWords(limitMs)} of the drain`;
    return this.#evictions.blockers(verdict, `is waited for until it ends${most}`).sort(byWeight);
  }

  #result(verdict: DrainVerdict, blockers: readonly Blocker[]): DrainResult {
    const budgets = budgetsOf(blockers);
    return {
      drained: false,
      evicted: this.evicted,
      remaining: verdict.left.length,
      blockers: blockers.slice(0, MOST_BLOCKERS).map(({ pod, why }) => ({ pod, why })),
      sentence: blockedSentence(this.#deps.node, this.#memory.since, blockers),
      ...(budgets.length === 0 ? {} : { budgets: budgets.slice(0, MOST_BLOCKERS) }),
      ...this.#warnings(verdict),
    };
  }

  #warnings({ givenUp }: DrainVerdict, more: readonly string[] = []): Pick<DrainResult, 'warnings'> {
    const { warning } = this.#policy;
    const pods = givenUp.map((pod) => `pod ${podName(pod)} was deleted, does not go and was not waited for any longer`);
    const warnings = [...(warning === undefined ? [] : [warning]), ...pods, ...more].slice(0, MOST_BLOCKERS);
    return warnings.length === 0 ? {} : { warnings };
  }
}

/** The Node, cordoned again if somebody has lifted the cordon meanwhile. */
async function cordonedNode(input: DrainInput, own: OwnNode, deps: NodeDependencies): Promise<OwnNode> {
  const { unschedulable, cordonedFor, drainSince } = own.facts;
  if (unschedulable && drainSince !== undefined) return own;
  const again = await ensureCordoned(input, deps);
  if (!unschedulable && cordonedFor !== undefined) {
    deps.events?.warning('CordonedAgain', `somebody uncordoned it in the middle of its drain for ${input.target}`);
  }
  return again.own;
}
