import { EMPTY_CONFIG_NAME } from '../../machine-config/api/flavour.js';
import { nodeFacts, type NodeFacts, type NodeObject } from '../../machine-config/pool/facts.js';
import type { NodeStep, TargetStep } from '../../workflows/contract/activities.js';
import type { KubernetesObject } from '../kubernetes/client.js';
import { KINDS } from '../kubernetes/client.js';
import { failedWith } from '../kubernetes/failures.js';
import type { NodeDependencies } from './dependencies.js';
import { failure } from './failures.js';

export type Node = KubernetesObject & NodeObject;

/** The Node as it is in Kubernetes at this moment. */
export interface OwnNode {
  readonly facts: NodeFacts;
  /** What it runs; the empty config's name if it was never given one. */
  readonly current: string;
  readonly resourceVersion: string;
}

/** How often a write that met a newer version of the Node is decided and tried again within one attempt. */
const MOST_CONFLICTS = 5;

/** Throws WrongCluster or WrongNode unless the step is meant for this worker. */
function checkAddress(step: NodeStep, { node, clusterUid }: NodeDependencies): void {
  if (step.cluster !== clusterUid) {
    throw failure('WrongCluster', `${node} belongs to the cluster ${clusterUid}, the step is for ${step.cluster}`);
  }
  if (step.node !== node) throw failure('WrongNode', `this is the worker of ${node}, the step is for ${step.node}`);
}

/**
 * Reads the own Node, past every cache. Throws WrongCluster, WrongNode (also for another machine of the same name) or
 * NodeGone.
 */
export async function ownNode(step: NodeStep, deps: NodeDependencies): Promise<OwnNode> {
  checkAddress(step, deps);
  let node: Node;
  try {
    node = await deps.client.get<Node>(KINDS.node, { name: deps.node });
  } catch (error) {
    if (failedWith(error, 'NotFound')) throw failure('NodeGone', `the Node ${deps.node} is gone`, error);
    throw error;
  }
  const facts = nodeFacts(node, deps.flavour);
  if (facts.uid !== step.nodeUid) {
    throw failure(
      'WrongNode',
      `the Node ${deps.node} is ${facts.uid}, the step is for ${step.nodeUid}, an earlier one`,
    );
  }
  return {
    facts,
    current: facts.current ?? EMPTY_CONFIG_NAME,
    resourceVersion: node.metadata.resourceVersion ?? '',
  };
}

/**
 * As `ownNode`, and throws NotGranted unless Kubernetes, not only the task, says that the node shall go to the target.
 * A node that was granted a slot for what was forced on it may go where it is already.
 */
export async function grantedNode(step: TargetStep, deps: NodeDependencies): Promise<OwnNode> {
  const own = await ownNode(step, deps);
  const { desired, force, forceGranted } = own.facts;
  const mayRepeat = force !== undefined && forceGranted === force;
  if (desired === undefined || (desired === own.current && !mayRepeat)) {
    throw failure('NotGranted', `${deps.node} runs ${own.current} and is granted nothing else`);
  }
  if (desired !== step.target) {
    throw failure('NotGranted', `${deps.node} is granted ${desired}, the step is for ${step.target}`);
  }
  return own;
}

/** Changes of a Node in one merge patch; null removes. */
export interface NodePatch {
  readonly annotations: Readonly<Record<string, string | null>>;
  readonly unschedulable?: boolean | null;
}

/** Writes the own Node, only if it is still the version that was read (compare-and-swap). Throws Conflict. */
export async function swapNode(own: OwnNode, patch: NodePatch, deps: NodeDependencies): Promise<void> {
  const { annotations, unschedulable } = patch;
  await deps.client.patch(
    KINDS.node,
    { name: deps.node },
    {
      metadata: { annotations, resourceVersion: own.resourceVersion },
      ...(unschedulable === undefined ? {} : { spec: { unschedulable } }),
    },
  );
  deps.metrics?.written(annotations);
}

/** Reads, decides and writes again when a write met a newer version, a few times. */
export async function onFreshNode<T>(attempt: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await attempt();
    } catch (error) {
      if (!failedWith(error, 'Conflict') || tries >= MOST_CONFLICTS) throw error;
    }
  }
}
