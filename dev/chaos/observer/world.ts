import { DRYDOCK_ANNOTATIONS, type ApiFlavour } from '../../../machine-config/api/flavour.js';
import type { StoredChange } from '../etcd-watch.js';
import { HAND_ANNOTATION, poolOfLabels } from '../cast.js';

/** A Node as anybody can read it. Empty texts: it does not say. */
export interface SeenNode {
  readonly name: string;
  readonly uid: string;
  /** By its labels. */
  readonly pool: string;
  readonly managed: boolean;
  readonly current: string;
  readonly desired: string;
  readonly state: string;
  readonly applying: string;
  readonly cordonedFor: string;
  readonly failure: string;
  /** Why somebody keeps it as it is. */
  readonly hold: string;
  /** Its cordon was left to whoever holds it. */
  readonly heldCordon: boolean;
  /** Counts what people have done to it. */
  readonly hand: string;
  readonly unschedulable: boolean;
  readonly ready: boolean;
  readonly bootId: string;
}

export interface SeenPool {
  readonly name: string;
  readonly maxUnavailable: number | string;
  readonly paused: boolean;
  /** The rendered config that its members shall run. */
  readonly target: string;
  /** The slots that were granted lately: which node, and when. */
  readonly grants: readonly { readonly node: string; readonly at: string }[];
  readonly updated: boolean;
  /** For what it says that it waits. */
  readonly waiting: string;
}

export interface SeenPod {
  /** namespace/name */
  readonly name: string;
  readonly namespace: string;
  readonly node: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly owned: boolean;
  readonly ready: boolean;
  readonly ending: boolean;
  /** It ends because somebody asked for its eviction. */
  readonly evicted: boolean;
  /** It ends for another reason that the cluster gives, such as a Node that is gone. */
  readonly disrupted: boolean;
}

export interface SeenBudget {
  readonly name: string;
  readonly namespace: string;
  readonly minAvailable: number;
  readonly labels: Readonly<Record<string, string>>;
}

interface Seen<Kind extends string, T> {
  readonly kind: Kind;
  readonly name: string;
  readonly before: T | undefined;
  readonly after: T | undefined;
}
/** One change, as it concerns the checks. */
export type SeenChange =
  Seen<'node', SeenNode> | Seen<'pool', SeenPool> | Seen<'pod', SeenPod> | Seen<'budget', SeenBudget>;

interface ObjectInStore {
  readonly metadata?: {
    readonly name?: string;
    readonly namespace?: string;
    readonly uid?: string;
    readonly deletionTimestamp?: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
    readonly ownerReferences?: readonly object[];
  };
  readonly spec?: {
    readonly unschedulable?: boolean;
    readonly nodeName?: string;
    readonly maxUnavailable?: number | string;
    readonly paused?: boolean;
    readonly configuration?: { readonly name?: string };
    readonly minAvailable?: number;
    readonly selector?: { readonly matchLabels?: Readonly<Record<string, string>> };
  };
  readonly status?: {
    readonly conditions?: readonly {
      readonly type: string;
      readonly status: string;
      readonly reason?: string;
      readonly message?: string;
    }[];
    readonly nodeInfo?: { readonly bootID?: string };
  };
}

/** Everything that the checks look at, as it is after the last change. */
export class World {
  readonly nodes = new Map<string, SeenNode>();
  readonly pools = new Map<string, SeenPool>();
  readonly pods = new Map<string, SeenPod>();
  readonly budgets = new Map<string, SeenBudget>();
  readonly #flavour: ApiFlavour;
  readonly #poolPrefix: string;

  constructor(flavour: ApiFlavour) {
    this.#flavour = flavour;
    this.#poolPrefix = `${flavour.machineConfigPool.group}/${flavour.machineConfigPool.plural}/`;
  }

