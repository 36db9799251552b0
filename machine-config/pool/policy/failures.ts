import type { MachineConfigPoolStatus } from '../../api/machine-config-pool.js';
import { durationOr } from '../../api/duration.js';
import { isApplying, isForced, isManaged, isUpdated } from '../availability.js';
import type { NodeFacts, NodeFailure, PoolFacts } from '../facts.js';
import { limitOf } from '../max-unavailable.js';
import { clip, countOf, timeOf } from '../sentences.js';
import { policyOf } from './rollout-facts.js';

/** So many nodes fail before a rollout halts, unless the pool says otherwise. */
const DEFAULT_BUDGET = 2;
/** So often an update of a node to one config fails before that node has failed. */
const ATTEMPTS_OF_A_FAILED_NODE = 3;
/** Bare metal is slow to boot. */
const DEFAULT_REBOOT_TIMEOUT_MILLISECONDS = 45 * 60_000;

/** A node is down, or not whole, after the first of these already. */
const FAILED_AT_ONCE: ReadonlySet<string> = new Set([
  'RolledBackAfterBoot',
  'NotRebooted',
  'WrongImage',
  'NotAsTarget',
  'UndoFailed',
]);

export interface FailedNode {
  readonly node: NodeFacts;
  /** What became of it, to be read after its name. */
  readonly why: string;
}

export interface Halt {
  readonly failed: readonly FailedNode[];
  /** So many were allowed. */
  readonly budget: number;
}

/** Of times before it nothing counts any more. */
function isForgotten(time: number, since: number | undefined): boolean {
  return since !== undefined && !(time >= since);
}

/** The failure of a node, unless somebody has asked since that it is tried again. */
export function openFailure({ failure, retryAt }: NodeFacts): NodeFailure | undefined {
  return failure === undefined || isForgotten(Date.parse(failure.at), retryAt) ? undefined : failure;
}

/** The failure that counts against the present rollout: on its target, and not from before it was resumed. */
export function failureThatCounts(node: NodeFacts, pool: PoolFacts): NodeFailure | undefined {
  const failure = openFailure(node);
  if (failure === undefined || failure.target !== pool.target) return undefined;
  return isForgotten(Date.parse(failure.at), pool.resumedAt) ? undefined : failure;
}

/** Milliseconds after which a node that does not come back from its reboot has failed. */
export function rebootTimeout(pool: PoolFacts): number {
  return durationOr(policyOf(pool).rebootTimeout, DEFAULT_REBOOT_TIMEOUT_MILLISECONDS);
}

/** Epoch milliseconds at which a node that is on its way to the target and not Ready has failed; undefined: it is none. */
function failsAt(node: NodeFacts, pool: PoolFacts): number | undefined {
  if (node.ready || !isApplying(node) || node.applying !== pool.target) return undefined;
  if (node.readinessSince === undefined) return undefined;
  return node.readinessSince + rebootTimeout(pool);
}

function whyFailed(node: NodeFacts, pool: PoolFacts, now: number): string | undefined {
  return whyUpdateFailed(node, pool) ?? whyAway(node, pool, now);
}

function whyUpdateFailed(node: NodeFacts, pool: PoolFacts): string | undefined {
  // Asking for it on the host is asking for another try.
  const failure = isForced(node) ? undefined : failureThatCounts(node, pool);
  if (failure === undefined) return undefined;
  const { code = '', attempts } = failure;
  const said = clip(node.reason ?? 'no reason given', 160);
  if (FAILED_AT_ONCE.has(code)) return `${code}: ${said}`;
  return attempts >= ATTEMPTS_OF_A_FAILED_NODE ? `failed ${attempts} times: ${said}` : undefined;
}

function whyAway(node: NodeFacts, pool: PoolFacts, now: number): string | undefined {
  const at = failsAt(node, pool);
  if (at === undefined || at > now || isForgotten(at, node.retryAt) || isForgotten(at, pool.resumedAt))
    return undefined;
  return `not back from its reboot since ${timeOf(node.readinessSince ?? 0)}`;
}

/**
 * The nodes that the present rollout has cost, by name: tried three times in vain, not whole or not back as they were
 * after a reboot, or away for longer than `rebootTimeout` while they are changed. One that is away without having been
 * touched has not failed.
 */
export function failedNodes(pool: PoolFacts, members: readonly NodeFacts[], now: number): FailedNode[] {
  return members
    .flatMap((node) => {
      // Most nodes of a large pool are well.
      if ((node.ready && node.failure === undefined) || !isManaged(node) || isUpdated(node, pool.target)) return [];
      const why = whyFailed(node, pool, now);
      return why === undefined ? [] : [{ node, why }];
    })
    .sort((a, b) => (a.node.name < b.node.name ? -1 : 1));
}

/** The halt of a rollout that has used up its failure budget, never more than there are slots; undefined: it goes on. */
export function haltOf(
  pool: PoolFacts,
  members: readonly NodeFacts[],
  now: number,
  limit = limitOf(pool, members),
): Halt | undefined {
  if (!limit.ok || pool.target === undefined) return undefined;
  const budget = Math.min(policyOf(pool).failureBudget?.nodes ?? DEFAULT_BUDGET, limit.limit);
  const failed = failedNodes(pool, members, now);
  return failed.length >= budget ? { failed, budget } : undefined;
}

/** Whether the rollout of a pool has halted by itself. `now` in epoch milliseconds. */
export function isHalted(pool: PoolFacts, members: readonly NodeFacts[], now: number): boolean {
  return haltOf(pool, members, now) !== undefined;
}

/** What has halted a rollout, and what helps. */
export function haltedSentence({ name, target }: PoolFacts, { failed, budget }: Halt): string {
  const told = failed.slice(0, 3).map(({ node, why }) => `${node.name} (${why})`);
  const more = failed.length > told.length ? [`${failed.length - told.length} more`] : [];
  const [first] = failed;
  return (
    `The rollout of pool ${name} to ${target ?? ''} has halted after ${countOf(failed.length, 'failed node')}, ` +
    `${budget} ${budget === 1 ? 'is' : 'are'} enough: ${[...told, ...more].join(', ')}; give the pool another config, ` +
    `or mend them and go on with \`drydock rollout resume ${name}\`, ` +
    `or try one again with \`drydock node retry ${first?.node.name ?? 'NODE'}\``
  );
}

/** When, if nothing changes, another node will have failed; undefined: none is on its way there. */
export function nextFailureAt(pool: PoolFacts, members: readonly NodeFacts[], now: number): number | undefined {
  const times = members.flatMap((node) => failsAt(node, pool) ?? []).filter((time) => time > now);
  return times.length === 0 ? undefined : times.reduce((a, b) => Math.min(a, b));
}

/**
 * The config that a pool has to go back from: its rollout has halted, the pool asks for that, and there is a config that
 * all its nodes ran before. Undefined: it stays. To be written as the pool's `rolledBackFrom`.
 */
export function rollbackFrom(
  pool: PoolFacts,
  members: readonly NodeFacts[],
  { configuration }: Pick<MachineConfigPoolStatus, 'configuration'>,
  now: number,
): string | undefined {
  const lastGood = configuration?.name;
  if (policyOf(pool).onFailure !== 'Rollback' || pool.target === undefined || pool.rollingBack === true)
    return undefined;
  if (lastGood === undefined || lastGood === '' || lastGood === pool.target) return undefined;
  return isHalted(pool, members, now) ? pool.target : undefined;
}
