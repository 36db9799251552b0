import type { PrepareResult, TargetStep } from '../../workflows/contract/activities.js';
import type { Journal } from '../host/journal.js';
import { degradingOnFailure } from './degraded.js';
import type { NodeDependencies } from './dependencies.js';
import { exclusively } from './exclusively.js';
import { grantedNode, onFreshNode, swapNode } from './own-node.js';
import { reportPlan } from './plan-summary.js';
import { podsToEvict } from './pods.js';
import { planFor } from './update-plan.js';

/** Plans the whole update and checks that it can be done; writes nothing but the Node's state. */
export async function prepare(input: TargetStep, deps: NodeDependencies): Promise<PrepareResult> {
  const own = await grantedNode(input, deps);
  return degradingOnFailure(input, deps, async () => {
    const found = await exclusively(`prepare ${input.target}`, deps, async () => {
      const journal = await deps.store.journal();
      return journal?.target === input.target
        ? resumed(journal, await deps.host.bootId())
        : reportPlan(await planFor(input.target, own, deps));
    });
    const pods = (await podsToEvict(deps)).length;
    await say(input, deps);
    return { from: own.current, target: input.target, pods, ...found };
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

/** Working; but a failed node says so until an update succeeds. */
async function say(input: TargetStep, deps: NodeDependencies): Promise<void> {
  await onFreshNode(async () => {
    const own = await grantedNode(input, deps);
    const { state } = own.facts;
    if (state === 'Working' || state === 'Degraded' || state === 'Unreconcilable') return;
    await swapNode(own, { annotations: { [deps.flavour.annotations.state]: 'Working' } }, deps);
  });
}
