import { clip, MAX_SENTENCE_LENGTH } from '../sentences.js';
import type { PolicyCode } from '../turn.js';
import { whyNotApproved } from './approval.js';
import { haltedSentence, haltOf } from './failures.js';
import type { RolloutFacts } from './rollout-facts.js';
import { whyNotAfterPools, whyNotAnotherPool } from './sequence.js';
import { soakOf } from './soak.js';
import type { CurrentStage } from './stages.js';
import { whyNoWindow } from './windows.js';
import { whyNoZoneLimit } from './zones.js';

/** What keeps every further update of a pool from starting. */
export interface Closed {
  /** Names of the failed nodes that have halted the rollout: they are not tried again, whatever was begun on them. */
  readonly givenUp?: ReadonlySet<string>;
  readonly code: PolicyCode | 'MaxUnavailableInvalid';
  readonly sentence: string;
  /** Epoch milliseconds at which it ends by itself. */
  readonly until?: number | undefined;
}

function closed(code: Closed['code'], sentence: string, until?: number): Closed {
  return { code, sentence: clip(sentence, MAX_SENTENCE_LENGTH), ...(until === undefined ? {} : { until }) };
}

/** Somebody has stopped everything. */
export function stopped({ cluster }: Pick<RolloutFacts, 'cluster'>): Closed | undefined {
  if (cluster?.stop === undefined) return undefined;
  const why = clip(cluster.stop, 300);
  return closed('Stopped', `Everything is stopped (${why}): go on with \`drydock go\``);
}

/**
 * What has gone wrong so far, or would if another node went: the failures of the rollout itself, and the rest of the
 * control plane.
 */
export function halted(facts: RolloutFacts): Closed | undefined {
  const { pool, members, now, limit, controlPlane } = facts;
  const halt = haltOf(pool, members, now, limit);
  if (halt !== undefined) {
    const givenUp = new Set(halt.failed.map(({ node }) => node.name));
    return { ...closed('Halted', haltedSentence(pool, halt)), givenUp };
  }
  return controlPlane?.obstacle === undefined ? undefined : closed('ControlPlane', controlPlane.obstacle);
}

/**
 * What the policy of the pool waits for before a further update starts, the one most worth acting on first; undefined:
 * nothing, as far as it can be told without asking its gates.
 */
export function notYet(facts: RolloutFacts, stage: CurrentStage | undefined): Closed | undefined {
  const { pool, cluster, now } = facts;
  const zones = whyNoZoneLimit(pool);
  if (zones !== undefined) return closed('MaxUnavailableInvalid', zones);
  const approval = whyNotApproved(pool, stage);
  if (approval !== undefined) return closed('ApprovalMissing', approval);
  const window = whyNoWindow(pool, now);
  if (window !== undefined) return closed('WindowClosed', window.sentence, window.until);
  const after = whyNotAfterPools(pool, cluster);
  if (after !== undefined) return closed('AfterPool', after);
  const limit = whyNotAnotherPool(facts);
  if (limit !== undefined) return closed('PoolLimit', limit);
  const soak = soakOf(facts, stage);
  return soak && closed('Soaking', soak.sentence, soak.until);
}
