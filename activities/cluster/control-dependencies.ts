import { ApplicationFailure } from '@temporalio/common';
import type { ControllerConfig } from '../../machine-config/api/controller-config.js';
import type { ApiFlavour } from '../../machine-config/api/flavour.js';
import type { MachineConfig } from '../../machine-config/api/machine-config.js';
import type { MachineConfigPool } from '../../machine-config/api/machine-config-pool.js';
import type { MachineConfiguration } from '../../machine-config/api/machine-configuration.js';
import type { NodeObject } from '../../machine-config/pool/facts.js';
import type { FailureCode } from '../../workflows/contract/failure-codes.js';
import type { KubernetesClient, KubernetesObject } from '../kubernetes/client.js';
import type { Freshness } from '../kubernetes/watch-cache.js';
import type { MachineConfigNodes } from './machine-config-nodes.js';
import type { PoolEvents } from './pool-events.js';

export type NodeResource = KubernetesObject & NodeObject;
export type PoolResource = KubernetesObject & MachineConfigPool;
export type MachineConfigResource = KubernetesObject & MachineConfig;
export type MachineConfigurationResource = KubernetesObject & MachineConfiguration;

/** What a watch shows of one kind: soon, not at once. */
export interface CachedObjects<T> {
  list(): T[];
  get(name: string): T | undefined;
  /** How far it has come; absent or undefined: not known, and nothing can be granted on what it shows. */
  freshness?(): Freshness | undefined;
  /** Waits, not for ever, until it has come to a version that is enough. */
  reaches?(isEnough: (version: string) => boolean, timeoutMs: number): Promise<boolean>;
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
  /** Absent: they are read when they are needed. */
  readonly configurations?: CachedObjects<MachineConfigurationResource>;
  /** Absent: nodes are let read what it names only when what is generated from it is looked at. */
  readonly controllerConfigs?: CachedObjects<KubernetesObject & ControllerConfig>;
  /** The Node that this control worker itself runs on; absent: none of the cluster's, or not known. */
  readonly ownNode?: string;
  readonly updates: RunningUpdates;
  /** Tells what happens to pools; absent: nobody is told. */
  readonly events?: PoolEvents;
  /** Shows the members of pools one by one; absent: they are not shown. */
  readonly machineConfigNodes?: MachineConfigNodes;
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
