import type { MachineConfig } from '../../machine-config/api/machine-config.js';
import type { Disruption } from '../../workflows/contract/activities.js';
import type { OwnNode } from './own-node.js';

/** So young, what was read of the own Node counts as read now: the API server would not be asked more often in a drain. */
const RECENT_MS = 10_000;

/** What a worker remembers of a drain from slice to slice; lost with the process, which costs no more than courtesy. */
export interface DrainMemory {
  /** Epoch milliseconds at which it began; no two drains of a node have the same. */
  readonly since: number;
  /** `namespace/Kind/name` of what owns the evicted pods. */
  readonly owners: Set<string>;
  /** Name of a volume in the Node's status to the evicted pod that used it. */
  readonly volumes: Map<string, string>;
  /** Epoch milliseconds since which something blocks it without a break. */
  blockedSince?: number;
  /** Epoch milliseconds at which an Event told of it last, and the sentence. */
  toldAt?: number;
  told?: string;
  /** Epoch milliseconds at which the last pod was gone. */
  emptySince?: number;
  /** Nothing was left to move. */
  isDone?: boolean;
}

/**
 * What the worker of a node remembers between its steps, so that it asks the API server less. Nothing is believed of it
 * that is not either written back under its resourceVersion, and so proved, or only a few seconds old.
 */
export class NodeMemory {
  #own: { readonly node: OwnNode; readonly at: number } | undefined;
  #drain: DrainMemory | undefined;
  #config: MachineConfig | undefined;
  #cost: { readonly target: string; readonly cost: Disruption } | undefined;

  remember(node: OwnNode, now: Date): void {
    this.#own = { node, at: now.getTime() };
  }

  /** The own Node as it was seen last, however long ago: good for nothing but a compare-and-swap. */
  recall(uid: string): OwnNode | undefined {
    return this.#own?.node.facts.uid === uid ? this.#own.node : undefined;
  }

  /** As `recall`, if that was seconds ago. */
  recallRecent(uid: string, now: Date): OwnNode | undefined {
    const age = now.getTime() - (this.#own?.at ?? 0);
    return age >= 0 && age <= RECENT_MS ? this.recall(uid) : undefined;
  }

  forget(): void {
    this.#own = undefined;
  }

  /** Of the drain that began at `since`; a new one if it is of another. */
  drain(since: number): DrainMemory {
    if (this.#drain?.since !== since) this.#drain = newDrainMemory(since);
    return this.#drain;
  }

  /** The node was schedulable in between: pods may have come since it was empty. */
  reopenDrain(): void {
    if (this.#drain !== undefined) this.#drain.isDone = false;
  }

  /** A rendered config that was trusted when it was fetched; its name is the hash of its contents. */
  config(name: string): MachineConfig | undefined {
    return this.#config?.metadata.name === name ? this.#config : undefined;
  }

  keepConfig(config: MachineConfig): void {
    this.#config = config;
  }

  /** What the update to the target costs, as it was planned last; undefined: it was not, since this worker runs. */
  cost(target: string): Disruption | undefined {
    return this.#cost?.target === target ? this.#cost.cost : undefined;
  }

  keepCost(target: string, cost: Disruption): void {
    this.#cost = { target, cost };
  }

  /** An update is over: what it needed may be large. */
  clear(): void {
    this.#own = undefined;
    this.#drain = undefined;
    this.#config = undefined;
    this.#cost = undefined;
  }
}

export function newDrainMemory(since: number): DrainMemory {
  return { since, owners: new Set(), volumes: new Map() };
}
