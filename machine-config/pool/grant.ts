import {
  currentConfig,
  hasOurCordon,
  holdsGrant,
  isApplying,
  isForced,
  isForceGranted,
  isGranted,
  isManaged,
} from './availability.js';
import type { OsDemands } from './capabilities.js';
import { slotNeed, standing, type Blocked, type BlockedBecause, type StandingContext } from './candidates.js';
import type { ClusterFacts, NodeFacts, PoolFacts } from './facts.js';
import { limitOf } from './max-unavailable.js';
import type { Membership } from './membership.js';
import { isLeftOver, stageAdmits } from './policy/choice.js';
import { isBegun, policyOf, type ControlPlaneFacts, type RolloutFacts } from './policy/rollout-facts.js';
import { roomIn, type Lack } from './policy/room.js';
import { currentStage } from './policy/stages.js';
import { halted, notYet, stopped } from './policy/verdict.js';
import { whyNoWindow } from './policy/windows.js';
import { clip, MAX_SENTENCE_LENGTH, timeOf } from './sentences.js';
import type { Grant, RefusalCode } from './turn.js';

export interface GrantFacts {
  /** As in the input of `assign`. */
  readonly intent: 'start' | 'continue' | 'withdraw';
  /** Undefined: the pool is gone. */
  readonly pool: PoolFacts | undefined;
  /** For sentences, also when the pool is gone. */
  readonly poolName: string;
  /** The Node, in the version that is written or refused; undefined: there is none of that name. */
  readonly node: NodeFacts | undefined;
  readonly nodeName: string;
  /** The uid that the update is for. */
  readonly nodeUid: string;
  /** All members of the pool, those as granted whose grant is recorded and not to be seen yet (see `withPending`). */
  readonly members: readonly NodeFacts[];
  /** What the pool's target asks of the operating system; absent: nothing. */
  readonly demands?: OsDemands | undefined;
  /** What holds for all pools, and how the others stand; absent: not known. */
  readonly cluster?: ClusterFacts | undefined;
  /** What the control plane says, if the pool holds a part of it; absent: nothing. */
  readonly controlPlane?: ControlPlaneFacts | undefined;
  /** Epoch milliseconds. */
  readonly now: number;
  readonly poolOf: (node: NodeFacts) => Membership;
}

function refuse(code: RefusalCode, sentence: string): Grant {
  return { outcome: 'refused', code, sentence: clip(sentence, MAX_SENTENCE_LENGTH) };
}

function grant(node: NodeFacts, target: string): Grant {
  return { outcome: 'granted', target, current: currentConfig(node) };
}

function unneeded(node: NodeFacts, target: string): Grant {
  return { outcome: 'unneeded', target, cordonedByUs: hasOurCordon(node) };
}

function checkMembership(facts: GrantFacts, node: NodeFacts): Grant | undefined {
  const membership = facts.poolOf(node);
  if (membership.kind === 'pool' && membership.pool === facts.poolName) return undefined;
  if (membership.kind === 'conflict') return refuse('NotMember', membership.sentence);
  const where = membership.kind === 'pool' ? `in pool ${membership.pool}` : 'in no pool';
  return refuse(
    'NotMember',
    `Node ${node.name} is ${where} and not in ${facts.poolName} any more: its labels decide, see spec.nodeSelector`,
  );
}

const WHAT_HELPS: Record<Lack, string> = {
  NoSlot: 'it starts when one of them is available again',
  ZoneFull: 'it starts when one of them is available again',
  PaceFull: 'it starts when one of them is done',
};

function checkRoom(rollout: RolloutFacts, node: NodeFacts): Grant | undefined {
  const slot = slotNeed(node, rollout.target);
  if (slot === 'down') return undefined;
  const { limit } = rollout;
  if (!limit.ok) return refuse('MaxUnavailableInvalid', limit.sentence);
  const room = roomIn({ ...rollout, except: node.name });
  const lack = room.lackFor(node, slot);
  if (lack === undefined) return undefined;
  return refuse(lack, `Node ${node.name} gets no slot: ${room.describe(lack, node)}; ${WHAT_HELPS[lack]}`);
}

/**
 * The policy of the rollout, as far as it can be told without asking its gates. What was begun is brought to its end,
 * except on a node that has failed in a rollout that has halted.
 */
