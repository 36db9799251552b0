import type { ApiFlavour } from '../../api/flavour.js';
import type { MachineConfig } from '../../api/machine-config.js';
import type { MachineConfigPool } from '../../api/machine-config-pool.js';
import { fileContents } from '../../ignition/contents.js';
import { orderMachineConfigs, selectMachineConfigs } from '../../render/select.js';
import { readSpec } from '../../render/spec.js';

/** A file as a MachineConfig has it; `text` undefined: its contents cannot be read. */
export interface PresentFile {
  readonly machineConfig: string;
  readonly text: string | undefined;
}

/** The file of that path in a MachineConfig; undefined: it has none. */
export function fileIn(config: MachineConfig, path: string): PresentFile | undefined {
  const file = readSpec(config.spec).config?.storage?.files?.findLast((each) => each.path === path);
  if (file === undefined) return undefined;
  try {
    return { machineConfig: config.metadata.name, text: Buffer.from(fileContents(file)).toString('utf8') };
  } catch {
    return { machineConfig: config.metadata.name, text: undefined };
  }
}

/**
 * What the other MachineConfigs of a pool say on a file, around the place where a config of this pool stands by its
 * name: the last one before it, which it builds on, and the last one after it, which replaces what it says.
 */
export function filesAround(
  place: { pool: MachineConfigPool; name: string; path: string },
  configs: readonly MachineConfig[],
  flavour: ApiFlavour,
): { before: PresentFile | undefined; after: PresentFile | undefined } {
  const { pool, name, path } = place;
  const marker: MachineConfig = { metadata: { name, labels: { [flavour.roleLabel]: pool.metadata.name } } };
  const others = selectMachineConfigs(pool, configs).filter(({ metadata }) => metadata.name !== name);
  const ordered = orderMachineConfigs([...others, marker], flavour);
  const here = ordered.indexOf(marker);
  const lastOf = (some: readonly MachineConfig[]) =>
    some.toReversed().reduce<PresentFile | undefined>((found, config) => found ?? fileIn(config, path), undefined);
  return { before: lastOf(ordered.slice(0, here)), after: lastOf(ordered.slice(here + 1)) };
}
