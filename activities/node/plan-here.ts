import type { PrepareResult, TargetStep } from '../../workflows/contract/activities.js';
import type { Journal } from '../host/journal.js';
import { degradingOnFailure } from './degraded.js';
import type { NodeDependencies } from './dependencies.js';
import { exclusively } from './exclusively.js';
import { failure } from './failures.js';
import { checkAddress, recentlyGrantedNode, type OwnNode } from './own-node.js';
import { reportPlan, type PlanReport } from './plan-summary.js';
import { planFor } from './update-plan.js';

/** Plans the update of this node, granted as `own` says, on its disk as it is now. Throws what `planFor` throws. */
export async function planHere(input: TargetStep, own: OwnNode, deps: NodeDependencies): Promise<PlanReport> {
  const plan = await exclusively(`prepare ${input.target}`, deps, async () => {
    const journal = await deps.store.journal();
    return journal?.target === input.target
      ? resumed(journal, await deps.host.bootId())
      : reportPlan(await planFor(input.target, own, deps));
  });
  deps.memory?.keepCost(input.target, plan.disruption);
  return plan;
}

/** The disk is at the target already: an earlier update of this node ended between apply and its last step. */
function resumed(journal: Journal, bootId: string): Pick<PrepareResult, 'disruption' | 'changes' | 'summary'> {
  const rebootIsDue = journal.needsReboot && journal.bootId === bootId;
  return {
    disruption: rebootIsDue ? 'reboot' : 'none',
    changes: { files: 0, units: 0, sshKeys: 0, kernelArguments: 0 },
    summary: rebootIsDue ? 'applied before; reboot' : 'applied before',
  };
}

/**
 * Throws NotGranted where the update to the target costs this node no drain: whoever reaches Temporal may ask for steps
 * that no plan has, and a node that was granted a config that only changes a file in passing stays in service. What this
 * worker has planned itself counts; else it plans now, and fails as `prepare` would.
 */
export async function checkCostsDrain(input: TargetStep, deps: NodeDependencies): Promise<void> {
  checkAddress(input, deps);
  const cost = deps.memory?.cost(input.target) ?? (await planAgain(input, deps)).disruption;
  if (cost === 'drain' || cost === 'reboot') return;
  throw failure(
    'NotGranted',
    `${input.target} costs ${deps.node} no drain: it is neither cordoned nor drained for it, and planned anew next time`,
  );
}

async function planAgain(input: TargetStep, deps: NodeDependencies): Promise<PlanReport> {
  const own = await recentlyGrantedNode(input, deps);
  return degradingOnFailure(input, deps, () => planHere(input, own, deps));
}
