import { EMPTY_CONFIG_NAME } from '../../machine-config/api/flavour.js';
import { nodeFacts, type NodeFacts, type NodeObject } from '../../machine-config/pool/facts.js';
import type { NodeStep, TargetStep } from '../../workflows/contract/activities.js';
import type { KubernetesObject } from '../kubernetes/client.js';
import { KINDS } from '../kubernetes/client.js';
import { failedWith } from '../kubernetes/failures.js';
import type { NodeDependencies } from './dependencies.js';
import { failure } from './failures.js';

export type Node = KubernetesObject & NodeObject & { status?: { volumesInUse?: string[] } };

/** The Node as it is in Kubernetes at this moment. */
export interface OwnNode {
  readonly facts: NodeFacts;
  /** What it runs; the empty config's name if it was never given one. */
  readonly current: string;
  readonly resourceVersion: string;
  /** Volumes that the kubelet has mounted, or is about to unmount, by their unique names. */
  readonly volumesInUse?: readonly string[];
}

/** How often a write that met a newer version of the Node is decided and tried again within one attempt. */
const MOST_CONFLICTS = 5;

/** Throws WrongCluster or WrongNode unless the step is meant for this worker. */
export function checkAddress(step: NodeStep, { node, clusterUid }: NodeDependencies): void {
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
  const own = ownNodeOf(node, deps);
  const { uid } = own.facts;
  if (uid !== step.nodeUid) {
    throw failure('WrongNode', `the Node ${deps.node} is ${uid}, the step is for ${step.nodeUid}, an earlier one`);
  }
  deps.memory?.remember(own, deps.now());
  return own;
}

/** What a step has to know of the Node object. */
export function ownNodeOf(node: Node, { flavour }: NodeDependencies): OwnNode {
  const facts = nodeFacts(node, flavour);
  return {
    facts,
    current: facts.current ?? EMPTY_CONFIG_NAME,
    resourceVersion: node.metadata.resourceVersion ?? '',
    volumesInUse: node.status?.volumesInUse ?? [],
  };
}

/**
 * As `ownNode`, and throws NotGranted unless Kubernetes, not only the task, says that the node shall go to the target.
 * A node that was granted a slot for what was forced on it may go where it is already.
 */
export async function grantedNode(step: TargetStep, deps: NodeDependencies): Promise<OwnNode> {
  const own = await ownNode(step, deps);
  checkGranted(own, step, deps);
  return own;
}

/** As `grantedNode`; what was read, or written, seconds ago is not read again if it says yes. */
export async function recentlyGrantedNode(step: TargetStep, deps: NodeDependencies): Promise<OwnNode> {
  checkAddress(step, deps);
  const recent = deps.memory?.recallRecent(step.nodeUid, deps.now());
  return recent !== undefined && isGrantedTo(recent, step) ? recent : grantedNode(step, deps);
}

function isGrantedTo({ facts, current }: OwnNode, { target }: TargetStep): boolean {
  const { desired, force, forceGranted } = facts;
  const mayRepeat = force !== undefined && forceGranted === force;
  return desired === target && (desired !== current || mayRepeat);
}

/** Throws NotGranted unless the Node says that it shall go to the step's target. */
export function checkGranted(own: OwnNode, step: TargetStep, { node }: NodeDependencies): void {
  if (isGrantedTo(own, step)) return;
  const { desired } = own.facts;
  if (desired === undefined || desired === own.current) {
    throw failure('NotGranted', `${node} runs ${own.current} and is granted nothing else`);
  }
  throw failure('NotGranted', `${node} is granted ${desired}, the step is for ${step.target}`);
}

/** Changes of a Node in one merge patch; null removes. */
export interface NodePatch {
  readonly annotations: Readonly<Record<string, string | null>>;
  readonly unschedulable?: boolean | null;
}

/**
 * Writes the own Node, only if it is still the version that was read (compare-and-swap), and answers how it is then.
 * Throws Conflict.
 */
export async function swapNode(own: OwnNode, patch: NodePatch, deps: NodeDependencies): Promise<OwnNode> {
  const { annotations, unschedulable } = patch;
  const { resourceVersion } = own;
  const change = {
    metadata: { annotations, resourceVersion },
    ...(unschedulable === undefined ? {} : { spec: { unschedulable } }),
  };
  const written = ownNodeOf(await deps.client.patch<Node>(KINDS.node, { name: deps.node }, change), deps);
  deps.memory?.remember(written, deps.now());
  deps.metrics?.written(annotations);
  return written;
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

/** What is to be written, if anything, and what the step answers then. */
export interface NodeDecision<T> {
  readonly patch?: NodePatch | undefined;
  readonly result: T;
}

/** How the own Node is after a change, and what was decided. */
export interface NodeChanged<T> {
  readonly own: OwnNode;
  readonly result: T;
}

/**
 * Decides on the own Node and writes it. What is remembered of it saves the read, since the write proves that nobody
 * changed it since; a decision that writes nothing, or refuses, is made again on the Node as it is now. `decide` only
 * decides.
 */
export async function changeOwnNode<T>(
  step: NodeStep,
  deps: NodeDependencies,
  decide: (own: OwnNode) => NodeDecision<T>,
): Promise<NodeChanged<T>> {
  checkAddress(step, deps);
  const remembered = deps.memory?.recall(step.nodeUid);
  if (remembered !== undefined) {
    try {
      const { patch, result } = decide(remembered);
      if (patch !== undefined) return { own: await swapNode(remembered, patch, deps), result };
    } catch (error) {
      if (!isAboutThePast(error)) throw error;
    }
  }
  return onFreshNode(async () => {
    const own = await ownNode(step, deps);
    const { patch, result } = decide(own);
    return { own: patch === undefined ? own : await swapNode(own, patch, deps), result };
  });
}

/** Refused because of what the Node was, and perhaps is no more. */
function isAboutThePast(error: unknown): boolean {
  return failedWith(error, 'Conflict', 'NotGranted', 'WrongNode', 'NotFound');
}