function checkPolicy(rollout: RolloutFacts, node: NodeFacts): Grant | undefined {
  const halt = halted(rollout);
  const begun = isBegun(node);
  if (halt !== undefined && (!begun || halt.givenUp?.has(node.name) === true)) return refuse(halt.code, halt.sentence);
  if (begun || !rollout.limit.ok) return undefined;
  const stage = currentStage(rollout);
  const wait = notYet(rollout, stage);
  if (wait !== undefined) return refuse(wait.code, wait.sentence);
  if (stageAdmits(stage, rollout.target)(node)) return undefined;
  return refuse(
    'StageWaits',
    `Node ${node.name} waits for stage ${stage?.stage.name ?? ''} of pool ${rollout.pool.name}: it starts when the nodes ` +
      `of that stage are updated`,
  );
}

type Refuse = (node: NodeFacts, target: string, blocked: Blocked) => readonly [RefusalCode, string];

const said = ({ reason }: NodeFacts): string => clip(reason ?? '', 300);

const backoff: Refuse = ({ name, failure }, target, { until }) => [
  'Backoff',
  `Node ${name} failed on ${target} ${failure?.attempts ?? 1} times: ` +
    `next attempt at ${timeOf(until ?? 0)}, or give the pool another config`,
];

const REFUSALS: Record<BlockedBecause, Refuse> = {
  unmanaged: ({ name }) => ['NotManaged', `Node ${name} has no registered node worker: install and start it there`],
  deleting: ({ name }) => ['NodeGone', `Node ${name} is being deleted`],
  held: ({ name }, _target, { detail }) => [
    'Held',
    `Node ${name} is held (${detail ?? ''}): let it go with \`drydock node release ${name}\``,
  ],
  notReady: ({ name, notReadyBecause }) => [
    'NotReady',
    `Node ${name} is not ready (${notReadyBecause ?? 'no reason given'}): it starts when it is`,
  ],
  cordonedByOthers: ({ name }) => [
    'CordonedByOthers',
    `Node ${name} is unschedulable, not by us: uncordon it to let it be updated, or have it updated as it is with ` +
      `\`drydock node release ${name}\``,
  ],
  cannot: ({ name }, target, { detail }) => [
    'CannotDo',
    `Node ${name} cannot do ${detail ?? ''}, which ${target} asks for: leave it out`,
  ],
  drifted: (node) => [
    'Drifted',
    `Node ${node.name} is not as ${currentConfig(node)} says (${said(node)}): ` +
      `put back what was changed on it, or ask by the force file on it to have that overwritten`,
  ],
  rolledBack: (node, target) => [
    'RolledBack',
    `Node ${node.name} came back from ${target} after its boot (${said(node)}): ` +
      `give the pool another config, or try again with \`drydock node retry ${node.name}\` or by the force file on it`,
  ],
  backoff,
  resting: backoff,
};

function rolloutOf(facts: GrantFacts, pool: PoolFacts, target: string): RolloutFacts {
  const { members, cluster, controlPlane, now } = facts;
  return { pool, target, limit: limitOf(pool, members), members, running: new Set(), cluster, controlPlane, now };
}

/** Stopped, nothing starts; a node that we took out of service and did not change is given back. */
function checkStopped(facts: GrantFacts, node: NodeFacts): Grant | undefined {
  const stop = stopped(facts);
  if (stop === undefined) return undefined;
  return hasOurCordon(node) && facts.intent === 'start' ? withdraw(node) : refuse(stop.code, stop.sentence);
}

/** A start for a node that holds nothing yet, or that was left behind: every condition of a candidate, and room. */
function decideStart(facts: GrantFacts, pool: PoolFacts, node: NodeFacts): Grant {
  const { target } = pool;
  if (target === undefined) {
    return refuse('NothingRendered', `MachineConfigPool ${pool.name} has no rendered config yet: see RenderDegraded`);
  }
  const context: StandingContext = {
    target,
    demands: facts.demands,
    inFlight: new Set(),
    resting: {},
    now: facts.now,
  };
  const where = standing(node, context);
  if (where.kind === 'settled') return unneeded(node, target);
  const stop = checkStopped(facts, node);
  if (stop !== undefined) return stop;
  if (pool.paused && (node.current !== target || isForced(node))) {
    return refuse('PoolPaused', `MachineConfigPool ${pool.name} is paused: set spec.paused to false to go on`);
  }
  if (where.kind === 'blocked') return refuse(...REFUSALS[where.because](node, target, where));
  const rollout = rolloutOf(facts, pool, target);
  const no = checkPolicy(rollout, node);
  // What it was granted before is not wanted any more, and what is wanted has to wait: the slot is for others.
  if (no !== undefined) return isLeftOver(node, target) ? withdraw(node) : no;
  const full = checkRoom(rollout, node);
  if (full !== undefined) return full;
  return node.current === target && !isForced(node) ? unneeded(node, target) : grant(node, target);
}

