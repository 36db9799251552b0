import { ApplicationFailure } from '@temporalio/common';
import { DRYDOCK_ANNOTATIONS } from '../../machine-config/api/flavour.js';
import type { NodeFacts, NodeFailure } from '../../machine-config/pool/facts.js';
import type { TargetStep } from '../../workflows/contract/activities.js';
import type { FailureCode } from '../../workflows/contract/failure-codes.js';
import type { NodeDependencies } from './dependencies.js';
import { translated } from './failures.js';
import { onFreshNode, ownNode, swapNode, type OwnNode } from './own-node.js';

/** As the field's tools cut it. */
export const LONGEST_REASON = 2000;

/** Failures that say something about this node and its config, for people to see on the Node. */
const DEGRADING: ReadonlySet<string> = new Set<FailureCode>([
  'Unreconcilable',
  'Unplannable',
  'Drifted',
  'UntrustedConfig',
  'ApplyFailed',
  'UndoFailed',
  'NotAsTarget',
  'NotRebooted',
  'WrongImage',
  'RolledBackAfterBoot',
]);

/**
 * Runs a step. If it fails for good because of the node or its config, the Node is Degraded (or Unreconcilable) with the
 * reason and the count of failures before the failure goes on to the workflow, and has not begun to apply any more, so
 * that another config can be tried.
 */
export async function degradingOnFailure<T>(
  step: TargetStep,
  deps: NodeDependencies,
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const known = translated(error);
    if (known instanceof ApplicationFailure && DEGRADING.has(known.type ?? '')) {
      await onFreshNode(async () => degrade(await ownNode(step, deps), known, step.target, deps));
    }
    throw known;
  }
}

async function degrade(own: OwnNode, known: ApplicationFailure, target: string, deps: NodeDependencies): Promise<void> {
  // A late attempt: another one has brought the node there meanwhile.
  if (own.current === target && own.facts.force === undefined) return;
  await swapNode(own, { annotations: failureAnnotations(own.facts, known, target, deps) }, deps);
  tellFailure(known, deps);
}

/** The failure of an update as an Event and in the metrics, once it stands on the Node. */
export function tellFailure({ type, message }: ApplicationFailure, { events, metrics }: NodeDependencies): void {
  events?.warning(type === 'RolledBackAfterBoot' ? 'RolledBack' : 'UpdateFailed', message);
  metrics?.updateFailed(type ?? 'Unknown');
  if (type === 'NotRebooted') metrics?.rebootFailed();
}

/** What the Node says of a failed update. */
export function failureAnnotations(
  facts: NodeFacts,
  known: ApplicationFailure,
  target: string,
  { flavour, now }: NodeDependencies,
): Record<string, string | null> {
  const { state, reason } = flavour.annotations;
  const before = facts.failure;
  const record: NodeFailure = {
    target,
    attempts: before?.target === target ? before.attempts + 1 : 1,
    at: now().toISOString(),
    ...(known.type ? { code: known.type } : {}),
  };
  return {
    [state]: known.type === 'Unreconcilable' ? 'Unreconcilable' : 'Degraded',
    [reason]: known.message.slice(0, LONGEST_REASON),
    [DRYDOCK_ANNOTATIONS.failure]: JSON.stringify(record),
    [DRYDOCK_ANNOTATIONS.applying]: null,
    // The next attempt drains anew, and its time counts from there.
    ...(facts.drainSince === undefined ? {} : { [DRYDOCK_ANNOTATIONS.drainSince]: null }),
  };
}
