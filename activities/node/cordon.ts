import { DRYDOCK_ANNOTATIONS } from '../../machine-config/api/flavour.js';
import type { CordonResult, TargetStep } from '../../workflows/contract/activities.js';
import type { NodeDependencies } from './dependencies.js';
import { grantedNode, onFreshNode, swapNode } from './own-node.js';

/** Cordons, with whose cordon it is in the same write. A cordon of somebody else stays theirs. */
export async function cordon(input: TargetStep, deps: NodeDependencies): Promise<CordonResult> {
  return onFreshNode(async () => {
    const own = await grantedNode(input, deps);
    const { unschedulable, cordonedFor } = own.facts;
    if (unschedulable && cordonedFor === undefined) return { ours: false };
    if (unschedulable && cordonedFor === input.target) return { ours: true };
    await swapNode(
      own,
      { annotations: { [DRYDOCK_ANNOTATIONS.cordonedFor]: input.target }, unschedulable: true },
      deps,
    );
    return { ours: true };
  });
}
