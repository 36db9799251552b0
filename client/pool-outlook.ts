import { poolFacts, poolSelectors } from '../activities/cluster/pool-view.js';
import type { MachineConfigurationResource, NodeResource } from '../activities/cluster/control-dependencies.js';
import { stopReason } from '../activities/cluster/stop-switch.js';
import { KINDS } from '../activities/kubernetes/client.js';
import { ifThere } from '../activities/kubernetes/failures.js';
import type { MachineConfigPool } from '../machine-config/api/machine-config-pool.js';
import { MACHINE_CONFIGURATION_NAME } from '../machine-config/api/machine-configuration.js';
import { nodeFacts, type NodeFacts, type PoolFacts } from '../machine-config/pool/facts.js';
import { limitOf } from '../machine-config/pool/max-unavailable.js';
import { membersOf } from '../machine-config/pool/membership.js';
import type { RolloutFacts } from '../machine-config/pool/policy/rollout-facts.js';
import { listPools, type DrydockCluster } from './rollouts.js';

/** The Nodes, the pools and the stop, as Kubernetes has them now. */
export interface ClusterLook {
  readonly nodes: readonly NodeFacts[];
  readonly pools: readonly MachineConfigPool[];
  /** Why everything is stopped. */
  readonly stop: string | undefined;
}

/** Reads all that commands need to judge the rollouts of any pool. */
export async function lookAtCluster(cluster: DrydockCluster): Promise<ClusterLook> {
  const { kubernetes, flavour } = cluster;
  // First: what is wrong where the API is not installed is said best of the pools.
  const pools = await listPools(cluster);
  const [nodes, configuration] = await Promise.all([
    kubernetes.list<NodeResource>(KINDS.node),
    machineConfiguration(cluster),
  ]);
  return { nodes: nodes.map((node) => nodeFacts(node, flavour)), pools, stop: stopReason(configuration) };
}

/** MachineConfiguration `cluster`; undefined: there is none, or the cluster does not know the kind. */
export function machineConfiguration({
  kubernetes,
  flavour,
}: DrydockCluster): Promise<MachineConfigurationResource | undefined> {
  const name = MACHINE_CONFIGURATION_NAME;
  return ifThere(() => kubernetes.get<MachineConfigurationResource>(flavour.machineConfiguration, { name }));
}

/** What the rollout of a pool is decided on, without what Temporal alone knows; undefined: nothing is rendered yet. */
export function rolloutFactsOf(pool: MachineConfigPool, look: ClusterLook, now: Date): RolloutFacts | undefined {
  const facts: PoolFacts = poolFacts(pool);
  if (facts.target === undefined) return undefined;
  const members = membersOf(facts.name, look.nodes, poolSelectors(look.pools));
  const limit = limitOf(facts, members);
  return { pool: facts, target: facts.target, limit, members, running: new Set(), now: now.getTime() };
}
