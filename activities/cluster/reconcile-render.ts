import { checkReconcilable } from '../../machine-config/change/check-reconcilable.js';
import type { MachineConfig } from '../../machine-config/api/machine-config.js';
import type { MachineConfiguration } from '../../machine-config/api/machine-configuration.js';
import { readSpec } from '../../machine-config/render/spec.js';
import { renderPool as render } from '../../machine-config/render/render-pool.js';
import { ifThere } from '../kubernetes/failures.js';
import type { ControlDependencies, MachineConfigResource, PoolResource } from './control-dependencies.js';

/** Each is one more render; a pool with more sources than that is told the field only. */
const MAX_SUSPECTS = 100;

export interface RenderedFrom {
  readonly config: MachineConfig;
  /** What was merged. */
  readonly machineConfigs: readonly MachineConfigResource[];
  /** MachineConfiguration `cluster`, if there is one. */
  readonly configuration: MachineConfiguration | undefined;
}

/**
 * Why running nodes could not go from the pool's present config to this one; undefined: they can. Nothing to compare
 * with, or a present config that was deleted, is no obstacle. Names the MachineConfig without which they could.
 */
export async function whyIrreconcilable(
  dependencies: ControlDependencies,
  pool: PoolResource,
  { configuration, ...rendered }: RenderedFrom,
): Promise<string | undefined> {
  const { client, flavour } = dependencies;
  const name = pool.spec.configuration?.name;
  if (name === undefined || name === '' || name === rendered.config.metadata.name) return undefined;
  const present = await ifThere<MachineConfigResource>(() => client.get(flavour.machineConfig, { name }));
  if (present === undefined) return undefined;
  const overrides = configuration?.spec.irreconcilableValidationOverrides?.storage;
  const old = readSpec(present.spec);
  const check = (config: MachineConfig) =>
    checkReconcilable(old, readSpec(config.spec), { sshUser: flavour.sshUser, overrides });

  const result = check(rendered.config);
  if (result.ok) return undefined;
  const culprit = rendered.machineConfigs.slice(0, MAX_SUSPECTS).find((suspect) => {
    const machineConfigs = rendered.machineConfigs.filter((each) => each !== suspect);
    const without = render({ pool: pool.metadata.name, machineConfigs, flavour });
    return without.outcome === 'rendered' && check(without.config).ok;
  });
  const who = culprit === undefined ? '' : `MachineConfig ${culprit.metadata.name}: `;
  return `${who}${result.field}: ${result.message} (compared with ${name})`;
}
