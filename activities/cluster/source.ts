import type { ResourceKind } from '../../machine-config/api/flavour.js';
import type { SourceStatus } from '../../machine-config/api/source-status.js';
import type { SourceResult } from '../../machine-config/sources/source.js';
import type { KubernetesObject } from '../kubernetes/client.js';
import type { ControlDependencies, MachineConfigResource } from './control-dependencies.js';

/** An object that MachineConfigs are generated from, as the API has it. */
export type SourceResource = KubernetesObject & {
  readonly metadata: { readonly finalizers?: string[] };
  readonly status?: SourceStatus;
};

/** What one kind has of its own. */
export interface Source {
  readonly resource: ResourceKind;
  /** Reads what else it depends on, and generates. */
  generate(
    dependencies: ControlDependencies,
    objects: readonly SourceResource[],
    machineConfigs: readonly MachineConfigResource[],
  ): Promise<SourceResult[]>;
  /** What an object's status says of a result; absent: as sourceStatus has it. */
  status?(previous: unknown, result: SourceResult, now: string): object;
  /** Says what became of it where objects of other kinds had a part in it. */
  finish?(dependencies: ControlDependencies, results: readonly SourceResult[]): Promise<void>;
}
