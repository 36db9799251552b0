import type { ApiFlavour } from '../api/flavour.js';
import { matchesSelector, type LabelSelector } from '../api/label-selector.js';
import { isRecord } from '../ignition/findings.js';

/** A MachineConfig as far as it must be known to be rendered; `spec` is checked by rendering it. */
export interface MachineConfigObject {
  readonly metadata?: {
    readonly name?: string;
    readonly labels?: Readonly<Record<string, string>> | null;
    readonly annotations?: Readonly<Record<string, string>> | null;
  } | null;
  readonly spec?: unknown;
}

/** A MachineConfigPool as far as it decides what is rendered for it. */
export interface SelectingPool {
  readonly spec?: { readonly machineConfigSelector?: LabelSelector | null } | null;
}

/** The MachineConfigs that a pool selects by label. An absent or empty selector selects none; nor is a MachineConfig without labels selected. */
export function selectMachineConfigs<T extends MachineConfigObject>(pool: SelectingPool, all: readonly T[]): T[] {
  const selector = pool.spec?.machineConfigSelector;
  return all.filter(({ metadata }) => metadata?.labels && matchesSelector(selector, metadata.labels));
}

/**
 * The order in which MachineConfigs are merged, later ones win: those with role `worker` first, then all others, each group by
 * name in code point order. So in a custom pool the pool's own configs win whatever their names.
 */
export function orderMachineConfigs<T extends MachineConfigObject>(all: readonly T[], flavour: ApiFlavour): T[] {
  const keyed = all.map((object) => ({
    object,
    isWorker: isRecord(object.metadata?.labels) && object.metadata.labels[flavour.roleLabel] === 'worker',
    name: nameOf(object),
  }));
  keyed.sort((left, right) => {
    if (left.isWorker !== right.isWorker) return left.isWorker ? -1 : 1;
    const byName = compareText(left.name, right.name);
    // Two objects of one name exist in files only; their order must not depend on the order of the files.
    return byName === 0 ? compareText(textOf(left.object), textOf(right.object)) : byName;
  });
  return keyed.map(({ object }) => object);
}

/** Name of a MachineConfig, whatever stands there; empty where there is none. */
export function nameOf({ metadata }: MachineConfigObject): string {
  const name: unknown = isRecord(metadata) ? metadata.name : undefined;
  return typeof name === 'string' ? name : '';
}

/** As JSON; empty for what is nested too deep to be written, which is refused later. */
function textOf(value: unknown): string {
  try {
    return JSON.stringify(value);
  } catch {
    return '';
  }
}

/**
 * By code point (the order of the UTF-8 bytes), never by locale: the order decides who wins and must be the same
 * everywhere.
 */
export function compareText(left: string, right: string): number {
  return Buffer.compare(Buffer.from(left), Buffer.from(right));
}
