import { poolFacts, poolSelectors } from '../../activities/cluster/pool-view.js';
import { DRYDOCK_ANNOTATIONS } from '../../machine-config/api/flavour.js';
import { isCordonedByOthers, isDrifted, isApplying } from '../../machine-config/pool/availability.js';
import type { NodeFacts } from '../../machine-config/pool/facts.js';
import { poolOf } from '../../machine-config/pool/membership.js';
import { openFailure } from '../../machine-config/pool/policy/failures.js';
import { isBegun } from '../../machine-config/pool/policy/rollout-facts.js';
import { CommandError } from '../command-error.js';
import { listPools, type DrydockCluster } from '../rollouts.js';
import { timeAfterFailures } from './time-after-failures.js';
import { changeNode, type NodeDecision } from './node-change.js';

export interface Held {
  readonly node: string;
  readonly reason: string;
  /** An update is on its way: it is finished, and leaves the node cordoned. */
  readonly updateRuns: boolean;
  /** False: it was held for this reason already. */
  readonly changed: boolean;
}

/** Holds a node back. A hold of somebody else, for another reason, is not replaced: that is refused. */
export function holdNode(cluster: DrydockCluster, name: string, reason: string): Promise<Held> {
  return changeNode(cluster, name, (node) => {
    const answer = { node: name, reason, updateRuns: isBegun(node), changed: node.hold !== reason };
    if (node.hold === reason) return { answer };
    if (node.hold !== undefined) {
      throw refused(`${name} is held already: ${node.hold}; release it first with drydock node release ${name}`);
    }
    return { annotations: { [DRYDOCK_ANNOTATIONS.hold]: reason }, answer };
  });
}

function refused(message: string): CommandError {
  return new CommandError('refused', message);
}

export interface Released {
  readonly node: string;
  /** The reason of the hold that is gone. */
  readonly hold?: string;
  /** The cordon that the hold had kept is lifted. */
  readonly uncordoned: boolean;
  /** Somebody else's cordon stays, and the node may be updated to this config nevertheless. */
  readonly config?: string;
  /** It is no longer held, and somebody else's cordon still keeps it from its update. */
  readonly stillCordoned: boolean;
}

/**
 * Takes a hold back, with the cordon that it kept; of a node that is not held and that somebody else has cordoned, allows
 * the update to the config that its pool wants now. Rejects where there is nothing to release it from.
 */
export function releaseNode(cluster: DrydockCluster, name: string): Promise<Released> {
  return changeNode<Released>(cluster, name, (node) => {
    if (node.hold !== undefined || node.heldCordon) return releaseFromHold(node);
    if (isCordonedByOthers(node)) return releaseForUpdate(cluster, node);
    throw refused(`${name} is neither held nor cordoned by somebody else: there is nothing to release it from`);
  });
}

function releaseFromHold(node: NodeFacts): NodeDecision<Released> {
  const { name, hold, heldCordon, unschedulable } = node;
  const uncordoned = heldCordon === true && unschedulable;
  const stillCordoned = !uncordoned && isCordonedByOthers(node);
  return {
    annotations: {
      ...(hold === undefined ? {} : { [DRYDOCK_ANNOTATIONS.hold]: null }),
      ...(heldCordon ? { [DRYDOCK_ANNOTATIONS.heldCordon]: null } : {}),
    },
    uncordon: uncordoned,
    answer: { node: name, ...(hold === undefined ? {} : { hold }), uncordoned, stillCordoned },
  };
}

async function releaseForUpdate(cluster: DrydockCluster, node: NodeFacts): Promise<NodeDecision<Released>> {
  const pools = await listPools(cluster);
  const membership = poolOf(node, poolSelectors(pools));
  if (membership.kind !== 'pool') {
    const why = membership.kind === 'conflict' ? membership.sentence : `${node.name} is in no pool`;
    throw refused(`${why}, so there is no update to release it for`);
  }
  const pool = pools.find(({ metadata }) => metadata.name === membership.pool);
  const config = pool && poolFacts(pool).target;
  if (config === undefined) throw refused(`nothing is rendered for pool ${membership.pool} of ${node.name} yet`);
  const answer = { node: node.name, uncordoned: false, config, stillCordoned: true };
  return node.release === config ? { answer } : { annotations: { [DRYDOCK_ANNOTATIONS.release]: config }, answer };
}

export interface Retried {
  readonly node: string;
  /** The config whose update failed, or from whose reboot the node has not come back. */
  readonly config: string;
}

/** Forgets the failures of a node, so that it is tried again. Rejects where it has none. */
export function retryNode(cluster: DrydockCluster, name: string, now: Date): Promise<Retried> {
  return changeNode(cluster, name, (node) => {
    const config = openFailure(node)?.target ?? (isApplying(node) && !node.ready ? node.applying : undefined);
    if (config === undefined) throw refused(whyNothingToRetry(node));
    return {
      annotations: { [DRYDOCK_ANNOTATIONS.retry]: timeAfterFailures(now, [node]) },
      answer: { node: name, config },
    };
  });
}

function whyNothingToRetry(node: NodeFacts): string {
  if (isDrifted(node)) {
    return `the disk of ${node.name} is not as its config says (${node.reason ?? 'no reason given'}), which another try does not change: mend it, or ask on the host for the whole config`;
  }
  return `no update of ${node.name} has failed: there is nothing to try again`;
}
