import { poolFacts } from '../../activities/cluster/pool-view.js';
import { DRYDOCK_ANNOTATIONS } from '../../machine-config/api/flavour.js';
import type { MachineConfigPool } from '../../machine-config/api/machine-config-pool.js';
import type { Approval, PoolFacts } from '../../machine-config/pool/facts.js';
import { stageToApprove } from '../../machine-config/pool/policy/approval.js';
import { currentStage } from '../../machine-config/pool/policy/stages.js';
import { CommandError } from '../command-error.js';
import { lookAtCluster, rolloutFactsOf } from '../pool-outlook.js';
import type { DrydockCluster } from '../rollouts.js';
import { changePool } from './pool-change.js';
import { whoAmI } from './who-am-i.js';

export interface Approved {
  readonly pool: string;
  readonly stage: string;
  /** The rendered config that the approval is for. */
  readonly config: string;
  readonly by: string;
  /** False: it was approved already. */
  readonly changed: boolean;
}

export interface ApproveInput {
  readonly pool: string;
  /** Absent: the stage that waits. */
  readonly stage?: string | undefined;
  readonly now: Date;
}

/**
 * Approves a stage for the rendered config that the pool wants now, as the user that the API server takes us for.
 * Rejects with a CommandError where nothing waits, or there is no such stage.
 */
export async function approveStage(cluster: DrydockCluster, input: ApproveInput): Promise<Approved> {
  const user = await whoAmI(cluster.kubernetes);
  return changePool<Approved>(cluster, input.pool, async (pool) => {
    const facts = poolFacts(pool);
    const { target: config } = facts;
    if (config === undefined)
      throw refused(`nothing is rendered for pool ${facts.name} yet, so nothing can be approved`);
    const stage =
      input.stage === undefined ? await waitingStage(cluster, pool, input.now) : namedStage(facts, input.stage);
    const before = approvedBefore(facts, config);
    if (before?.stages.includes(stage)) {
      return { answer: { pool: facts.name, stage, config, by: before.by ?? 'somebody', changed: false } };
    }
    const approval = JSON.stringify({ config, stages: [...(before?.stages ?? []), stage] });
    return {
      annotations: { [DRYDOCK_ANNOTATIONS.approval]: approval, [DRYDOCK_ANNOTATIONS.approvedBy]: user },
      answer: { pool: facts.name, stage, config, by: user, changed: true },
    };
  });
}

function refused(message: string): CommandError {
  return new CommandError('refused', message);
}

/** Approvals of another config say nothing of this one. */
function approvedBefore({ approval }: PoolFacts, config: string): Approval | undefined {
  return approval?.config === config ? approval : undefined;
}

const stagesWithApproval = ({ rollout }: PoolFacts): string[] =>
  (rollout?.stages ?? []).filter(({ approval }) => approval === 'Required').map(({ name }) => name);

function namedStage(facts: PoolFacts, name: string): string {
  const stages = facts.rollout?.stages ?? [];
  if (!stages.some((stage) => stage.name === name)) {
    const there = stages.length === 0 ? 'it has none' : `there are ${stages.map((stage) => stage.name).join(', ')}`;
    throw refused(`pool ${facts.name} has no stage ${name} in spec.rollout.stages: ${there}`);
  }
  const asking = stagesWithApproval(facts);
  if (asking.includes(name)) return name;
  const others = asking.length === 0 ? 'none of its stages does' : `those that do: ${asking.join(', ')}`;
  throw refused(`stage ${name} of pool ${facts.name} needs no approval; ${others}`);
}

async function waitingStage(cluster: DrydockCluster, pool: MachineConfigPool, now: Date): Promise<string> {
  const rollout = rolloutFactsOf(pool, await lookAtCluster(cluster), now);
  const waits = rollout && stageToApprove(rollout.pool, currentStage(rollout));
  if (waits !== undefined) return waits.name;
  const facts = poolFacts(pool);
  const asking = stagesWithApproval(facts);
  const approved = approvedBefore(facts, facts.target ?? '')?.stages ?? [];
  const why =
    asking.length === 0
      ? 'none of its stages asks for one (spec.rollout.stages[].approval)'
      : `approved for ${facts.target ?? ''}: ${approved.join(', ') || 'none'}; approve a later stage beforehand with --stage, of ${asking.join(', ')}`;
  throw refused(`nothing of pool ${facts.name} waits for an approval: ${why}`);
}
