import type { ControllerConfig } from '../api/controller-config.js';
import type { ApiFlavour } from '../api/flavour.js';
import type { MachineConfigPool } from '../api/machine-config-pool.js';
import type { MachineConfigObject } from '../render/select.js';

/** A MachineConfigPool of the cluster, as far as others are judged against it. */
export type PoolOfCluster = Pick<MachineConfigPool, 'metadata' | 'spec'>;

export interface NodeOfCluster {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
}

/** What an object is judged against: the cluster as the watches show it. */
export interface AdmissionContext {
  readonly flavour: ApiFlavour;
  readonly nodes: readonly NodeOfCluster[];
  readonly pools: readonly PoolOfCluster[];
  readonly machineConfigs: readonly MachineConfigObject[];
  /** Says what the nodes are; absent: as if there were none. */
  readonly controllerConfig?: Pick<ControllerConfig, 'spec'> | undefined;
}

/** A change that somebody asks the API server for. */
export interface AdmissionQuestion {
  readonly kind: string;
  readonly object: unknown;
  /** Absent: the object is new. */
  readonly oldObject?: unknown;
}

export interface AdmissionVerdict {
  /** One line, in the words that `drydock render` has for it; absent: the change is allowed. */
  readonly refusal?: string;
  /** Shown to whoever asked, one line each. */
  readonly warnings: readonly string[];
}

export type Judge = (question: AdmissionQuestion, context: AdmissionContext) => AdmissionVerdict;
