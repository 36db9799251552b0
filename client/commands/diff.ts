import type { DisruptionAction, EffectiveDisruptionAction } from '../../machine-config/api/node-disruption-policy.js';
import type { KeyedChange } from '../../machine-config/change/diff-configs.js';
import type { DisruptionCause } from '../../machine-config/change/disruption.js';
import { CommandError } from '../command-error.js';
import type { ExitName } from '../exit-codes.js';
import { offlineDiff, type OfflineDiffResult } from '../offline-diff.js';
import type { Session } from '../session.js';
import { renderTable, type Column } from '../table.js';
import type { Paint } from '../terminal.js';

export interface DiffOptions {
  readonly old: string;
  readonly next: string;
  readonly policy?: string | undefined;
}

/** What a change does to a node. Ends as refused where a running node cannot follow it. */
export async function diff(session: Session, options: DiffOptions): Promise<ExitName> {
  const result = await offlineDiff({ ...options, flavour: session.givenFlavour });
  session.print(result.report, () => inWords(result, session.paint));
  if (result.report.reconcilable) return 'ok';
  throw new CommandError('refused', `a running node cannot follow: ${result.report.reasons[0] ?? ''}`);
}

function inWords({ report, details }: OfflineDiffResult, paint: Paint): string {
  const reasons = report.reasons.map((reason) => `cannot be done on a running node: ${reason}`);
  if (details === undefined) return reasons.join('\n');
  const { diff: changes, causes } = details;
  if (causes.length === 0) return [...reasons, 'nothing changes on a node'].join('\n');
  const lines = [...reasons, renderTable(columns(changes), causes, paint), '', `a node: ${effectOf(report.actions)}`];
  const left = report.reboot ? [] : changes.files.removed.filter((path) => SYSCTL.test(path));
  return [...lines, ...left.map((path) => `note: what ${path} has set stays in the kernel until the next reboot`)].join(
    '\n',
  );
}

const SYSCTL = /^(?:\/etc|\/usr\/lib|\/usr\/local\/lib|\/run)\/sysctl\.d\/|^\/etc\/sysctl\.conf$/u;

function columns(changes: {
  readonly files: KeyedChange;
  readonly units: KeyedChange;
}): readonly Column<DisruptionCause>[] {
  const how = ({ kind, name }: DisruptionCause): string => {
    if (kind !== 'file' && kind !== 'unit') return 'changed';
    const { added, removed } = kind === 'file' ? changes.files : changes.units;
    return added.includes(name) ? 'added' : removed.includes(name) ? 'removed' : 'changed';
  };
  return [
    { title: 'WHAT', value: ({ what }) => what },
    { title: 'CHANGE', value: how },
    { title: 'ACTIONS', value: ({ actions }) => actions.map(actionInWords).join(', ') },
    { title: 'POLICY', value: policyInWords },
  ];
}

function policyInWords({ kind, origin, policy }: DisruptionCause): string {
  if (kind === 'os') return 'always';
  const whose = origin === 'user' ? 'own' : 'built-in';
  if (kind === 'passwd') return `${whose}, for SSH keys`;
  return policy === undefined ? `${whose}, for what none names` : `${whose}, for ${policy}`;
}

function actionInWords({ type, restart, reload }: EffectiveDisruptionAction): string {
  const service = restart?.serviceName ?? reload?.serviceName;
  return service === undefined ? type : `${type} ${service}`;
}

/** `is drained; DaemonReload, Restart a.service` */
function effectOf(actions: readonly DisruptionAction[]): string {
  const has = (type: DisruptionAction['type']) => actions.some((action) => action.type === type);
  if (has('Reboot')) return 'is drained and reboots';
  if (has('None')) return 'goes on undisturbed';
  const others = actions.filter(({ type }) => type !== 'Drain').map(actionInWords);
  return [...(has('Drain') ? ['is drained'] : []), ...(others.length === 0 ? [] : [others.join(', ')])].join('; ');
}
