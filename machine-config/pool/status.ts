import type {
  MachineConfigPoolCondition,
  MachineConfigPoolStatus,
  PoolConditionType,
  PoolConfiguration,
} from '../api/machine-config-pool.js';
import { isDegraded, isDrifted, isGranted, isManaged, isUpdated } from './availability.js';
import { oldestFirst } from './candidates.js';
import type { NodeFacts, PoolFacts } from './facts.js';
import { clip, countOf, nameSome } from './sentences.js';

/** Conditions are read in lists and on phones: enough for a dozen reasons. */
const MAX_MESSAGE_LENGTH = 2000;
const NAMED_NODES = 10;

export interface PoolStatusFacts {
  readonly pool: PoolFacts;
  /** metadata.generation of the pool that the facts were read from. */
  readonly generation: number | undefined;
  /** spec.configuration as a whole; its name is the pool's target. */
  readonly configuration: PoolConfiguration | undefined;
  /** All members, managed or not. */
  readonly members: readonly NodeFacts[];
  readonly previous?: MachineConfigPoolStatus | undefined;
  /** What the last render said: an error, or null when it was good. Absent: as the previous status has it. */
  readonly renderError?: string | null | undefined;
  /** ISO 8601, for conditions whose status changes. */
  readonly now: string;
}

interface Judged {
  readonly total: number;
  readonly updated: readonly NodeFacts[];
  readonly ready: number;
  readonly unavailable: number;
  readonly degraded: readonly NodeFacts[];
  readonly unmanaged: readonly NodeFacts[];
  readonly allUpdated: boolean;
}

type Verdict = Pick<MachineConfigPoolCondition, 'status' | 'reason' | 'message'>;

function canTakePods(node: NodeFacts): boolean {
  return node.ready && !node.unschedulable;
}

/**
 * As the field counts it: a node that is on its way is unavailable, one that failed on its way and still works is not.
 * A member without a worker is judged by readiness alone, because it is not on its way anywhere.
 */
function countsAsUnavailable(node: NodeFacts): boolean {
  if (!canTakePods(node)) return true;
  if (!isManaged(node)) return false;
  const done = node.state === 'Done' && !isGranted(node);
  const failedOnTheWay = isDegraded(node) && !isDrifted(node) && (isGranted(node) || node.failure !== undefined);
  return !done && !failedOnTheWay;
}

function judge({ members, pool }: PoolStatusFacts): Judged {
  const byAge = oldestFirst(members, (node) => node);
  const updated = byAge.filter((node) => isUpdated(node, pool.target));
  const ready = updated.filter(canTakePods).length;
  const unavailable = byAge.filter(countsAsUnavailable).length;
  const total = byAge.length;
  return {
    total,
    updated,
    ready,
    unavailable,
    degraded: byAge.filter(isDegraded),
    unmanaged: byAge.filter((node) => !isManaged(node)),
    allUpdated: pool.target !== undefined && updated.length === total && ready === total && unavailable === 0,
  };
}

const no = (reason: string, message = ''): Verdict => ({ status: 'False', reason, message });
const yes = (reason: string, message: string): Verdict => ({ status: 'True', reason, message });

function unmanagedNote({ unmanaged }: Judged): string {
  if (unmanaged.length === 0) return '';
  const names = nameSome(unmanaged.map((node) => node.name));
  return `; no node worker has registered on ${names}: install it there`;
}

function progress({ pool }: PoolStatusFacts, judged: Judged): { updated: Verdict; updating: Verdict } {
  const { target } = pool;
  if (target === undefined) {
    const message = `There is no rendered config for pool ${pool.name} yet`;
    return { updated: no('NothingRendered', message), updating: no('NothingRendered', message) };
  }
  if (judged.allUpdated) {
    return { updated: yes('AllUpdated', `Every node of the pool runs ${target}`), updating: no('AllUpdated') };
  }
  const counts = `${judged.updated.length} of ${countOf(judged.total, 'node')} run ${target}`;
  if (pool.paused) {
    const message = `The pool is paused and stays short of ${target}: ${counts}${unmanagedNote(judged)}`;
    return { updated: no('Paused', message), updating: no('Paused', message) };
  }
  const ready = judged.ready < judged.updated.length ? `, ${judged.ready} of them ready` : '';
  return {
    updated: no('NotAllUpdated', counts),
    updating: yes('RollingOut', `${counts}${ready}${unmanagedNote(judged)}`),
  };
}

