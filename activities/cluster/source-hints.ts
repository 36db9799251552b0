import { isDeepStrictEqual } from 'node:util';
import type { CacheChange } from '../kubernetes/watch-cache.js';
import type { ControllerConfigResource } from './controller-config.js';
import type { MachineConfigResource, PoolResource } from './control-dependencies.js';
import type { SourceResource } from './source.js';

/*
 * Which changes matter for what is generated from sources. Our own writes of status do not; those of generated configs
 * do, since one that somebody changed or deleted is made good.
 */

type Seen<T> = (object: T) => unknown;

function differs<T>({ type, before, object }: CacheChange<T>, seen: Seen<T>): boolean {
  return type === 'DELETED' || before === undefined || !isDeepStrictEqual(seen(before), seen(object));
}

/** What people say in it, and that it is about to go. */
export function concernsSource(change: CacheChange<SourceResource>): boolean {
  return differs(change, ({ metadata, ...object }) => {
    const { labels, annotations, finalizers, deletionTimestamp } = metadata;
    return { labels, annotations, finalizers, deletionTimestamp, spec: (object as { spec?: unknown }).spec };
  });
}

/** Which pools there are, by which labels they are chosen, and what they select; not how far they are. */
export function poolConcernsSources(change: CacheChange<PoolResource>): boolean {
  return differs(change, ({ metadata, spec }) => ({
    labels: metadata.labels,
    deletionTimestamp: metadata.deletionTimestamp,
    machineConfigSelector: spec.machineConfigSelector,
    nodeSelector: spec.nodeSelector,
  }));
}

/** What a generated config builds on, or the generated config itself. Rendered configs are made of them, not the other way round. */
export function machineConfigConcernsSources(change: CacheChange<MachineConfigResource>): boolean {
  const isRendered = change.object.metadata.ownerReferences?.some(({ kind }) => kind === 'MachineConfigPool');
  if (isRendered) return false;
  return differs(change, ({ metadata, spec }) => {
    const { labels, annotations, ownerReferences } = metadata;
    return { labels, annotations, ownerReferences, spec };
  });
}

export function controllerConfigConcernsSources(change: CacheChange<ControllerConfigResource>): boolean {
  // An annotation asks for another look.
  return differs(change, ({ metadata, spec }) => [spec, metadata.annotations, metadata.deletionTimestamp]);
}
