import type { MachineConfigResource, PoolResource } from '../activities/cluster/control-dependencies.js';
import type { ControllerConfigResource } from '../activities/cluster/controller-config.js';
import type { SourceResource } from '../activities/cluster/source.js';
import {
  concernsSource,
  controllerConfigConcernsSources,
  machineConfigConcernsSources,
  poolConcernsSources,
} from '../activities/cluster/source-hints.js';
import type { WatchCache } from '../activities/kubernetes/watch-cache.js';
import type { SourceKind } from '../workflows/contract/activities.js';

export interface SourceWatches {
  readonly pools: WatchCache<PoolResource>;
  readonly machineConfigs: WatchCache<MachineConfigResource>;
  readonly controllerConfigs: WatchCache<ControllerConfigResource>;
  /** Of both kinds; what is generated from them belongs to the ControllerConfig. */
  readonly mirrorSets: readonly WatchCache<SourceResource>[];
  /** A cluster need not have every kind. Without the ControllerConfig. */
  readonly sources: ReadonlyMap<SourceKind, WatchCache<SourceResource>>;
}

/**
 * Calls `hint` for the kinds of which something has to be generated anew. Returns a function that does so for all that
 * the cluster uses: for the repetition that makes lost signals good.
 */
export function hintOfSources(watches: SourceWatches, hint: (kind: SourceKind) => void): () => void {
  const { pools, machineConfigs, controllerConfigs, mirrorSets, sources } = watches;
  const isGenerated = (kind: SourceKind): boolean =>
    machineConfigs.list().some(({ metadata }) => metadata.ownerReferences?.some((owner) => owner.kind === kind));
  /** A kind that nobody uses has no workflow. */
  const all = (): void => {
    for (const [kind, cache] of sources) if (cache.list().length > 0 || isGenerated(kind)) hint(kind);
    const hasAny = [controllerConfigs, ...mirrorSets].some((cache) => cache.list().length > 0);
    if (hasAny || isGenerated('ControllerConfig')) hint('ControllerConfig');
  };
  for (const cache of mirrorSets) {
    cache.onChange((change) => {
      if (concernsSource(change)) hint('ControllerConfig');
    });
  }
  for (const [kind, cache] of sources) {
    cache.onChange((change) => {
      if (concernsSource(change)) hint(kind);
    });
  }
  pools.onChange((change) => {
    if (poolConcernsSources(change)) all();
  });
  machineConfigs.onChange((change) => {
    if (machineConfigConcernsSources(change)) all();
  });
  controllerConfigs.onChange((change) => {
    if (!controllerConfigConcernsSources(change)) return;
    all();
    hint('ControllerConfig');
  });
  return all;
}
