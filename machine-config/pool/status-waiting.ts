import { isUpdated } from './availability.js';
import type { DrainBlocked, NodeFacts, PoolFacts } from './facts.js';
import { no, yes, type Verdict } from './status-verdict.js';
import type { Waiting } from './turn.js';

/** Why nothing starts, as the last turn said it. */
export type WaitingReason = Pick<Waiting, 'code' | 'sentence'>;

const NAMED_DRAINS = 3;

/** The names that the sentence does not hold already. */
function missing(label: string, names: readonly string[], sentence: string): string[] {
  const untold = names.filter((name) => !sentence.includes(name));
  return untold.length === 0 ? [] : [`${label} ${untold.join(', ')}`];
}

function drainSentence(name: string, { sentence, pods, budgets }: DrainBlocked): string {
  const more = [...missing('pods', pods, sentence), ...missing('budgets', budgets, sentence)];
  return `the drain of ${name} waits: ${sentence}${more.length === 0 ? '' : ` (${more.join('; ')})`}`;
}

/** What the drains of a pool wait for, with the pods and the PodDisruptionBudgets by name; undefined: none does. */
export function blockedDrains(members: readonly NodeFacts[], target: string | undefined): string | undefined {
  const told = members
    .filter((node) => node.drainBlocked !== undefined && !isUpdated(node, target))
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap(({ name, drainBlocked }) => (drainBlocked === undefined ? [] : [drainSentence(name, drainBlocked)]));
  if (told.length === 0) return undefined;
  const more = told.length > NAMED_DRAINS ? [`and ${told.length - NAMED_DRAINS} more drains`] : [];
  return [...told.slice(0, NAMED_DRAINS), ...more].join('; ');
}

export interface WaitingFacts {
  readonly pool: PoolFacts;
  readonly members: readonly NodeFacts[];
  /** There is something to roll out. */
  readonly isDue: boolean;
  /** Null: the last turn waits for nothing; undefined: no turn was taken, so what the status says already stays. */
  readonly waiting: WaitingReason | null | undefined;
  readonly kept: Verdict | undefined;
}

/**
 * Whether a rollout stands still, and for what. Updates that run and leave no slot for the next are no standstill,
 * unless one of them waits in its drain.
 */
export function waitingVerdict({ pool, members, isDue, waiting, kept }: WaitingFacts): Verdict {
  if (!isDue) return no('NothingToDo');
  if (waiting === undefined) return kept ?? no('NotAskedYet');
  const drains = blockedDrains(members, pool.target);
  const isRunning = waiting === null || waiting.code === 'UpdatesRunning';
  if (isRunning && drains === undefined) return no(waiting?.code ?? 'GoesOn', waiting?.sentence ?? '');
  const sentences = [drains, waiting?.sentence].filter((sentence) => sentence !== undefined);
  // What is acted on first comes first: a drain that is blocked keeps the slots that the others wait for.
  if (isRunning) return yes('DrainBlocked', sentences.join('; '));
  return yes(waiting.code, sentences.reverse().join('; '));
}
