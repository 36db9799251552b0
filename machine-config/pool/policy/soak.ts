import { durationOr } from '../../api/duration.js';
import { timeOf } from '../sentences.js';
import { policyOf, updatedAt, type RolloutFacts } from './rollout-facts.js';
import type { CurrentStage } from './stages.js';

export interface Soak {
  readonly sentence: string;
  /** Epoch milliseconds at which it is over. */
  readonly until: number;
}

/** The time after the node that was updated last. */
function afterNode({ pool, members, now }: RolloutFacts): Soak | undefined {
  const soak = policyOf(pool).soak;
  if (soak === undefined) return undefined;
  const last = members.reduce<{ name: string; at: number } | undefined>((found, node) => {
    const at = updatedAt(node, pool);
    return at === undefined || at <= (found?.at ?? Number.NEGATIVE_INFINITY) ? found : { name: node.name, at };
  }, undefined);
  const until = last === undefined ? now : last.at + durationOr(soak, 0);
  if (until <= now) return undefined;
  return { sentence: `Pool ${pool.name} soaks for ${soak} after ${last?.name ?? ''}, until ${timeOf(until)}`, until };
}

/** The time after the stages before the present one. */
function afterStage({ pool, now }: RolloutFacts, stage: CurrentStage | undefined): Soak | undefined {
  const until = stage?.opensAt ?? now;
  if (stage === undefined || until <= now) return undefined;
  const before = stage.soFar.at(-2)?.stage.name ?? '';
  return {
    sentence: `Pool ${pool.name} soaks after stage ${before}: stage ${stage.stage.name} may begin at ${timeOf(until)}`,
    until,
  };
}

/** Why nothing further starts for the time being, the longer of the two; undefined: nothing soaks. */
export function soakOf(facts: RolloutFacts, stage: CurrentStage | undefined): Soak | undefined {
  const [node, whole] = [afterNode(facts), afterStage(facts, stage)];
  if (node === undefined || whole === undefined) return node ?? whole;
  return node.until > whole.until ? node : whole;
}
