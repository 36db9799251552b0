import { jsonObject } from './annotations.js';
import type { NodeFacts } from './facts.js';

/** A slot that was granted while the view of whoever granted it could not show it yet. */
export interface PendingGrant {
  readonly node: string;
  /** ISO 8601. */
  readonly at: string;
  readonly target: string;
  /** The `force` that it was granted for, if any. */
  readonly force?: string;
  /**
   * The resourceVersion of the Node that the grant is written on, and on no other: a Node in any later version shows what
   * became of it. Absent: recorded before version 0.2.
   */
  readonly on?: string;
}

/** What the annotation of a MachineConfigPool says of its last grants. */
export interface GrantRecord {
  /**
   * What became of every grant that is not listed shows in each view of the Nodes that has come as far as this
   * resourceVersion. Absent: nothing is known of earlier grants, so that only a live view is good enough.
   */
  readonly seen?: string;
  readonly pending: readonly PendingGrant[];
}

/** A look at all Nodes: read after the record, or fresh enough for it. */
export interface NodesView {
  /** The resourceVersion of the collection up to which it has everything. Absent: it was read live, after the record. */
  readonly version?: string;
  readonly nodes: {
    get(name: string): ViewedNode | undefined;
    values(): Iterable<ViewedNode>;
  };
}

export interface ViewedNode {
  readonly resourceVersion: string;
  readonly facts: NodeFacts;
}

/**
 * How long a slot counts as granted although its Node does not show it: longer than any attempt of `assign` can sleep
 * and still write, because the kubelet renews its Node object every five minutes and the write names a resourceVersion.
 */
const UNSEEN_GRANT_MILLISECONDS = 10 * 60_000;

/**
 * Negative, 0 or positive, as resourceVersions of one kind compare: they are whole numbers of any length. Undefined: one
 * of them is none, and nothing can be said.
 */
export function compareVersions(one: string, other: string): number | undefined {
  const digits = /^[1-9]\d*$/;
  if (!digits.test(one) || !digits.test(other)) return undefined;
  if (one.length !== other.length) return one.length - other.length;
  return one < other ? -1 : Number(one > other);
}

/** Whether a view of this version has seen at least as much as `than`. What cannot be compared has not. */
function hasReached(version: string, than: string): boolean {
  return (compareVersions(version, than) ?? -1) >= 0;
}

function pendingGrant(value: unknown): PendingGrant[] {
  const { node, at, target, force, on } = (value ?? {}) as Partial<Record<keyof PendingGrant, unknown>>;
  if (typeof node !== 'string' || typeof at !== 'string' || typeof target !== 'string') return [];
  return [
    {
      node,
      at,
      target,
      ...(typeof force === 'string' ? { force } : {}),
      ...(typeof on === 'string' ? { on } : {}),
    },
  ];
}

/**
 * Reads the annotation. One that is absent or malformed says nothing of earlier grants. Before version 0.2 it was the
 * last grant alone, on the top level.
 */
export function parseGrantRecord(text: string | undefined): GrantRecord {
  const found = jsonObject(text);
  if (found === undefined) return { pending: [] };
  const { seen, pending } = found;
  if (!Array.isArray(pending)) return { pending: pendingGrant(found) };
  return { ...(typeof seen === 'string' ? { seen } : {}), pending: pending.flatMap(pendingGrant) };
}

/**
 * The annotation. The last grant stands on the top level once more, where control workers of before version 0.2 look
 * while they are being replaced.
 */
export function formatGrantRecord({ seen, pending }: GrantRecord): string {
  return JSON.stringify({ ...pending.at(-1), seen, pending });
}

/** How far a view must have come for a decision that counts every grant, known or forgotten; undefined: it must be live. */
export function neededVersion({ seen, pending }: GrantRecord): string | undefined {
  const versions = [seen, ...pending.map(({ on }) => on)];
  return versions.every((version) => version !== undefined) ? highest(versions) : undefined;
}

/** Undefined: there is none, or one cannot be compared. */
function highest(versions: readonly string[]): string | undefined {
  const [first, ...others] = versions;
  if (first === undefined || !versions.every((version) => hasReached(version, version))) return undefined;
  return others.reduce((most, version) => (hasReached(version, most) ? version : most), first);
}

/** Of before version 0.2: over once the node has got there. */
function hasArrived({ target, force }: PendingGrant, node: NodeFacts): boolean {
  return force === undefined ? node.current === target : node.force !== force;
}

/**
 * The view shows what became of the grant: the Node has changed since it was to be written, so either it was, and that
 * counts for itself, or it never will be. Or the Node is gone.
 */
function isDecided(pending: PendingGrant, { nodes }: NodesView): boolean {
  const { on, node } = pending;
  const found = nodes.get(node);
  if (on === undefined) return found === undefined || hasArrived(pending, found.facts);
  return found?.resourceVersion !== on;
}

/** One without a readable time has expired too. */
function hasExpired({ at }: PendingGrant, now: number): boolean {
  return !(now - Date.parse(at) < UNSEEN_GRANT_MILLISECONDS);
}

/** The grants of a record that count although the view does not show them. `now` in epoch milliseconds. */
export function undecided(record: GrantRecord, view: NodesView, now: number): PendingGrant[] {
  return record.pending.filter((pending) => !hasExpired(pending, now) && !isDecided(pending, view));
}

/**
 * The record with one grant more, and without those whose outcome the view shows. Views that decide over it later need
 * to have seen that too, and no more than that: `seen` is the version of the very Nodes that showed it.
 */
export function recordGrant(record: GrantRecord, view: NodesView, grant: PendingGrant, now: number): GrantRecord {
  const open = new Set(undecided(record, view, now));
  const kept: PendingGrant[] = [];
  const versions = record.seen === undefined ? versionsOf(view) : [record.seen];
  for (const pending of record.pending) {
    if (pending.node === grant.node) continue;
    const shownAt = view.nodes.get(pending.node)?.resourceVersion ?? view.version;
    // When it was that a Node vanished, a live view cannot tell: left to a view that can, or to its age.
    if (open.has(pending) || (shownAt === undefined && !hasExpired(pending, now))) kept.push(pending);
    else if (shownAt !== undefined) versions.push(shownAt);
  }
  const seen = highest(versions);
  return { ...(seen === undefined ? {} : { seen }), pending: [...kept, grant] };
}

function versionsOf({ nodes }: NodesView): string[] {
  return [...nodes.values()].map(({ resourceVersion }) => resourceVersion);
}

/** The members, with those as granted whose grant cannot be seen yet; `except` is the one that asks. */
export function withPending(
  members: readonly NodeFacts[],
  pending: readonly PendingGrant[],
  except: string,
): readonly NodeFacts[] {
  const grants = new Map(pending.map((grant) => [grant.node, grant]));
  grants.delete(except);
  if (grants.size === 0) return members;
  return members.map((member) => {
    const grant = grants.get(member.name);
    if (grant === undefined) return member;
    const { target, force } = grant;
    return { ...member, desired: target, ...(force === undefined ? {} : { force, forceGranted: force }) };
  });
}
