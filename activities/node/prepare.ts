import type { PrepareResult, TargetStep } from '../../workflows/contract/activities.js';
import type { Journal } from '../host/journal.js';
import { degradingOnFailure } from './degraded.js';
import type { NodeDependencies } from './dependencies.js';
import { exclusively } from './exclusively.js';
import { grantedNode } from './own-node.js';
import { reportPlan, withoutDrain } from './plan-summary.js';
import { podsToMove } from './pods.js';
import { planFor } from './update-plan.js';

/** Plans the whole update and checks that it can be done; writes nothing. The first step that does says Working. */
export async function prepare(input: TargetStep, deps: NodeDependencies): Promise<PrepareResult> {
  const own = await grantedNode(input, deps);
  return degradingOnFailure(input, deps, async () => {
    const found = await exclusively(`prepare ${input.target}`, deps, async () => {
      const journal = await deps.store.journal();
      return journal?.target === input.target
        ? resumed(journal, await deps.host.bootId())
        : reportPlan(await planFor(input.target, own, deps));
    });
    const pods = (await podsToMove(deps)).length;
    const plan = own.facts.noDrain === input.target ? withoutDrain(found, deps.node) : found;
    return { from: own.current, target: input.target, pods, ...plan };
  });
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
