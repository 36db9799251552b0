import { ApplicationFailure } from '@temporalio/common';
import type { ApiFlavour } from '../../machine-config/api/flavour.js';
import type { MachineConfig } from '../../machine-config/api/machine-config.js';
import type { MachineConfigPool } from '../../machine-config/api/machine-config-pool.js';
import type { NodeObject } from '../../machine-config/pool/facts.js';
import type { FailureCode } from '../../workflows/contract/failure-codes.js';
import type { KubernetesClient, KubernetesObject } from '../kubernetes/client.js';

export type NodeResource = KubernetesObject & NodeObject;
export type PoolResource = KubernetesObject & MachineConfigPool;
export type MachineConfigResource = KubernetesObject & MachineConfig;

/** What a watch shows of one kind: soon, not at once. */
export interface CachedObjects<T> {
  list(): T[];
  get(name: string): T | undefined;
}

/** Asks Temporal whether an update is still running. */
export interface RunningUpdates {
  /** `runId` empty: any run of that workflow. */
  isRunning(node: string, runId: string): Promise<boolean>;
}

export interface ControlDependencies {
  readonly client: KubernetesClient;
  readonly flavour: ApiFlavour;
  /** uid of the namespace kube-system. */
  readonly cluster: string;
  readonly nodes: CachedObjects<NodeResource>;
  readonly pools: CachedObjects<PoolResource>;
  readonly configs: CachedObjects<MachineConfigResource>;
  readonly updates: RunningUpdates;
  /** Epoch milliseconds. */
  readonly now: () => number;
}

/** @throws WrongCluster when a workflow of another Kubernetes cluster uses this Temporal namespace. */
export function refuseOtherCluster(ours: string, theirs: string): void {
  if (ours === theirs) return;
  throw ApplicationFailure.nonRetryable(
    `This worker belongs to the cluster ${ours}, the workflow to ${theirs}: one Temporal namespace serves one cluster`,
    'WrongCluster' satisfies FailureCode,
  );
}
