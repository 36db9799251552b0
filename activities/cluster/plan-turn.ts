import { nodeFacts, type PoolFacts } from '../../machine-config/pool/facts.js';
import { planTurn as decide } from '../../machine-config/pool/plan-turn.js';
import type { Turn } from '../../machine-config/pool/turn.js';
import type { PlanTurnInput } from '../../workflows/contract/activities.js';
import { refuseOtherCluster, type ControlDependencies } from './control-dependencies.js';
import { memberFacts, poolFacts, targetDemands } from './pool-view.js';

/**
 * Decides what may happen next in a pool, over the watch cache. A cache that lags never widens the throttle: what runs
 * is counted whether or not the cache shows it, and `assign` decides again on live data.
 */
export function planTurn(dependencies: ControlDependencies, input: PlanTurnInput): Turn {
  const { cluster, flavour, nodes, pools, configs } = dependencies;
  refuseOtherCluster(cluster, input.cluster);
  const pool = pools.get(input.pool);
  const gone = Object.entries(input.inFlight)
    .filter(([node, uid]) => nodes.get(node)?.metadata.uid !== uid)
    .map(([node]) => node);
  return decide({
    pool: pool === undefined ? deletedPool(input.pool) : poolFacts(pool),
    demands: pool && targetDemands(pool, configs),
    members:
      pool === undefined
        ? inFlightFacts(dependencies, input)
        : memberFacts(input.pool, nodes.list(), pools.list(), flavour),
    inFlight: Object.keys(input.inFlight),
    gone,
    resting: input.resting,
    now: input.now,
  });
}

/** A pool that is gone wants nothing; its running updates are to give back what they have not begun. */
function deletedPool(name: string): PoolFacts {
  return { name, uid: '', paused: false, deleting: true };
}

function inFlightFacts({ nodes, flavour }: ControlDependencies, { inFlight }: PlanTurnInput) {
  return nodes
    .list()
    .filter(({ metadata }) => Object.hasOwn(inFlight, metadata.name))
    .map((node) => nodeFacts(node, flavour));
}
