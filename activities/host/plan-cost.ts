import type { MachineConfig } from '../../machine-config/api/machine-config.js';
import type { DisruptionAction } from '../../machine-config/api/node-disruption-policy.js';
import { EMPTY_CONTENT } from '../../machine-config/change/content.js';
import { diffConfigs } from '../../machine-config/change/diff-configs.js';
import {
  disruptionCauses,
  disruptionOfCauses,
  restrictCauses,
  summariseCost,
  type DisruptionCost,
} from '../../machine-config/change/disruption.js';
import { FrozenPoliciesError, readPolicies } from '../../machine-config/change/frozen-policies.js';
import { readSpec } from '../../machine-config/render/spec.js';
import { contentFound, type HostChange } from './changed-parts.js';
import { NotPossibleHere } from './entry.js';
import { withPossibleServices } from './plan-services.js';
import type { UnitsAfter } from './units-after.js';

/** What an update costs the node, and what is done about it. */
export interface CostPlan {
  readonly cost: DisruptionCost;
  /** In order, each once; empty where nothing is to be done. `Reboot` stands alone. */
  readonly actions: readonly DisruptionAction[];
  readonly warnings: readonly string[];
}

export const REBOOT: CostPlan = { cost: 'reboot', actions: [{ type: 'Reboot' }], warnings: [] };

/**
 * By the policies that the target carries, for what really changes on this host. Throws NotPossibleHere where these
 * cannot be read, or ask something of a service that there is not.
 */
export async function planCost(
  { current, target }: { readonly current: MachineConfig | undefined; readonly target: MachineConfig },
  changed: HostChange,
  units: UnitsAfter,
): Promise<CostPlan> {
  const policies = policiesOf(target);
  const next = readSpec(target.spec);
  const old = contentFound(current === undefined ? EMPTY_CONTENT : readSpec(current.spec), next, changed);
  const causes = restrictCauses(disruptionCauses(diffConfigs(old, next), policies), changed);
  const asked = disruptionOfCauses(causes, old, next);
  if (summariseCost(asked) === 'reboot') return REBOOT;
  const possible = await withPossibleServices(causes, units);
  const actions = disruptionOfCauses(possible.causes, old, next).filter(({ type }) => type !== 'None');
  return { cost: summariseCost(actions), actions, warnings: possible.warnings };
}

function policiesOf(target: MachineConfig) {
  try {
    return readPolicies(target);
  } catch (error) {
    if (error instanceof FrozenPoliciesError) throw new NotPossibleHere(error.message);
    throw error;
  }
}
