import type {
  MachineConfigPool,
  MachineConfigPoolStatus,
  PoolConditionType,
} from '../machine-config/api/machine-config-pool.js';

interface Counts {
  readonly machineCount: number;
  readonly readyMachineCount: number;
  readonly updatedMachineCount: number;
  readonly unavailableMachineCount: number;
  readonly degradedMachineCount: number;
}

/** A pool's state as Kubernetes has it. */
export interface PoolReport extends Counts {
  readonly name: string;
  /** Name of the rendered config that the nodes shall run; null before the first render. */
  readonly target: string | null;
  /** Name of the rendered config that all nodes were last brought to. */
  readonly current: string | null;
  readonly paused: boolean;
  readonly maxUnavailable: number | string;
  readonly updated: boolean;
  readonly updating: boolean;
  readonly degraded: boolean;
  /** What the conditions say, the most urgent first; empty when Updated. */
  readonly message: string;
  /** False: the status describes an older spec; a controller has still to look, or none runs. */
  readonly observed: boolean;
}

/** The conditions that explain Degraded, before those that explain progress. */
const TELLING: readonly PoolConditionType[] = ['RenderDegraded', 'NodeDegraded', 'Degraded', 'Updating', 'Updated'];

export function reportPool(pool: MachineConfigPool): PoolReport {
  const { spec, status = {}, metadata } = pool;
  const condition = (type: PoolConditionType) => status.conditions?.find((one) => one.type === type);
  const holds = (type: PoolConditionType): boolean => condition(type)?.status === 'True';
  const [updated, degraded] = [holds('Updated'), holds('Degraded')];
  const telling = TELLING.filter((type) => holds(type)).map((type) => condition(type)?.message);
  // Neither updating nor degraded: why it is not updated (paused, nothing rendered) is said there.
  const message = telling.find(Boolean) ?? condition('Updated')?.message;
  return {
    name: metadata.name,
    target: spec.configuration?.name ?? null,
    current: status.configuration?.name ?? null,
    paused: spec.paused === true,
    maxUnavailable: spec.maxUnavailable ?? 1,
    updated,
    updating: holds('Updating'),
    degraded,
    message: (updated && !degraded ? undefined : message) ?? '',
    ...countsOf(status),
    observed: isObserved(pool),
  };
}

function countsOf(status: MachineConfigPoolStatus): Counts {
  const count = (value: number | undefined): number => value ?? 0;
  return {
    machineCount: count(status.machineCount),
    readyMachineCount: count(status.readyMachineCount),
    updatedMachineCount: count(status.updatedMachineCount),
    unavailableMachineCount: count(status.unavailableMachineCount),
    degradedMachineCount: count(status.degradedMachineCount),
  };
}

function isObserved({ metadata, status }: MachineConfigPool): boolean {
  return (status?.observedGeneration ?? 0) >= (metadata.generation ?? 0);
}

/** Every node runs what the pool wants now, and the status knows of what the pool wants now. */
export function isFullyUpdated(pool: PoolReport): boolean {
  return pool.updated && pool.observed && pool.target !== null && pool.target === pool.current;
}
