import type { OsDemands } from '../capabilities.js';
import { standing, type Standing } from '../candidates.js';
import type { ClusterFacts, NodeFacts, PoolFacts } from '../facts.js';
import { limitOf } from '../max-unavailable.js';
import { chooseStarts, type Choice } from './choice.js';
import type { ControlPlaneFacts, RolloutFacts } from './rollout-facts.js';
import { currentStage, type CurrentStage } from './stages.js';
import { halted, notYet, stopped, type Closed } from './verdict.js';

/** What a turn of a pool is decided on. */
export interface OutlookFacts {
  readonly pool: PoolFacts;
  /** What the pool's target asks of the operating system; absent: nothing. */
  readonly demands?: OsDemands | undefined;
  /** All members of the pool, managed or not, in any order. */
  readonly members: readonly NodeFacts[];
  /** Names of the nodes whose update is running. */
  readonly inFlight: readonly string[];
  /** Those in flight whose Node object is gone, or has another uid than the update is for. */
  readonly gone: readonly string[];
  /** Node name to the epoch milliseconds before which it shall not be started. */
  readonly resting: Readonly<Record<string, number>>;
  /** What holds for all pools, and how the others stand; absent: not known. */
  readonly cluster?: ClusterFacts | undefined;
  /** What the control plane says, if the pool holds a part of it; absent: nothing. */
  readonly controlPlane?: ControlPlaneFacts | undefined;
  /** Epoch milliseconds. */
  readonly now: number;
}

export interface MemberStanding {
  readonly node: NodeFacts;
  readonly standing: Standing;
}

/** What may happen in a pool, as far as it can be told without asking its gates. */
export interface Outlook {
  readonly rollout: RolloutFacts;
  readonly standings: readonly MemberStanding[];
  readonly stage: CurrentStage | undefined;
  /** Nothing at all starts, but what is out of service already. */
  readonly stop: Closed | undefined;
  /** Nothing begins for the time being. */
  readonly wait: Closed | undefined;
  readonly choice: Choice;
}

/** In flight, without those whose machine no longer exists: they hold no slot. */
export function runningIn({ inFlight, gone }: Pick<OutlookFacts, 'inFlight' | 'gone'>): string[] {
  const lost = new Set(gone);
  return inFlight.filter((name) => !lost.has(name));
}

/** Stopped by people, or by what went wrong; the first that is worth acting on. */
function whyStopped(rollout: RolloutFacts): Closed | undefined {
  return stopped(rollout) ?? (rollout.pool.paused ? undefined : halted(rollout));
}

/** Looks at a pool that has a target. `passed`: nodes that have just passed the gates after a node. */
export function outlook(facts: OutlookFacts, target: string, passed: ReadonlySet<string>): Outlook {
  const { pool, members, resting, now, demands, cluster, controlPlane } = facts;
  const limit = limitOf(pool, members);
  const running = new Set(runningIn(facts));
  const rollout: RolloutFacts = { pool, target, limit, members, running, cluster, controlPlane, now };
  const context = { target, demands, inFlight: new Set(facts.inFlight), resting, now };
  const standings = members.map((node) => ({ node, standing: standing(node, context) }));
  const stop = whyStopped(rollout);
  const stage = currentStage(rollout);
  const wait = notYet(rollout, stage);
  // Stopped, a pool has no slots to give, and what has begun is still brought to its end.
  const closed = stop !== undefined || pool.paused || !limit.ok;
  const choice = chooseStarts(
    { ...rollout, passed, closed },
    { standings, stage, mayBegin: !closed && wait === undefined, givenUp: stop?.givenUp ?? new Set() },
  );
  return { rollout, standings, stage, stop, wait, choice };
}
