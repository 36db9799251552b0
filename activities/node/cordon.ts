import { cordonChange } from '../../machine-config/drain/cordon-change.js';
import type { CordonResult, TargetStep } from '../../workflows/contract/activities.js';
import type { NodeDependencies } from './dependencies.js';
import { changeOwnNode, checkGranted, type NodeChanged, type OwnNode } from './own-node.js';
import { checkCostsDrain } from './plan-here.js';
import { sayWorking } from './working.js';

/** Cordons, with whose cordon it is in the same write. A cordon of somebody else stays theirs. */
export async function cordon(input: TargetStep, deps: NodeDependencies): Promise<CordonResult> {
  await checkCostsDrain(input, deps);
  const { result } = await ensureCordoned(input, deps);
  return { ours: result };
}

/** `result`: the cordon is ours. */
export async function ensureCordoned(input: TargetStep, deps: NodeDependencies): Promise<NodeChanged<boolean>> {
  const wasOpen = { now: false };
  const changed = await changeOwnNode(input, deps, (own) => {
    checkGranted(own, input, deps);
    wasOpen.now = !own.facts.unschedulable;
    return { patch: cordonPatch(own, input, deps), result: wasOpen.now || own.facts.cordonedFor !== undefined };
  });
  if (wasOpen.now) deps.memory?.reopenDrain();
  return changed;
}

function cordonPatch({ facts }: OwnNode, { target }: TargetStep, deps: NodeDependencies) {
  const change = cordonChange(facts, target, deps.now());
  const working = sayWorking(facts, deps);
  if (change === undefined && Object.keys(working).length === 0) return undefined;
  return { ...change, annotations: { ...change?.annotations, ...working } };
}
