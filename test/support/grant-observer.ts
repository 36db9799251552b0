import { KINDS, type KubernetesClient, type KubernetesObject } from '../../activities/kubernetes/client.js';
import { DRYDOCK_ANNOTATIONS, EMPTY_CONFIG_NAME, type ApiFlavour } from '../../machine-config/api/flavour.js';
import type { MachineConfigPool } from '../../machine-config/api/machine-config-pool.js';

type Node = KubernetesObject & { spec?: { unschedulable?: boolean }; status?: { nodeInfo?: { bootID?: string } } };
type Pool = KubernetesObject & MachineConfigPool;

interface Seen {
  readonly desired: string;
  readonly current: string;
  readonly unschedulable: boolean;
  readonly bootId: string;
}

/**
 * Watches Nodes and pools at the API server, with no code of the product's, and writes down whatever no grant of
 * Kubernetes explains: a config that no pool wanted, a cordon or a boot without a grant. It counts how many nodes were out
 * of service at once.
 */
export class GrantObserver {
  readonly violations: string[] = [];
  readonly #flavour: ApiFlavour;
  readonly #pools: ReadonlySet<string>;
  readonly #stop = new AbortController();
  readonly #wanted = new Set([EMPTY_CONFIG_NAME]);
  readonly #nodes = new Map<string, Seen>();
  readonly #cordons = new Map<string, number>();
  #mostTaken = 0;

  /** `pools`: those whose wishes count. */
  constructor(client: KubernetesClient, flavour: ApiFlavour, pools: readonly string[]) {
    this.#flavour = flavour;
    this.#pools = new Set(pools);
    client.watch<Pool>(flavour.machineConfigPool, { onChange: (_, seen) => this.#seePool(seen) }, this.#stop.signal);
    client.watch<Node>(KINDS.node, { onChange: (type, node) => this.#seeNode(type, node) }, this.#stop.signal);
  }

  /** What was seen so far counts no more: machines of the lab come up, and tell their boots, without anybody's grant. */
  begin(): void {
    this.violations.length = 0;
    this.#mostTaken = 0;
    this.#cordons.clear();
  }

  /** A pool was seen to want this config. */
  knows(config: string): boolean {
    return this.#wanted.has(config);
  }

  /** Most nodes out of service through us, or granted it, at one instant. */
  get mostTaken(): number {
    return this.#mostTaken;
  }

  /** How often it was taken out of service. */
  cordonsOf(node: string): number {
    return this.#cordons.get(node) ?? 0;
  }

  stop(): void {
    this.#stop.abort();
  }

  #seePool({ metadata, spec }: Pool): void {
    if (this.#pools.has(metadata.name) && spec.configuration?.name) this.#wanted.add(spec.configuration.name);
  }

  #seeNode(type: 'ADDED' | 'MODIFIED' | 'DELETED', node: Node): void {
    const { name, annotations = {} } = node.metadata;
    if (type === 'DELETED') {
      this.#nodes.delete(name);
      return;
    }
    const { currentConfig, desiredConfig } = this.#flavour.annotations;
    const current = annotations[currentConfig] ?? EMPTY_CONFIG_NAME;
    const now: Seen = {
      current,
      desired: annotations[desiredConfig] ?? current,
      unschedulable: node.spec?.unschedulable === true,
      bootId: node.status?.nodeInfo?.bootID ?? '',
    };
    this.#judge(name, this.#nodes.get(name), now, annotations[DRYDOCK_ANNOTATIONS.applying]);
    this.#nodes.set(name, now);
    const taken = [...this.#nodes.values()].filter((seen) => seen.desired !== seen.current || seen.unschedulable);
    this.#mostTaken = Math.max(this.#mostTaken, taken.length);
  }

  #judge(name: string, before: Seen | undefined, now: Seen, applying: string | undefined): void {
    const tell = (what: string) => this.violations.push(`${name}: ${what}`);
    const configs = [now.current, now.desired, ...(applying === undefined ? [] : [applying])];
    for (const config of configs) if (!this.#wanted.has(config)) tell(`${config} was never wanted by a pool`);
    if (before === undefined) return;
    if (now.unschedulable && !before.unschedulable) this.#cordons.set(name, this.cordonsOf(name) + 1);
    const wasGranted = before.desired !== before.current;
    if (now.unschedulable && !before.unschedulable && !wasGranted) tell('cordoned without a grant');
    if (now.bootId !== before.bootId && before.bootId !== '' && !wasGranted) tell('booted without a grant');
    if (now.current !== before.current && now.current !== before.desired) tell('runs what it was not granted');
  }
}
