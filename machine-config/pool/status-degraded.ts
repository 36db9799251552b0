import type { PoolConfiguration } from '../api/machine-config-pool.js';
import { isControlPlaneNode } from './control-plane.js';
import type { NodeFacts, PoolFacts } from './facts.js';
import { haltedSentence, haltOf } from './policy/failures.js';
import { clip, countOf } from './sentences.js';
import type { MemberCounts } from './status-counts.js';
import { MAX_MESSAGE_LENGTH, no, yes, type Verdict } from './status-verdict.js';

const NAMED_NODES = 10;

export function nodeDegradedVerdict({ degraded }: Pick<MemberCounts, 'degraded'>): Verdict {
  if (degraded.length === 0) return no('NoNodeDegraded');
  const perNode = Math.floor((MAX_MESSAGE_LENGTH - 100) / Math.min(degraded.length, NAMED_NODES));
  const told = degraded
    .slice(0, NAMED_NODES)
    .map((node) => clip(`${node.name}: ${node.reason ?? 'no reason given'}`, perNode - 2));
  const more = degraded.length > NAMED_NODES ? [`and ${degraded.length - NAMED_NODES} more`] : [];
  return yes('NodesDegraded', [...told, ...more].join('; '));
}

/** `error`: of the last render, null when it was good; undefined: nothing was rendered since. */
export function renderDegradedVerdict(error: string | null | undefined, kept: Verdict | undefined): Verdict {
  if (error === undefined) return kept ?? no('NotRendered');
  return error === null ? no('Rendered') : yes('RenderFailed', error);
}

/** Whether the failure budget of the rollout is used up. `now` in epoch milliseconds. */
export function haltedVerdict(pool: PoolFacts, members: readonly NodeFacts[], now: number): Verdict {
  const halt = pool.deleting ? undefined : haltOf(pool, members, now);
  return halt === undefined ? no('NotHalted') : yes('FailureBudgetUsedUp', haltedSentence(pool, halt));
}

/** Nodes that two custom pools select belong to neither, and nobody would miss them in the counts. */
export function conflictVerdict(conflicts: readonly string[]): Verdict {
  if (conflicts.length === 0) return no('NoConflict');
  const told = conflicts.slice(0, NAMED_NODES);
  const more = conflicts.length > NAMED_NODES ? [`and ${conflicts.length - NAMED_NODES} more nodes`] : [];
  return yes('SelectedTwice', [...told, ...more].join('; '));
}

function rolledBackVerdict(pool: PoolFacts, configuration: PoolConfiguration | undefined): Verdict {
  if (pool.rollingBack !== true) return no('NotRolledBack');
  const failed = configuration?.name ?? 'The last config';
  const back = pool.target ?? 'the config before';
  return yes(
    'RolledBack',
    `${failed} failed, and pool ${pool.name} goes back to ${back}: give the pool another config`,
  );
}

/** What has to be mended, all in one: the first is the reason. */
export function degradedVerdict({
  pool,
  configuration,
  failures,
}: {
  readonly pool: PoolFacts;
  readonly configuration: PoolConfiguration | undefined;
  readonly failures: readonly Verdict[];
}): Verdict {
  const failing = [rolledBackVerdict(pool, configuration), ...failures].filter(({ status }) => status === 'True');
  const [first] = failing;
  if (first === undefined) return no('NothingDegraded');
  return yes(first.reason ?? '', failing.map(({ message }) => message ?? '').join('; '));
}

/** Whether the pool updates one node at a time whatever is written, since the control plane runs on its nodes. */
export function controlPlaneVerdict(pool: PoolFacts, members: readonly NodeFacts[]): Verdict {
  const count = members.filter(isControlPlaneNode).length;
  if (count === 0) return no('NoControlPlaneNode');
  const { maxUnavailable } = pool;
  const written =
    maxUnavailable === undefined || maxUnavailable === 1 ? '' : `, whatever maxUnavailable says (${maxUnavailable})`;
  const nodes = countOf(count, 'node');
  return yes('OneAtATime', `The pool holds ${nodes} of the control plane and is updated one node at a time${written}`);
}
