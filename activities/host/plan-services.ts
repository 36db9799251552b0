import type { DisruptionAction, EffectiveDisruptionAction } from '../../machine-config/api/node-disruption-policy.js';
import { serviceOf, type DisruptionCause } from '../../machine-config/change/disruption.js';
import type { Desired } from './desired.js';
import { NotPossibleHere } from './entry.js';
import type { Systemctl } from './host.js';
import { MASK_TARGET } from './path-state.js';
import type { PlannedChange } from './plan.js';
import { isOwnUnit } from './protected-paths.js';
import { isInstanceOf, UNIT_FOLDER, unitOfPath } from './units.js';
import type { UnitsAfter } from './units-after.js';

/** `Special` reads CRI-O's registries again. */
const CRIO = 'crio.service';

/**
 * Leaves out of the causes what cannot be done to a service: one that goes or is masked by the update itself, and one
 * that this host does not have if only a built-in policy names it. Throws NotPossibleHere for one that somebody's own
 * policy names and that is neither here nor comes with the target.
 */
export async function withPossibleServices(
  causes: readonly DisruptionCause[],
  units: UnitsAfter,
): Promise<{ causes: DisruptionCause[]; warnings: string[] }> {
  const warnings = new Set<string>();
  const possible: DisruptionCause[] = [];
  for (const cause of causes) {
    const actions: EffectiveDisruptionAction[] = [];
    for (const action of cause.actions) {
      const service = action.type === 'Special' ? CRIO : serviceOf(action as DisruptionAction);
      const obstacle = service === undefined ? undefined : await obstacleOf(service, units);
      if (service === undefined || obstacle === undefined) actions.push(action);
      else if (obstacle.byTheUpdate || cause.origin === 'default') warnings.add(leftOut(action, service, obstacle.why));
      else throw new NotPossibleHere(refusal(cause, action, service, obstacle.why));
    }
    possible.push({ ...cause, actions });
  }
  return { causes: possible, warnings: [...warnings] };
}

/** Why a service cannot be reloaded or restarted after the update. */
async function obstacleOf(
  service: string,
  units: UnitsAfter,
): Promise<{ why: string; byTheUpdate: boolean } | undefined> {
  if (isOwnUnit(service)) return { why: 'it is the node worker itself', byTheUpdate: false };
  const byTheUpdate = units.isChanged(service);
  if (await units.isMasked(service)) {
    return { why: byTheUpdate ? 'it is masked by this update' : 'it is masked on this host', byTheUpdate };
  }
  if (await units.exists(service)) return undefined;
  return { why: byTheUpdate ? 'it goes with this update' : 'this host does not have it', byTheUpdate };
}

function leftOut({ type }: EffectiveDisruptionAction, service: string, why: string): string {
  return `${service} is not ${type === 'Restart' ? 'restarted' : 'reloaded'}: ${why}`;
}

function refusal({ what, policy }: DisruptionCause, action: EffectiveDisruptionAction, service: string, why: string) {
  const named = policy === undefined ? what : `${policy} (${what})`;
  return (
    `nodeDisruptionPolicy for ${named}: ${action.type} of ${service} cannot be done: ${why}; ` +
    'correct the policy, or let the config bring the unit'
  );
}

/** The units that run and whose file goes for good: they are stopped where no reboot does it. */
export async function unitsToStop(
  changes: readonly PlannedChange[],
  { units, systemctl, had }: { units: UnitsAfter; systemctl: Systemctl; had: Desired | undefined },
): Promise<string[]> {
  const going = changes
    .filter(({ path, after }) => after.kind === 'absent' && path === `${UNIT_FOLDER}/${unitOfPath(path) ?? ''}`)
    .map(({ path }) => unitOfPath(path) ?? '');
  const instances = [...(had?.enablement.keys() ?? [])];
  const candidates = going.flatMap((unit) => [unit, ...instances.filter((other) => isInstanceOf(unit, other))]);
  const stop: string[] = [];
  for (const unit of new Set(candidates)) {
    if (!(await units.exists(unit)) && (await systemctl.isActive(unit))) stop.push(unit);
  }
  return stop;
}

const SYSCTL_FOLDERS = ['/etc/sysctl.d', '/run/sysctl.d', '/usr/lib/sysctl.d', '/usr/local/lib/sysctl.d'];

/** What an update without a reboot leaves as it is until the next one, in sentences. */
export async function lastingUntilReboot(
  changes: readonly PlannedChange[],
  actions: readonly DisruptionAction[],
  systemctl: Systemctl,
): Promise<string[]> {
  const sentences: string[] = [];
  for (const { path, after } of changes) {
    const unit = unitOfPath(path);
    const isMask = after.kind === 'link' && after.target === MASK_TARGET;
    if (unit !== undefined && isMask && (await systemctl.isActive(unit))) {
      sentences.push(`${unit} is masked and goes on running: stop it, or it ends with the next reboot`);
    }
    const isSysctl = path === '/etc/sysctl.conf' || SYSCTL_FOLDERS.some((folder) => path.startsWith(`${folder}/`));
    if (isSysctl && after.kind === 'absent') {
      sentences.push(`${path} goes, and the running value stays until the next reboot`);
    }
  }
  for (const { reload } of actions) {
    if (reload !== undefined && !(await systemctl.isActive(reload.serviceName))) {
      sentences.push(`${reload.serviceName} is not reloaded: it does not run`);
    }
  }
  return sentences;
}
