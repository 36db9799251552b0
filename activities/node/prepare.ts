import type { PrepareResult, TargetStep } from '../../workflows/contract/activities.js';
import { degradingOnFailure } from './degraded.js';
import type { NodeDependencies } from './dependencies.js';
import { grantedNode } from './own-node.js';
import { planHere } from './plan-here.js';
import { withoutDrain } from './plan-summary.js';

/** Plans the whole update and checks that it can be done; writes nothing. The first step that does says Working. */
export async function prepare(input: TargetStep, deps: NodeDependencies): Promise<PrepareResult> {
  const own = await grantedNode(input, deps);
  return degradingOnFailure(input, deps, async () => {
    const found = await planHere(input, own, deps);
    const plan = own.facts.noDrain === input.target ? withoutDrain(found, deps.node) : found;
    return { from: own.current, target: input.target, ...plan };
  });
}
