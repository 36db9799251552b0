import type { DisruptionAction } from '../../machine-config/api/node-disruption-policy.js';
import type { PrepareResult } from '../../workflows/contract/activities.js';
import type { UpdatePlan } from '../host/plan.js';

/** Lists in results are for people to look at, and histories stay small. */
const MOST_NAMES = 20;
const MOST_WARNINGS = 10;
const LONGEST_WARNING = 300;
/** The summary of a workflow's step is cut at 200 bytes by the server. */
const MOST_ACTIONS_IN_SUMMARY = 3;

export type PlanReport = Pick<
  PrepareResult,
  'disruption' | 'changes' | 'summary' | 'files' | 'units' | 'actions' | 'warnings'
>;

/** A plan in names and counts; never contents. */
export function reportPlan(plan: UpdatePlan): PlanReport {
  const files = plan.changes.filter(({ origin }) => origin === 'file').map(({ path, declared }) => declared ?? path);
  const actions = [...plan.stop.map((unit) => `stop ${unit}`), ...plan.actions.map(inWords)];
  return {
    disruption: plan.cost,
    changes: plan.counts,
    summary: `${countsInWords(plan.counts)}; ${actionsInWords(actions)}`,
    files: files.slice(0, MOST_NAMES),
    units: plan.units.slice(0, MOST_NAMES),
    actions,
    warnings: plan.warnings.slice(0, MOST_WARNINGS).map((warning) => warning.slice(0, LONGEST_WARNING)),
  };
}

/** As planned, for a node whose pods would have nowhere to go: it is cordoned, and its pods end with the reboot. */
export function withoutDrain<P extends PlanReport>(plan: P, node: string): P & Pick<PrepareResult, 'noDrain'> {
  if (plan.disruption !== 'drain' && plan.disruption !== 'reboot') return plan;
  const warning = `${node} is the only node that takes pods: they are not evicted, since they could run nowhere else`;
  return {
    ...plan,
    noDrain: true,
    summary: `${plan.summary}; cordon, no drain`,
    warnings: [warning, ...(plan.warnings ?? [])].slice(0, MOST_WARNINGS),
  };
}

function inWords({ type, reload, restart }: DisruptionAction): string {
  const words: Record<DisruptionAction['type'], string> = {
    Reboot: 'reboot',
    Drain: 'drain',
    DaemonReload: 'daemon-reload',
    Reload: `reload ${reload?.serviceName ?? ''}`,
    Restart: `restart ${restart?.serviceName ?? ''}`,
    None: 'nothing',
  };
  return words[type];
}

function actionsInWords(actions: readonly string[]): string {
  if (actions.length === 0) return 'no reboot';
  const more = actions.length - MOST_ACTIONS_IN_SUMMARY;
  const named = actions.slice(0, MOST_ACTIONS_IN_SUMMARY).join(', ');
  return more > 0 ? `${named} and ${more} more` : named;
}

function countsInWords({ files, units, sshKeys, kernelArguments }: PrepareResult['changes']): string {
  const counted = [
    [files, 'file', 'files'],
    [units, 'unit', 'units'],
    [kernelArguments, 'kernel argument', 'kernel arguments'],
  ] as const;
  const parts = counted
    .filter(([count]) => count > 0)
    .map(([count, one, many]) => `${count} ${count === 1 ? one : many}`);
  if (sshKeys > 0) parts.push('SSH keys');
  return parts.length === 0 ? 'nothing to change' : parts.join(', ');
}
