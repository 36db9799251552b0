import { heartbeat } from '@temporalio/activity';
import { DRYDOCK_ANNOTATIONS } from '../../machine-config/api/flavour.js';
import type { ApplyResult, TargetStep } from '../../workflows/contract/activities.js';
import { applyPlan, ApplyFailedError } from '../host/apply.js';
import type { Journal } from '../host/journal.js';
import { UndoFailedError } from '../host/undo.js';
import { degradingOnFailure } from './degraded.js';
import type { NodeDependencies } from './dependencies.js';
import { exclusively } from './exclusively.js';
import { failure } from './failures.js';
import { grantedNode, onFreshNode, swapNode, type OwnNode } from './own-node.js';
import { planFor } from './update-plan.js';

/**
 * Brings the disk to the target, all or nothing. From the mark on the Node on, which is written only while the Node is
 * still granted this target, nothing retargets the update. Once applied, it answers again and does nothing.
 */
export async function apply(input: TargetStep, deps: NodeDependencies): Promise<ApplyResult> {
  const own = await grantedNode(input, deps);
  return degradingOnFailure(input, deps, () =>
    exclusively(`apply ${input.target}`, deps, async () => {
      const journal = await deps.store.journal();
      if (journal?.target === input.target) {
        await markApplying(input, deps);
        return answer(journal, deps);
      }
      const plan = await planFor(input.target, own, deps);
      const marked = await markApplying(input, deps);
      return answer(await carryOut(plan, marked, deps), deps);
    }),
  );
}

async function carryOut(plan: Parameters<typeof applyPlan>[0]['plan'], own: OwnNode, deps: NodeDependencies) {
  const { host, store } = deps;
  try {
    return await applyPlan({
      host,
      store,
      plan,
      from: own.current,
      now: deps.now().toISOString(),
      onStep: (step) => heartbeat({ step }),
    });
  } catch (error) {
    if (error instanceof ApplyFailedError) {
      throw failure('ApplyFailed', `${error.message}; everything was put back as it was`, error);
    }
    if (error instanceof UndoFailedError) {
      throw failure('UndoFailed', `${error.message}; mend the cause and the next attempt puts it back`, error);
    }
    throw error;
  }
}

async function answer(journal: Journal, { host }: NodeDependencies): Promise<ApplyResult> {
  return {
    reboot: journal.needsReboot && journal.bootId === (await host.bootId()),
    bootId: journal.bootId,
    filesWritten: journal.filesWritten,
    unitsChanged: journal.unitsChanged,
  };
}

/** The compare-and-swap against `assign`: whoever writes the Node first decides whether it is retargeted. */
async function markApplying(input: TargetStep, deps: NodeDependencies): Promise<OwnNode> {
  return onFreshNode(async () => {
    const own = await grantedNode(input, deps);
    if (own.facts.applying !== input.target) {
      await swapNode(own, { annotations: { [DRYDOCK_ANNOTATIONS.applying]: input.target } }, deps);
    }
    return own;
  });
}
