import type { NodeResource } from '../../activities/cluster/control-dependencies.js';
import { KINDS } from '../../activities/kubernetes/client.js';
import { DRYDOCK_ANNOTATIONS, EMPTY_CONFIG_NAME } from '../../machine-config/api/flavour.js';
import type { FakeCluster } from './fake-cluster.js';
import { flavour } from './workflow-lab.js';

interface Machine {
  readonly uid: string;
  cordons: number;
  cordonedByUs: boolean;
}

/**
 * What anybody could count who watches the Nodes of a pool, with no code of the product's: how often each machine was
 * cordoned by us, and how many were out of service through us, or granted it, at one instant.
 */
export class PoolLedger {
  readonly #machines = new Map<string, Machine>();
  readonly #taken = new Set<string>();
  #mostTaken = 0;

  /** Members are the Nodes whose label `pool` has this value at that moment. */
  constructor(cluster: FakeCluster, pool: string) {
    cluster.observe<NodeResource>(KINDS.node, (type, node) => {
      const isMember = type !== 'DELETED' && node.metadata.labels?.['pool'] === pool;
      this.#countTaken(node, isMember);
      this.#countCordons(node);
    });
  }

  get mostTaken(): number {
    return this.#mostTaken;
  }

  /** Counts anew, for a limit that has changed. */
  forgetMost(): void {
    this.#mostTaken = this.#taken.size;
  }

  /** Of the machine that has this name now: another one of the same name is counted anew. */
  cordonsOf(node: string): number {
    return this.#machines.get(node)?.cordons ?? 0;
  }

  #countTaken(node: NodeResource, isMember: boolean): void {
    if (isMember && isTaken(node)) this.#taken.add(node.metadata.name);
    else this.#taken.delete(node.metadata.name);
    this.#mostTaken = Math.max(this.#mostTaken, this.#taken.size);
  }

  #countCordons(node: NodeResource): void {
    const { name, uid = '' } = node.metadata;
    const known = this.#machines.get(name);
    const machine = known?.uid === uid ? known : { uid, cordons: 0, cordonedByUs: false };
    const cordonedByUs = isCordonedByUs(node);
    if (cordonedByUs && !machine.cordonedByUs) machine.cordons += 1;
    machine.cordonedByUs = cordonedByUs;
    this.#machines.set(name, machine);
  }
}

function isCordonedByUs({ metadata, spec }: NodeResource): boolean {
  return spec?.unschedulable === true && metadata.annotations?.[DRYDOCK_ANNOTATIONS.cordonedFor] !== undefined;
}

/** It was granted another config than the one it runs, or is out of service through us. */
function isTaken(node: NodeResource): boolean {
  const { annotations = {} } = node.metadata;
  const { currentConfig, desiredConfig } = flavour.annotations;
  const current = annotations[currentConfig] ?? EMPTY_CONFIG_NAME;
  const desired = annotations[desiredConfig] ?? current;
  return desired !== current || isCordonedByUs(node) || annotations[DRYDOCK_ANNOTATIONS.applying] !== undefined;
}
