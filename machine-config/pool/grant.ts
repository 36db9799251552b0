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
import {
  slotNeed,
  standing,
  takesRoom,
  type Blocked,
  type BlockedBecause,
  type StandingContext,
} from './candidates.js';
import type { NodeFacts, PoolFacts } from './facts.js';
import { resolveMaxUnavailable } from './max-unavailable.js';
import type { Membership } from './membership.js';
import { clip, MAX_SENTENCE_LENGTH, nameSome, timeOf } from './sentences.js';
import type { Grant, RefusalCode } from './turn.js';

/** The slot that was granted last in a pool, from the pool's annotation. */
export interface LastGrant {
  readonly node: string;
  /** ISO 8601. */
  readonly at: string;
  /** What was granted; lets us see that the node has got there since. */
  readonly target?: string;
  /** The `force` that it was granted for, if any: then the node has got there when that is gone. */
  readonly force?: string;
}

/**
 * How long a slot counts as granted although its Node does not show it: longer than any attempt of `assign` can sleep
 * and still write, because the kubelet renews its Node object every five minutes and the write names a resourceVersion.
 */
const UNSEEN_GRANT_MILLISECONDS = 10 * 60_000;

export interface GrantFacts {
  /** As in the input of `assign`. */
  readonly intent: 'start' | 'continue' | 'withdraw';
  /** Undefined: the pool is gone. */
  readonly pool: PoolFacts | undefined;
  /** For sentences, also when the pool is gone. */
  readonly poolName: string;
  /** The live Node; undefined: there is none of that name. */
  readonly node: NodeFacts | undefined;
  readonly nodeName: string;
  /** The uid that the update is for. */
  readonly nodeUid: string;
  /** All members of the pool, live. */
  readonly members: readonly NodeFacts[];
  readonly lastGrant?: LastGrant | undefined;
  /** What the pool's target asks of the operating system; absent: nothing. */
  readonly demands?: OsDemands | undefined;
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

/** The node that was granted the last slot, while its own facts do not show it yet. */
function unseenGrant(facts: GrantFacts, target: string): string | undefined {
  const { lastGrant, members, now } = facts;
  if (lastGrant === undefined || !(now - Date.parse(lastGrant.at) < UNSEEN_GRANT_MILLISECONDS)) return undefined;
  const holder = members.find((member) => member.name === lastGrant.node);
  // A Node that is gone frees its slot at once, and one that has got there has given it back.
  if (holder === undefined) return undefined;
  const { force } = lastGrant;
  const isThere = force === undefined ? holder.current === (lastGrant.target ?? target) : holder.force !== force;
  return isThere ? undefined : holder.name;
}

function checkRoom(facts: GrantFacts, pool: PoolFacts, node: NodeFacts, target: string): Grant | undefined {
  const slot = slotNeed(node, target);
  if (slot === 'down') return undefined;
  const limit = resolveMaxUnavailable(pool.maxUnavailable, facts.members.length, pool.name);
  if (!limit.ok) return refuse('MaxUnavailableInvalid', limit.sentence);
  const others = facts.members.filter((member) => member.name !== node.name);
  const taken = new Set(others.filter((member) => takesRoom(member, slot, target)).map((member) => member.name));
  const unseen = slot === 'held' ? undefined : unseenGrant(facts, target);
  if (unseen !== undefined && unseen !== node.name) taken.add(unseen);
  if (taken.size < limit.limit) return undefined;
  return refuse(
    'NoSlot',
    `Node ${node.name} gets no slot: ${taken.size} of ${limit.limit} of pool ${pool.name} are taken by ` +
      `${nameSome([...taken].sort())}; it starts when one of them is available again`,
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
  notReady: ({ name, notReadyBecause }) => [
    'NotReady',
    `Node ${name} is not ready (${notReadyBecause ?? 'no reason given'}): it starts when it is`,
  ],
  cordonedByOthers: ({ name }) => [
    'CordonedByOthers',
    `Node ${name} is unschedulable, not by us: uncordon it to let it be updated`,
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
      `give the pool another config, or ask by the force file on it to try again`,
  ],
  backoff,
  resting: backoff,
};

/** A start for a node that holds nothing yet, or that was left behind: every condition of a candidate, and room. */
function decideStart(facts: GrantFacts, pool: PoolFacts, node: NodeFacts): Grant {
  const { target } = pool;
  if (target === undefined) {
    return refuse('NothingRendered', `MachineConfigPool ${pool.name} has no rendered config yet: see RenderDegraded`);
  }
  if (pool.paused && (node.current !== target || isForced(node))) {
    return refuse('PoolPaused', `MachineConfigPool ${pool.name} is paused: set spec.paused to false to go on`);
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
  if (where.kind === 'blocked') return refuse(...REFUSALS[where.because](node, target, where));
  const full = checkRoom(facts, pool, node, target);
  if (full !== undefined) return full;
  return node.current === target && !isForced(node) ? unneeded(node, target) : grant(node, target);
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
 * Decides on live data whether a node gets, keeps or gives back its slot, and which config goes with it. A node that
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
  if (held && (facts.intent === 'continue' || pool.paused)) return decideHeld(pool, node);
  return decideStart(facts, pool, node);
}

/** What a decision makes of the annotations of the Node; null removes one. */
export interface GrantedAnnotations {
  readonly desired: string;
  readonly forceGranted: string | null;
}

/** What is to be written for a grant, or for a slot that is given back; undefined: the Node says so already. */
export function annotationsOfGrant(
  node: NodeFacts,
  { outcome, target }: Exclude<Grant, { outcome: 'refused' }>,
): GrantedAnnotations | undefined {
  const forceGranted = outcome === 'granted' && isForced(node) ? (node.force ?? null) : null;
  if (node.desired === target && (node.forceGranted ?? null) === forceGranted) return undefined;
  return { desired: target, forceGranted };
}
