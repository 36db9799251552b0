import {
  currentConfig,
  hasOurCordon,
  holdsGrant,
  isApplying,
  isDown,
  isGranted,
  isManaged,
  isUnavailable,
} from './availability.js';
import { standing, type BlockedBecause } from './candidates.js';
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
  if (holder === undefined || holder.current === (lastGrant.target ?? target)) return undefined;
  return holder.name;
}

function checkRoom(facts: GrantFacts, pool: PoolFacts, node: NodeFacts, target: string): Grant | undefined {
  const counts = (member: NodeFacts) => isUnavailable(member, target);
  const fresh = !counts(node);
  if (!fresh && isDown(node)) return undefined;
  const limit = resolveMaxUnavailable(pool.maxUnavailable, facts.members.length, pool.name);
  if (!limit.ok) return refuse('MaxUnavailableInvalid', limit.sentence);
  const others = facts.members.filter((member) => member.name !== node.name);
  const taken = new Set(
    others.filter((member) => counts(member) && (fresh || isDown(member))).map((member) => member.name),
  );
  const unseen = fresh ? unseenGrant(facts, target) : undefined;
  if (unseen !== undefined && unseen !== node.name) taken.add(unseen);
  if (taken.size < limit.limit) return undefined;
  return refuse(
    'NoSlot',
    `Node ${node.name} gets no slot: ${taken.size} of ${limit.limit} of pool ${pool.name} are taken by ` +
      `${nameSome([...taken].sort())}; it starts when one of them is available again`,
  );
}

function refuseBlocked(node: NodeFacts, target: string, because: BlockedBecause, until: number | undefined): Grant {
  switch (because) {
    case 'unmanaged':
      return refuse('NotManaged', `Node ${node.name} has no registered node worker: install and start it there`);
    case 'deleting':
      return refuse('NodeGone', `Node ${node.name} is being deleted`);
    case 'notReady':
      return refuse(
        'NotReady',
        `Node ${node.name} is not ready (${node.notReadyBecause ?? 'no reason given'}): it starts when it is`,
      );
    case 'cordonedByOthers':
      return refuse(
        'CordonedByOthers',
        `Node ${node.name} is unschedulable, not by us: uncordon it to let it be updated`,
      );
    case 'drifted':
      return refuse(
        'Drifted',
        `Node ${node.name} is not as ${currentConfig(node)} says (${clip(node.reason ?? '', 300)}): ` +
          `put back what was changed on it; an update would overwrite that`,
      );
    case 'backoff':
    case 'resting':
      return refuse(
        'Backoff',
        `Node ${node.name} failed on ${target} ${node.failure?.attempts ?? 1} times: ` +
          `next attempt at ${timeOf(until ?? 0)}, or give the pool another config`,
      );
  }
}

/** A start for a node that holds nothing yet, or that was left behind: every condition of a candidate, and room. */
function decideStart(facts: GrantFacts, pool: PoolFacts, node: NodeFacts, target: string): Grant {
  const where = standing(node, { target, inFlight: new Set(), resting: {}, now: facts.now });
  if (where.kind === 'settled') return unneeded(node, target);
  if (where.kind === 'blocked') return refuseBlocked(node, target, where.because, where.until);
  const full = checkRoom(facts, pool, node, target);
  if (full !== undefined) return full;
  return node.current === target ? unneeded(node, target) : grant(node, target);
}

/** The slot is held: the present target, or in a paused pool the one that was granted. */
function decideHeld(pool: PoolFacts, node: NodeFacts): Grant {
  const held = isGranted(node) ? (node.desired ?? currentConfig(node)) : currentConfig(node);
  const target = pool.paused ? held : (pool.target ?? held);
  return node.current === target ? unneeded(node, target) : grant(node, target);
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
  const { target } = pool;
  if (target === undefined) {
    return refuse('NothingRendered', `MachineConfigPool ${pool.name} has no rendered config yet: see RenderDegraded`);
  }
  if (pool.paused && node.current !== target) {
    return refuse('PoolPaused', `MachineConfigPool ${pool.name} is paused: set spec.paused to false to go on`);
  }
  return decideStart(facts, pool, node, target);
}
