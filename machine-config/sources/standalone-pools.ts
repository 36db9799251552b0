import type { ApiFlavour } from '../api/flavour.js';
import { matchesSelector } from '../api/label-selector.js';
import type { MachineConfigPool } from '../api/machine-config-pool.js';
import { compareText } from '../render/select.js';

/**
 * The pools that need configs of their own, by name: all but those that select the configs of another pool, as custom
 * pools do with those of `worker`, and get them from there. What no pool selects by its own name is left out.
 */
export function standalonePools(
  pools: readonly MachineConfigPool[],
  flavour: Pick<ApiFlavour, 'roleLabel'>,
): MachineConfigPool[] {
  const there = pools.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
  const selects = (pool: MachineConfigPool, role: string) =>
    matchesSelector(pool.spec.machineConfigSelector, { [flavour.roleLabel]: role });
  return there
    .filter((pool) => selects(pool, pool.metadata.name))
    .filter((pool) => there.every((other) => other === pool || !selects(pool, other.metadata.name)))
    .toSorted((one, other) => compareText(one.metadata.name, other.metadata.name));
}
