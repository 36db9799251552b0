import { KINDS, type KubernetesClient, type KubernetesObject } from '../../activities/kubernetes/client.js';
import type { ApiFlavour } from '../../machine-config/api/flavour.js';

type Node = KubernetesObject & {
  spec?: { unschedulable?: boolean };
  status?: { conditions?: { type: string; status: string }[]; nodeInfo?: { bootID?: string } };
};

export interface ObservedNode {
  readonly name: string;
  readonly pool: string;
  readonly zone: string;
  /** ISO 8601, as the Node says now: the lab gives Nodes their age after they were created. */
  createdAt: string;
  state: string;
  current: string;
  desired: string;
  ready: boolean;
  schedulable: boolean;
  /** ISO 8601: first out of service or granted another config, after `begin`. */
  startedAt: string | null;
  /** ISO 8601: back in service, Done, on another config than at `begin`. */
  finishedAt: string | null;
  /** Boot IDs seen in the Node since `begin`. */
  readonly bootIds: Set<string>;
}

/**
 * Watches the Nodes and nothing else, and knows nothing of Drydock's own counters: what it says of overlap, order and
 * reboots is what any user of the cluster could see.
 */
export class NodeObserver {
  readonly nodes = new Map<string, ObservedNode>();
  readonly #flavour: ApiFlavour;
  readonly #poolOf: (labels: Readonly<Record<string, string>>) => string;
  readonly #stop = new AbortController();
  readonly #maxOverlap = new Map<string, number>();
  #began = false;
  #unschedulable = new Set<string>();
  #initial = new Map<string, string>();
  #listener: (node: ObservedNode) => void = () => undefined;

  constructor(
    client: KubernetesClient,
    flavour: ApiFlavour,
    poolOf: (labels: Readonly<Record<string, string>>) => string,
  ) {
    this.#flavour = flavour;
    this.#poolOf = poolOf;
    client.watch<Node>(KINDS.node, { onChange: (type, node) => this.#see(type, node) }, this.#stop.signal);
  }

  /** Called at each change that an administrator would see. */
  onChange(listener: (node: ObservedNode) => void): void {
    this.#listener = listener;
  }

  /** From here on starts, ends, boots and overlaps count. */
  begin(): void {
    this.#began = true;
    this.#maxOverlap.clear();
    this.#initial = new Map([...this.nodes.values()].map(({ name, current }) => [name, current]));
    for (const node of this.nodes.values()) {
      node.startedAt = null;
      node.finishedAt = null;
      const [...seen] = node.bootIds;
      for (const bootId of seen.slice(0, -1)) node.bootIds.delete(bootId);
    }
  }

  /** Highest number of the pool's nodes that were out of service at one instant since `begin`. */
  maxOverlap(pool: string): number {
    return this.#maxOverlap.get(pool) ?? 0;
  }

  /** The names of the nodes that are out of service for Pods at any time from now on; filled as it happens. */
  recordUnschedulable(): ReadonlySet<string> {
    this.#unschedulable = new Set();
    return this.#unschedulable;
  }

  stop(): void {
    this.#stop.abort();
  }

  #see(type: 'ADDED' | 'MODIFIED' | 'DELETED', object: Node): void {
    const { name } = object.metadata;
    if (type === 'DELETED') {
      this.nodes.delete(name);
      return;
    }
    const node = this.nodes.get(name) ?? this.#firstSight(object);
    const before = visible(node);
    Object.assign(node, this.#shown(object));
    const bootId = object.status?.nodeInfo?.bootID;
    if (bootId !== undefined) node.bootIds.add(bootId);
    if (!node.schedulable) this.#unschedulable.add(name);
    this.#note(node);
    if (visible(node) !== before) this.#listener(node);
  }

  #shown({ metadata, spec, status }: Node) {
    const { state, currentConfig, desiredConfig } = this.#flavour.annotations;
    const annotation = (key: string): string => metadata.annotations?.[key] ?? '';
    return {
      createdAt: metadata.creationTimestamp ?? '',
      state: annotation(state),
      current: annotation(currentConfig),
      desired: annotation(desiredConfig),
      ready: status?.conditions?.some((one) => one.type === 'Ready' && one.status === 'True') === true,
      schedulable: spec?.unschedulable !== true,
    };
  }

  #note(node: ObservedNode): void {
    if (!this.#began) return;
    const now = new Date().toISOString();
    const down = [...this.nodes.values()].filter((one) => one.pool === node.pool && isDown(one)).length;
    if (down > this.maxOverlap(node.pool)) this.#maxOverlap.set(node.pool, down);
    if (isDown(node) || (node.desired !== '' && node.desired !== node.current)) node.startedAt ??= now;
    const isBack = !isDown(node) && node.state === 'Done' && node.current === node.desired;
    if (isBack && node.startedAt !== null && node.current !== this.#initial.get(node.name)) node.finishedAt ??= now;
  }

  #firstSight({ metadata }: Node): ObservedNode {
    const node: ObservedNode = {
      name: metadata.name,
      pool: this.#poolOf(metadata.labels ?? {}),
      zone: metadata.labels?.['topology.kubernetes.io/zone'] ?? '',
      createdAt: '',
      state: '',
      current: '',
      desired: '',
      ready: false,
      schedulable: true,
      startedAt: null,
      finishedAt: null,
      bootIds: new Set(),
    };
    this.nodes.set(metadata.name, node);
    return node;
  }
}

function isDown({ ready, schedulable }: ObservedNode): boolean {
  return !ready || !schedulable;
}

function visible({ state, current, desired, ready, schedulable }: ObservedNode): string {
  return [state, current, desired, ready, schedulable].join(' ');
}