function nodeDegraded({ degraded }: Judged): Verdict {
  if (degraded.length === 0) return no('NoNodeDegraded');
  const perNode = Math.floor((MAX_MESSAGE_LENGTH - 100) / Math.min(degraded.length, NAMED_NODES));
  const told = degraded
    .slice(0, NAMED_NODES)
    .map((node) => clip(`${node.name}: ${node.reason ?? 'no reason given'}`, perNode - 2));
  const more = degraded.length > NAMED_NODES ? [`and ${degraded.length - NAMED_NODES} more`] : [];
  return yes('NodesDegraded', clip([...told, ...more].join('; '), MAX_MESSAGE_LENGTH));
}

function renderDegraded({ renderError, previous }: PoolStatusFacts): Verdict {
  if (renderError === undefined) {
    const kept = previous?.conditions?.find((condition) => condition.type === 'RenderDegraded');
    return kept === undefined
      ? no('NotRendered')
      : { status: kept.status, reason: kept.reason ?? '', message: kept.message ?? '' };
  }
  return renderError === null ? no('Rendered') : yes('RenderFailed', clip(renderError, MAX_MESSAGE_LENGTH));
}

function degraded(nodes: Verdict, render: Verdict): Verdict {
  const failing = [render, nodes].filter((verdict) => verdict.status === 'True');
  const [first] = failing;
  if (first === undefined) return no('NothingDegraded');
  return yes(first.reason ?? '', clip(failing.map(({ message }) => message ?? '').join('; '), MAX_MESSAGE_LENGTH));
}

/** The conditions that are ours, then those that others wrote; a time changes only with its status. */
function mergeConditions(
  verdicts: Partial<Record<PoolConditionType, Verdict>>,
  previous: readonly MachineConfigPoolCondition[],
  now: string,
): MachineConfigPoolCondition[] {
  const ours = Object.entries(verdicts).map(([type, verdict]) => {
    const before = previous.find((condition) => condition.type === type);
    const same = before?.status === verdict.status ? before.lastTransitionTime : undefined;
    return {
      type,
      status: verdict.status,
      lastTransitionTime: same ?? now,
      reason: verdict.reason ?? '',
      message: verdict.message ?? '',
    };
  });
  return [...ours, ...previous.filter((condition) => !Object.hasOwn(verdicts, condition.type))];
}

/**
 * Computes the status of a MachineConfigPool. The same facts over the answer of the last call give that answer again,
 * to the letter, so that nothing is written when nothing has changed. What others keep in the status stays.
 *
 * `configuration` is the last config that all nodes ran; it follows spec.configuration when the pool is Updated. An
 * empty pool with a target is Updated; a pool with a member that has no worker is not.
 */
export function poolStatus(facts: PoolStatusFacts): MachineConfigPoolStatus {
  const { previous, configuration, generation } = facts;
  const judged = judge(facts);
  const { updated, updating } = progress(facts, judged);
  const nodes = nodeDegraded(judged);
  const render = renderDegraded(facts);
  const verdicts = {
    Updated: updated,
    Updating: updating,
    NodeDegraded: nodes,
    RenderDegraded: render,
    Degraded: degraded(nodes, render),
  };
  return {
    ...previous,
    ...(generation === undefined ? {} : { observedGeneration: generation }),
    ...(judged.allUpdated && configuration !== undefined ? { configuration } : {}),
    machineCount: judged.total,
    updatedMachineCount: judged.updated.length,
    readyMachineCount: judged.ready,
    unavailableMachineCount: judged.unavailable,
    degradedMachineCount: judged.degraded.length,
    conditions: mergeConditions(verdicts, previous?.conditions ?? [], facts.now),
  };
}
