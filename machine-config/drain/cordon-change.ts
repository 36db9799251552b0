import { DRYDOCK_ANNOTATIONS } from '../api/flavour.js';
import { jsonObject } from '../pool/annotations.js';
import type { NodeFacts } from '../pool/facts.js';

/** Changes of a Node; null removes. */
export interface NodeChange {
  readonly annotations: Readonly<Record<string, string | null>>;
  readonly unschedulable?: boolean | null;
}

/** They keep autoscalers from taking a node away, or from counting it as idle, while it is empty for its update. */
export const PROTECTING_ANNOTATIONS = [
  'cluster-autoscaler.kubernetes.io/scale-down-disabled',
  'karpenter.sh/do-not-disrupt',
] as const;
const PROTECTED = 'true';

/**
 * What makes a Node cordoned for the update to `target`, in one write: the cordon with whose it is, since when, and the
 * annotations that protect it, with what they were before. Undefined: it is so already. The clock of a drain that has
 * begun goes on. A cordon of somebody else stays theirs: it is not claimed, only used.
 */
export function cordonChange(facts: NodeFacts, target: string, now: Date): NodeChange | undefined {
  const isOthers = facts.unschedulable && facts.cordonedFor === undefined;
  const annotations: Record<string, string | null> = { ...protection(facts) };
  if (facts.drainSince === undefined) {
    annotations[DRYDOCK_ANNOTATIONS.drainSince] = now.toISOString();
    if (facts.evictedOwners !== undefined) annotations[DRYDOCK_ANNOTATIONS.evictedOwners] = null;
    if (facts.drainBlocked !== undefined) annotations[DRYDOCK_ANNOTATIONS.drainBlocked] = null;
  }
  if (!isOthers && facts.cordonedFor !== target) annotations[DRYDOCK_ANNOTATIONS.cordonedFor] = target;
  // Of an earlier update; a hold that is still there keeps this one, too.
  if (!isOthers && facts.heldCordon) annotations[DRYDOCK_ANNOTATIONS.heldCordon] = null;
  if (facts.unschedulable) return Object.keys(annotations).length === 0 ? undefined : { annotations };
  return { annotations, unschedulable: true };
}

/** The protecting annotations, and what they replace; nothing where they stand and are ours. */
function protection({ annotations = {} }: NodeFacts): Record<string, string> {
  const before = jsonObject(annotations[DRYDOCK_ANNOTATIONS.replaced]);
  const missing = PROTECTING_ANNOTATIONS.filter(
    (key) => annotations[key] !== PROTECTED || before === undefined || !Object.hasOwn(before, key),
  );
  if (missing.length === 0) return {};
  const replaced = { ...before, ...Object.fromEntries(missing.map((key) => [key, annotations[key] ?? null])) };
  return {
    ...Object.fromEntries(missing.map((key) => [key, PROTECTED])),
    [DRYDOCK_ANNOTATIONS.replaced]: JSON.stringify(replaced),
  };
}

/**
 * What gives a Node back: our cordon goes, or is left to whoever holds the node; the protecting annotations are what they
 * were before, unless somebody changed them meanwhile; nothing is left of the drain. A cordon of others stays.
 */
export function liftChange(facts: NodeFacts): NodeChange {
  const annotations: Record<string, string | null> = { ...restored(facts) };
  for (const [key, isThere] of [
    [DRYDOCK_ANNOTATIONS.drainSince, facts.drainSince],
    [DRYDOCK_ANNOTATIONS.drainBlocked, isGivenBack(facts) ? undefined : facts.drainBlocked],
    [DRYDOCK_ANNOTATIONS.cordonedFor, facts.cordonedFor],
  ] as const) {
    if (isThere !== undefined) annotations[key] = null;
  }
  if (facts.cordonedFor === undefined) return { annotations };
  if (facts.hold === undefined || !facts.unschedulable) return { annotations, unschedulable: null };
  return { annotations: { ...annotations, [DRYDOCK_ANNOTATIONS.heldCordon]: 'true' } };
}

/** Its drain took too long: that stays there, as the reason why it rests, until it is cordoned again. */
function isGivenBack({ annotations = {} }: NodeFacts): boolean {
  return jsonObject(annotations[DRYDOCK_ANNOTATIONS.drainBlocked])?.givenBack === true;
}

/** Whether `liftChange` makes the node schedulable again. */
export function isLifted(facts: NodeFacts): boolean {
  return facts.cordonedFor !== undefined && (facts.hold === undefined || !facts.unschedulable);
}

function restored({ annotations = {} }: NodeFacts): Record<string, string | null> {
  const text = annotations[DRYDOCK_ANNOTATIONS.replaced];
  if (text === undefined) return {};
  const before = jsonObject(text);
  const changes: Record<string, string | null> = { [DRYDOCK_ANNOTATIONS.replaced]: null };
  for (const key of PROTECTING_ANNOTATIONS) {
    // What cannot be read any more was most likely not there.
    const value = before === undefined ? null : before[key];
    // Whoever wrote another value since then wants that one.
    if (annotations[key] !== PROTECTED || value === undefined || value === PROTECTED) continue;
    changes[key] = typeof value === 'string' ? value : null;
  }
  return changes;
}