  /** Undefined: it concerns nobody here, or shows nothing new. */
  see({ key, object }: StoredChange): SeenChange | undefined {
    const path = key.slice('/registry/'.length);
    const stored = object === undefined || object === null ? undefined : object;
    const named = (prefix: string) => (path.startsWith(prefix) ? path.slice(prefix.length) : undefined);
    const node = named('minions/');
    if (node !== undefined) return change('node', this.nodes, node, stored && this.#node(stored));
    const pool = named(this.#poolPrefix);
    if (pool !== undefined) return change('pool', this.pools, pool, stored && poolIn(stored));
    const pod = named('pods/');
    if (pod !== undefined) return change('pod', this.pods, pod, stored && podIn(stored));
    const budget = named('poddisruptionbudgets/');
    if (budget !== undefined) return change('budget', this.budgets, budget, stored && budgetIn(stored));
    return undefined;
  }

  members(pool: string): SeenNode[] {
    return [...this.nodes.values()].filter((node) => node.pool === pool);
  }

  #node({ metadata = {}, spec = {}, status = {} }: ObjectInStore): SeenNode {
    const annotation = (key: string): string => metadata.annotations?.[key] ?? '';
    const { currentConfig, desiredConfig, state } = this.#flavour.annotations;
    return {
      name: metadata.name ?? '',
      uid: metadata.uid ?? '',
      pool: poolOfLabels(metadata.labels ?? {}),
      managed: annotation(DRYDOCK_ANNOTATIONS.worker) !== '',
      current: annotation(currentConfig),
      desired: annotation(desiredConfig),
      state: annotation(state),
      applying: annotation(DRYDOCK_ANNOTATIONS.applying),
      cordonedFor: annotation(DRYDOCK_ANNOTATIONS.cordonedFor),
      failure: annotation(DRYDOCK_ANNOTATIONS.failure),
      hold: annotation(DRYDOCK_ANNOTATIONS.hold),
      heldCordon: annotation(DRYDOCK_ANNOTATIONS.heldCordon) !== '',
      hand: annotation(HAND_ANNOTATION),
      unschedulable: spec.unschedulable === true,
      ready: isTrue(status, 'Ready'),
      bootId: status.nodeInfo?.bootID ?? '',
    };
  }
}

function change<Kind extends SeenChange['kind'], T extends object>(
  kind: Kind,
  known: Map<string, T>,
  name: string,
  after: T | undefined,
): Seen<Kind, T> | undefined {
  const before = known.get(name);
  if (JSON.stringify(before) === JSON.stringify(after)) return undefined;
  if (after === undefined) known.delete(name);
  else known.set(name, after);
  return { kind, name, before, after };
}

function isTrue(status: ObjectInStore['status'], type: string): boolean {
  return status?.conditions?.some((condition) => condition.type === type && condition.status === 'True') === true;
}

function poolIn({ metadata = {}, spec = {}, status }: ObjectInStore): SeenPool {
  return {
    name: metadata.name ?? '',
    maxUnavailable: spec.maxUnavailable ?? 1,
    paused: spec.paused === true,
    target: spec.configuration?.name ?? '',
    grants: grantsIn(metadata.annotations?.[DRYDOCK_ANNOTATIONS.lastGrant]),
    updated: isTrue(status, 'Updated'),
    waiting: status?.conditions?.find(({ type, status: is }) => type === 'Waiting' && is === 'True')?.message ?? '',
  };
}

interface GrantRecord {
  readonly node?: unknown;
  readonly at?: unknown;
  readonly pending?: unknown;
}

/** One grant, or a list of those that are on their way. */
function grantsIn(text: string | undefined): SeenPool['grants'] {
  let record: GrantRecord;
  try {
    record = JSON.parse(text ?? '{}') as GrantRecord;
  } catch {
    return [];
  }
  const all = [record, ...(Array.isArray(record.pending) ? (record.pending as GrantRecord[]) : [])];
  return all.flatMap(({ node, at }) => (typeof node === 'string' && typeof at === 'string' ? [{ node, at }] : []));
}

function podIn({ metadata = {}, spec = {}, status }: ObjectInStore): SeenPod {
  const disruption = status?.conditions?.find(({ type }) => type === 'DisruptionTarget')?.reason;
  const namespace = metadata.namespace ?? '';
  return {
    name: `${namespace}/${metadata.name ?? ''}`,
    namespace,
    node: spec.nodeName ?? '',
    labels: metadata.labels ?? {},
    owned: (metadata.ownerReferences ?? []).length > 0,
    ready: isTrue(status, 'Ready'),
    ending: metadata.deletionTimestamp !== undefined,
    evicted: disruption === 'EvictionByEvictionAPI',
    disrupted: disruption !== undefined && disruption !== 'EvictionByEvictionAPI',
  };
}

function budgetIn({ metadata = {}, spec = {} }: ObjectInStore): SeenBudget {
  return {
    name: metadata.name ?? '',
    namespace: metadata.namespace ?? '',
    minAvailable: spec.minAvailable ?? 0,
    labels: spec.selector?.matchLabels ?? {},
  };
}