/** Whether an update that holds its slot and has not begun to change anything may go on to that. */
function checkGoingOn(facts: GrantFacts, pool: PoolFacts, node: NodeFacts): Grant | undefined {
  const stop = checkStopped(facts, node);
  if (stop !== undefined) return stop;
  if (policyOf(pool).windows?.onClose !== 'GiveBack') return undefined;
  const closed = whyNoWindow(pool, facts.now);
  return closed && refuse('WindowClosed', closed.sentence);
}

/** The slot is held: the present target, or in a paused pool the one that was granted. */
function decideHeld(pool: PoolFacts, node: NodeFacts): Grant {
  const held = isGranted(node) ? (node.desired ?? currentConfig(node)) : currentConfig(node);
  const target = pool.paused ? held : (pool.target ?? held);
  return node.current === target && !isForceGranted(node) ? unneeded(node, target) : grant(node, target);
}

function withdraw(node: NodeFacts): Grant {
  if (node.current === undefined) {
    return refuse(
      'NotManaged',
      `Node ${node.name} does not say what it runs (no currentConfig annotation): its worker writes it when it starts`,
    );
  }
  return unneeded(node, node.current);
}

function checkPool(facts: GrantFacts): PoolFacts | Grant {
  const { pool, poolName } = facts;
  if (pool === undefined) return refuse('PoolDeleting', `MachineConfigPool ${poolName} does not exist any more`);
  if (pool.deleting) return refuse('PoolDeleting', `MachineConfigPool ${poolName} is being deleted`);
  return pool;
}

function checkIdentity({ node, nodeName, nodeUid }: GrantFacts): NodeFacts | Grant {
  if (node === undefined) return refuse('NodeGone', `Node ${nodeName} does not exist any more`);
  if (node.uid !== nodeUid) {
    return refuse('NodeReplaced', `Node ${nodeName} is another machine now: uid ${node.uid}, not ${nodeUid}`);
  }
  return node;
}

/**
 * Decides whether a node gets, keeps or gives back its slot, and which config goes with it. A node that
 * has begun to apply keeps what it applies, whatever has changed since. Whether a slot is held is read from the Node
 * and not taken from the caller: `continue` for a node that holds none is a start.
 */
export function decideGrant(facts: GrantFacts): Grant {
  const node = checkIdentity(facts);
  if ('outcome' in node) return node;
  if (isApplying(node)) return grant(node, node.applying ?? currentConfig(node));
  if (facts.intent === 'withdraw') return withdraw(node);
  const outside = checkMembership(facts, node);
  if (outside !== undefined) return outside;
  const pool = checkPool(facts);
  if ('outcome' in pool) return pool;
  const held = isManaged(node) && holdsGrant(node);
  if (held && facts.intent === 'continue') return checkGoingOn(facts, pool, node) ?? decideHeld(pool, node);
  if (held && pool.paused && stopped(facts) === undefined) return decideHeld(pool, node);
  return decideStart(facts, pool, node);
}

/** What a decision makes of the annotations of the Node; null removes one. */
export interface GrantedAnnotations {
  readonly desired: string;
  readonly forceGranted: string | null;
  /** Absent: it stays as it is. */
  readonly noDrain?: string | null;
}

/** What is to be written for a grant, or for a slot that is given back; undefined: the Node says so already. */
export function annotationsOfGrant(
  node: NodeFacts,
  grant: Exclude<Grant, { outcome: 'refused' }>,
  cluster?: Pick<ClusterFacts, 'onlySchedulable'>,
): GrantedAnnotations | undefined {
  const { outcome, target } = grant;
  const forceGranted = outcome === 'granted' && isForced(node) ? (node.force ?? null) : null;
  const noDrain = noDrainOfGrant(node, grant, cluster);
  const isSaid = node.desired === target && (node.forceGranted ?? null) === forceGranted;
  if (isSaid && noDrain === (node.noDrain ?? null)) return undefined;
  return { desired: target, forceGranted, ...(noDrain === (node.noDrain ?? null) ? {} : { noDrain }) };
}

/** The pods of the only node that takes any could run nowhere else: it is cordoned, and not drained. */
function noDrainOfGrant(
  node: NodeFacts,
  { outcome, target }: Exclude<Grant, { outcome: 'refused' }>,
  cluster: Pick<ClusterFacts, 'onlySchedulable'> | undefined,
): string | null {
  if (outcome !== 'granted') return null;
  // Once it is applied it is decided.
  if (cluster === undefined || isApplying(node)) return node.noDrain ?? null;
  return cluster.onlySchedulable === node.name ? target : null;
}
