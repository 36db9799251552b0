import { EMPTY_CONFIG_NAME } from '../api/flavour.js';
import type { NodeFacts } from './facts.js';

/** Its worker has registered: it can be updated. */
export function isManaged(node: NodeFacts): boolean {
  return node.worker !== undefined;
}

/** The rendered config that the node runs; of one that was never given any, the name of the empty one. */
export function currentConfig(node: NodeFacts): string {
  return node.current ?? EMPTY_CONFIG_NAME;
}

/** It was granted another config than the one it runs. */
function isRetargeted(node: NodeFacts): boolean {
  return node.desired !== undefined && node.desired !== node.current;
}

/**
 * Somebody asked on the host that the pool's config is applied to it as a whole, whether or not it runs it and whatever
 * its disk is. Asked in an earlier boot it is over, unless an update that began with it is on its way.
 */
export function isForced(node: NodeFacts): boolean {
  return node.force !== undefined && (node.force === node.bootId || node.applying !== undefined);
}

/** A slot was granted for what was asked on the host. */
export function isForceGranted(node: NodeFacts): boolean {
  return isForced(node) && node.forceGranted === node.force;
}

/** It was granted a slot for an update: to another config than the one it runs, or by force to the same. */
export function isGranted(node: NodeFacts): boolean {
  return isRetargeted(node) || isForceGranted(node);
}

/** It has begun to change its disk; from here on it finishes. */
export function isApplying(node: NodeFacts): boolean {
  return node.applying !== undefined && (node.applying !== node.current || isForced(node));
}

/** Our cordon, or what is left of it after somebody else lifted it, has still to be taken back. */
export function hasOurCordon(node: NodeFacts): boolean {
  return node.cordonedFor !== undefined;
}

export function isCordonedByOthers(node: NodeFacts): boolean {
  return node.unschedulable && !hasOurCordon(node);
}

/** The slot was given to it and not given back. */
export function holdsGrant(node: NodeFacts): boolean {
  return isGranted(node) || isApplying(node) || hasOurCordon(node);
}

/** It could not reach, or did not keep, its config. */
export function isDegraded(node: NodeFacts): boolean {
  return isManaged(node) && (node.state === 'Degraded' || node.state === 'Unreconcilable');
}

/**
 * Degraded on the very config that it runs: its disk is not what that config says. A recorded failure of an update to
 * another config that failed and was undone is not drift, except one that failed because of drift.
 */
export function isDrifted(node: NodeFacts): boolean {
  if (!isManaged(node) || node.state !== 'Degraded') return false;
  const { failure } = node;
  if (failure === undefined) return !isRetargeted(node);
  return failure.code === 'Drifted' || failure.target === node.current;
}

/** It runs the target, was granted nothing else and says so itself. An absent desiredConfig is no other grant. */
export function isUpdated(node: NodeFacts, target: string | undefined): boolean {
  return (
    target !== undefined && isManaged(node) && node.state === 'Done' && node.current === target && !isGranted(node)
  );
}

/** There is something to do on it: it is not on the target, our cordon is still there, or it is forced. */
export function needsUpdate(node: NodeFacts, target: string): boolean {
  return !isUpdated(node, target) || hasOurCordon(node) || isForced(node);
}

/** Workloads cannot run on it at this moment, or it is about to restart: what an observer of the Nodes would see. */
export function isDown(node: NodeFacts): boolean {
  return !node.ready || node.unschedulable || node.deleting || isApplying(node);
}

/** Degraded and not by an older target than the present one: a new target gives it another chance, and its slot back. */
function isDegradedHere(node: NodeFacts, target: string | undefined): boolean {
  return isDegraded(node) && (node.failure === undefined || target === undefined || node.failure.target === target);
}

/**
 * Whether it takes one of the slots of maxUnavailable: from the moment its desired config differs from its current one
 * until it is done and schedulable, while it is not ready or cordoned by anybody, and as long as it is Degraded on the
 * pool's present target. A member that is not managed and holds no grant takes none.
 */
export function isUnavailable(node: NodeFacts, target: string | undefined): boolean {
  if (holdsGrant(node)) return true;
  if (!isManaged(node)) return false;
  return isDown(node) || node.state === 'Working' || isDegradedHere(node, target);
}
