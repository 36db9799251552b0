import type { ApiFlavour } from '../api/flavour.js';
import { matchesSelector, type LabelSelector } from '../api/label-selector.js';
import type { MachineConfigPool } from '../api/machine-config-pool.js';
import type { ObjectMetadata } from '../api/object-metadata.js';
import { compareText } from '../render/select.js';

/** Which configs win: 97 is for the cluster's own defaults, 98 for its feature gates, 99 for what people ask for. */
export type Priority = '97' | '98' | '99';

/** `99-worker-generated-kubelet`, `99-worker-generated-kubelet-1`: later names win, and each pool has its own. */
export function generatedName(name: { priority: Priority; pool: string; what: string; suffix?: string }): string {
  const { priority, pool, what, suffix = '' } = name;
  return `${priority}-${pool}-generated-${what}${suffix === '' ? '' : `-${suffix}`}`;
}

/** The first object of a pool has no suffix, then come 1 to 9: with 10 the order by text would be another. */
const MAX_SUFFIX = 9;

/** Annotation of a source object: its suffix, so that its names stay whatever becomes of the others. */
export function suffixAnnotation(flavour: Pick<ApiFlavour, 'group'>): string {
  return `${flavour.group}/mc-name-suffix`;
}

/** A source object that chooses its pools by their labels. */
export interface PoolChoosingObject {
  readonly metadata: ObjectMetadata;
  readonly spec?: { readonly machineConfigPoolSelector?: LabelSelector };
}

/** The pools that an object is for, by name. An absent or empty selector chooses none. */
export function poolsOf({ spec }: PoolChoosingObject, pools: readonly MachineConfigPool[]): MachineConfigPool[] {
  return pools
    .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
    .filter(({ metadata }) => matchesSelector(spec?.machineConfigPoolSelector, metadata.labels))
    .toSorted((one, other) => compareText(one.metadata.name, other.metadata.name));
}

/** Oldest first; those of one second by name. What is about to be deleted still takes its place. */
export function byAge<T extends { readonly metadata: ObjectMetadata }>(objects: readonly T[]): T[] {
  const age = ({ metadata }: T) => Date.parse(metadata.creationTimestamp ?? '') || 0;
  return objects.toSorted((one, other) => age(one) - age(other) || compareText(one.metadata.name, other.metadata.name));
}

/**
 * The suffix of every object by its name; undefined: its pool has ten already. One that an annotation holds stays;
 * a new one comes after all that share a pool with it, so that the newest wins and no freed number is used again.
 */
export function suffixesOf(
  objects: readonly PoolChoosingObject[],
  pools: readonly MachineConfigPool[],
  flavour: Pick<ApiFlavour, 'group'>,
): Map<string, string | undefined> {
  const suffixes = new Map<string, string | undefined>();
  const kept = (object: PoolChoosingObject) => validSuffix(object.metadata.annotations?.[suffixAnnotation(flavour)]);
  for (const object of objects) {
    const suffix = kept(object);
    if (suffix !== undefined) suffixes.set(object.metadata.name, suffix);
  }
  const poolNames = new Map(objects.map((each) => [each, poolsOf(each, pools).map(({ metadata }) => metadata.name)]));
  for (const object of byAge(objects.filter((each) => kept(each) === undefined))) {
    const own = new Set(poolNames.get(object));
    const taken = objects
      .filter((other) => other !== object && poolNames.get(other)?.some((pool) => own.has(pool)))
      .map((other) => suffixes.get(other.metadata.name))
      .filter((suffix) => suffix !== undefined);
    const next = taken.length === 0 ? 0 : Math.max(...taken.map(Number)) + 1;
    suffixes.set(object.metadata.name, next > MAX_SUFFIX ? undefined : next === 0 ? '' : String(next));
  }
  return suffixes;
}

function validSuffix(text: string | undefined): string | undefined {
  return text !== undefined && /^[1-9]?$/.test(text) ? text : undefined;
}

/** Why an object without a suffix is refused. */
export function tooManySources(kind: string): { reason: string; message: string } {
  const message = `a pool takes at most ${MAX_SUFFIX + 1} objects of kind ${kind}, and its highest suffix is ${MAX_SUFFIX}; put the settings into one of the others`;
  return { reason: 'TooMany', message };
}
