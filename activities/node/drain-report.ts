import { DRYDOCK_ANNOTATIONS } from '../../machine-config/api/flavour.js';
import { blockedSentence, isBlocking, type Blocker } from '../../machine-config/drain/drain-sentence.js';
import type { DrainPolicy } from '../../machine-config/drain/drain-policy.js';
import type { TargetStep } from '../../workflows/contract/activities.js';
import type { NodeDependencies } from './dependencies.js';
import type { DrainMemory } from './node-memory.js';
import { changeOwnNode, type OwnNode } from './own-node.js';

/** What blocks for less is nobody's concern, and the Node is not written more often than that. */
const TELL_AFTER_MS = 60_000;
/** Not more than one Event of a drain that waits in so long. */
const EVENT_EVERY_MS = 10 * 60_000;
const MOST_NAMES = 10;
const MOST_OWNERS = 100;

export interface DrainNews {
  /** In the order of `byWeight`. */
  readonly blockers: readonly Blocker[];
  readonly policy: DrainPolicy;
  /** The end of a slice, at which it is told however short it has been. */
  readonly isEnd: boolean;
}

/** Tells on the Node, by Events and by metrics what a drain waits for. */
export class DrainReport {
  readonly #step: TargetStep;
  readonly #deps: NodeDependencies;
  readonly #memory: DrainMemory;
  #writtenAt: number | undefined;

  constructor(step: TargetStep, deps: NodeDependencies, memory: DrainMemory) {
    this.#step = step;
    this.#deps = deps;
    this.#memory = memory;
  }

  /** Returns the Node as it is after what was written, if anything was. */
  async tell(own: OwnNode, news: DrainNews): Promise<OwnNode> {
    const now = this.#deps.now().getTime();
    const blocking = news.blockers.filter(isBlocking);
    const seconds = Math.max(0, Math.round((now - this.#memory.since) / 1000));
    this.#deps.metrics?.drain({ blocked: blocking.length, seconds });
    if (blocking.length === 0) delete this.#memory.blockedSince;
    else this.#memory.blockedSince ??= now;
    if (!this.#isTimeToWrite(news, now)) return own;
    const text = blocking.length === 0 ? null : this.#blockedText(blocking);
    const written = await this.#write(own, text, news.policy);
    if (text !== null) this.#tellEvent(blocking, now);
    return written;
  }

  /** Nothing is left to wait for. */
  async finish(own: OwnNode, policy: DrainPolicy): Promise<OwnNode> {
    this.#deps.metrics?.drain({ blocked: 0, seconds: 0 });
    return this.#write(own, null, policy);
  }

  /** The drain took too long, and that stands on the Node until it is cordoned again. */
  async giveBack(own: OwnNode, reason: string, news: Pick<DrainNews, 'blockers' | 'policy'>): Promise<void> {
    const blocking = news.blockers.filter(isBlocking);
    await this.#write(own, textOf(reason, blocking, { givenBack: true }), news.policy);
    this.#deps.events?.warning('DrainGivenUp', `${reason}; it is given back and tried again later`);
  }

  #isTimeToWrite({ isEnd }: DrainNews, now: number): boolean {
    if (isEnd) return true;
    const { blockedSince } = this.#memory;
    const isLong = blockedSince !== undefined && now - blockedSince >= TELL_AFTER_MS;
    return isLong && now - (this.#writtenAt ?? 0) >= TELL_AFTER_MS;
  }

  #blockedText(blocking: readonly Blocker[]): string {
    return textOf(blockedSentence(this.#deps.node, this.#memory.since, blocking), blocking);
  }

  /** One write for all that is new; none if nothing is. */
  async #write(own: OwnNode, blocked: string | null, policy: DrainPolicy): Promise<OwnNode> {
    const key = DRYDOCK_ANNOTATIONS.drainBlocked;
    const decide = ({ facts }: OwnNode) => {
      const said = facts.annotations?.[key] ?? null;
      const owners = policy.remembersOwners ? ownersText(facts.evictedOwners ?? [], this.#memory.owners) : undefined;
      const annotations = {
        ...(said === blocked ? {} : { [key]: blocked }),
        ...(owners === undefined ? {} : { [DRYDOCK_ANNOTATIONS.evictedOwners]: owners }),
      };
      return { result: undefined, patch: Object.keys(annotations).length === 0 ? undefined : { annotations } };
    };
    // Asked first on what is known, since in the ordinary case there is nothing to write and so nothing to read.
    if (decide(own).patch === undefined) return own;
    this.#writtenAt = this.#deps.now().getTime();
    return (await changeOwnNode(this.#step, this.#deps, decide)).own;
  }

  #tellEvent(blocking: readonly Blocker[], now: number): void {
    const { told, toldAt = 0, since } = this.#memory;
    const sentence = blockedSentence(this.#deps.node, since, blocking);
    if (sentence === told || now - toldAt < EVENT_EVERY_MS) return;
    this.#memory.told = sentence;
    this.#memory.toldAt = now;
    this.#deps.events?.warning('DrainBlocked', sentence);
  }
}

function textOf(sentence: string, blocking: readonly Blocker[], more: { givenBack?: true } = {}): string {
  const pods = blocking.map(({ pod }) => pod).slice(0, MOST_NAMES);
  return JSON.stringify({ sentence, pods, budgets: budgetsOf(blocking).slice(0, MOST_NAMES), ...more });
}

export function budgetsOf(blockers: readonly Blocker[]): string[] {
  return [...new Set(blockers.flatMap(({ budget }) => (budget === undefined ? [] : [budget])))];
}

/** Undefined: nothing is new. */
function ownersText(known: readonly string[], evicted: ReadonlySet<string>): string | undefined {
  const all = [...new Set([...known, ...evicted])].slice(0, MOST_OWNERS);
  return all.length === known.length ? undefined : JSON.stringify(all);
}
