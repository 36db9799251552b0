import type { Stage } from '../../api/rollout-policy.js';
import type { PoolFacts } from '../facts.js';
import type { CurrentStage } from './stages.js';

function isApproved({ approval, target }: PoolFacts, stage: string): boolean {
  return approval !== undefined && approval.config === target && approval.stages.includes(stage);
}

/** The first stage that the rollout has come to and that nobody has approved for the target; undefined: there is none. */
export function stageToApprove(pool: PoolFacts, current: CurrentStage | undefined): Stage | undefined {
  return current?.soFar.find(({ stage }) => stage.approval === 'Required' && !isApproved(pool, stage.name))?.stage;
}

/**
 * Why a stage may not be updated for want of an approval, in a sentence; undefined: it may. An approval is for one
 * rendered config. Those of the stages before count too, so that no stage is passed over unseen.
 */
export function whyNotApproved(pool: PoolFacts, current: CurrentStage | undefined): string | undefined {
  const missing = stageToApprove(pool, current);
  if (missing === undefined) return undefined;
  const { approval, target = '' } = pool;
  const other =
    approval === undefined || approval.config === target ? '' : `, the approval there is for ${approval.config}`;
  return (
    `Stage ${missing.name} of pool ${pool.name} waits for the approval of ${target}${other}: look at it with ` +
    `\`drydock diff\`, then approve it with \`drydock rollout approve ${pool.name}\``
  );
}
