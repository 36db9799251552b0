import type { MachineConfig } from '../api/machine-config.js';

/** The object that MachineConfigs are generated from. */
export interface SourceReference {
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
  readonly generation: number;
}

/** Why a source object cannot be turned into MachineConfigs. */
export interface SourceProblem {
  /** One word for programs, such as `InvalidField`. */
  readonly reason: string;
  /** One line for people: what, where, why, what to do. */
  readonly message: string;
}

/** What a source object is turned into, or why it cannot be. */
export interface SourceResult {
  readonly source: SourceReference;
  /**
   * Without ownerReferences: the activity adds them. What the object owned before and is not here is deleted, except
   * where there is a problem: then everything stays as it is.
   */
  readonly configs: readonly MachineConfig[];
  readonly problem?: SourceProblem;
  /** One line each; shown in the message of the condition. */
  readonly warnings: readonly string[];
  /**
   * Where an object has parts that are generated each by itself: why each could not be, null if it could. What
   * was generated for that part before is among `configs`.
   */
  readonly parts?: Readonly<Record<string, SourceProblem | null>>;
  /** What tells its generated names from those of others of its kind; the activity keeps it in an annotation. Absent: its kind has none. */
  readonly suffix?: string;
}

/** All objects of one kind, and what they depend on, to results. Pure: same inputs, same bytes, in any order of the lists. */
export type Generate<Inputs> = (inputs: Inputs) => SourceResult[];
