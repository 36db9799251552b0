import { sameArguments } from '../../machine-config/change/command-line.js';
import type { OsField } from '../../machine-config/change/os-fields.js';
import type { OsBackend, OsState } from './host.js';

function sameList(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && one.every((value, index) => value === other[index]);
}

export function sameOsState(one: OsState, other: OsState): boolean {
  return differingFields(one, other).length === 0;
}

/** The fields of a MachineConfig in which two states differ. The order counts for kernel arguments only. */
export function differingFields(one: OsState, other: OsState): OsField[] {
  const fields: OsField[] = [];
  if (one.osImageURL !== other.osImageURL) fields.push('osImageURL');
  if (!sameArguments(one.kernelArguments, other.kernelArguments)) fields.push('kernelArguments');
  if (one.kernelType !== other.kernelType) fields.push('kernelType');
  if (!sameList(one.extensions.toSorted(), other.extensions.toSorted())) fields.push('extensions');
  return fields;
}

/** Arguments that one side has and the other has not; a changed order alone counts as one. */
export function countDifferentArguments(one: OsState, other: OsState): number {
  const [before, after] = [one.kernelArguments, other.kernelArguments];
  const onlyOneSide = [
    ...before.filter((argument) => !after.includes(argument)),
    ...after.filter((argument) => !before.includes(argument)),
  ];
  return sameArguments(before, after) ? 0 : Math.max(1, onlyOneSide.length);
}

/**
 * Whether the running system was booted as wanted already, although nothing of it was staged by us: a node that was
 * installed so by other means. Arguments must stand together and in order, since some only mean something in pairs.
 */
export async function isRunningAlready(os: OsBackend, before: OsState, wanted: OsState): Promise<boolean> {
  if (before.kernelArguments.length > 0) return false;
  const running = await os.booted();
  const sameRest = differingFields({ ...before, kernelArguments: [] }, { ...wanted, kernelArguments: [] }).length === 0;
  return sameRest && containsInOrder(running.kernelArguments, wanted.kernelArguments);
}

function containsInOrder(all: readonly string[], part: readonly string[]): boolean {
  return all.some((_, start) => sameArguments(all.slice(start, start + part.length), part));
}
