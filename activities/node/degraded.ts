import { ApplicationFailure } from '@temporalio/common';
import { DRYDOCK_ANNOTATIONS } from '../../machine-config/api/flavour.js';
import type { NodeFailure } from '../../machine-config/pool/facts.js';
import type { TargetStep } from '../../workflows/contract/activities.js';
import type { FailureCode } from '../../workflows/contract/failure-codes.js';
import type { NodeDependencies } from './dependencies.js';
import { translated } from './failures.js';
import { onFreshNode, ownNode, swapNode, type OwnNode } from './own-node.js';

/** As the field's tools cut it. */
const LONGEST_REASON = 2000;

/** Failures that say something about this node and its config, for people to see on the Node. */
const DEGRADING: ReadonlySet<string> = new Set<FailureCode>([
  'Unreconcilable',
  'Unplannable',
  'Drifted',
  'UntrustedConfig',
  'ApplyFailed',
  'UndoFailed',
  'NotAsTarget',
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
  if (own.current === target) return;
  const { state, reason: reasonKey } = deps.flavour.annotations;
  const before = own.facts.failure;
  const record: NodeFailure = {
    target,
    attempts: before?.target === target ? before.attempts + 1 : 1,
    at: deps.now().toISOString(),
  };
  await swapNode(
    own,
    {
      annotations: {
        [state]: known.type === 'Unreconcilable' ? 'Unreconcilable' : 'Degraded',
        [reasonKey]: known.message.slice(0, LONGEST_REASON),
        [DRYDOCK_ANNOTATIONS.failure]: JSON.stringify(record),
        [DRYDOCK_ANNOTATIONS.applying]: null,
      },
    },
    deps,
  );
}
