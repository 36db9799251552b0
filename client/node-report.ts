import { poolSelectors } from '../activities/cluster/pool-view.js';
import { KINDS, type KubernetesObject } from '../activities/kubernetes/client.js';
import type { ApiFlavour } from '../machine-config/api/flavour.js';
import { nodeFacts, type NodeFacts, type NodeObject } from '../machine-config/pool/facts.js';
import { poolOf, type PoolSelector } from '../machine-config/pool/membership.js';
import { listPools, type DrydockCluster } from './rollouts.js';

export type NodeWithFacts = KubernetesObject & NodeObject;

/** One node, as `drydock nodes` shows it. */
export interface NodeReport {
  readonly name: string;
  /** Null: no pool selects it, or several do (then `reason` says so). */
  readonly pool: string | null;
  /** `Unmanaged`: no node worker has registered on it. */
  readonly state: string;
  readonly current: string | null;
  readonly desired: string | null;
  readonly ready: boolean;
  readonly schedulable: boolean;
  /** Version of its node worker. */
  readonly worker: string | null;
  readonly createdAt: string;
  readonly reason: string;
}

export function reportNode(node: NodeObject, pools: readonly PoolSelector[], flavour: ApiFlavour): NodeReport {
  const facts = nodeFacts(node, flavour);
  const membership = poolOf(facts, pools);
  const held = membership.kind === 'conflict' ? membership.sentence : undefined;
  return {
    name: facts.name,
    pool: membership.kind === 'pool' ? membership.pool : null,
    state: facts.state ?? (facts.worker === undefined ? 'Unmanaged' : ''),
    current: facts.current ?? null,
    desired: facts.desired ?? null,
    ready: facts.ready,
    schedulable: !facts.unschedulable,
    worker: facts.worker ?? null,
    createdAt: facts.createdAt,
    reason: held ?? reasonOf(facts),
  };
}

function reasonOf({ reason, notReadyBecause }: NodeFacts): string {
  return reason ?? notReadyBecause ?? '';
}

/** All nodes, or those of one pool, by pool and name. */
export async function nodeReports(cluster: DrydockCluster, pool?: string): Promise<NodeReport[]> {
  const [nodes, pools] = await Promise.all([cluster.kubernetes.list<NodeWithFacts>(KINDS.node), listPools(cluster)]);
  const selectors = poolSelectors(pools);
  const reports = nodes.map((node) => reportNode(node, selectors, cluster.flavour));
  return reports.filter((report) => pool === undefined || report.pool === pool).sort(byPoolAndName);
}

/** worker-2 before worker-10. */
const names = new Intl.Collator('en', { numeric: true });

function byPoolAndName(left: NodeReport, right: NodeReport): number {
  return names.compare(left.pool ?? '', right.pool ?? '') || names.compare(left.name, right.name);
}
