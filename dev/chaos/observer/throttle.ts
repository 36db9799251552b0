import { isTaken, type Check, type Finding } from './check.js';
import type { SeenChange, SeenNode, SeenPool, World } from './world.js';

/**
 * A slot is granted on what was read shortly before: a node that people moved into the pool in this time, or a member
 * that they took out of it, is nobody's fault.
 */
const READ_BEFORE_MS = 30_000;

/** The moment at which a slot was granted, by the pool's own record. */
interface Granted {
  readonly at: string;
  readonly seenAt: number;
  readonly pool: string;
  readonly maxUnavailable: number | string;
  readonly paused: boolean;
}

/**
 * Never more nodes of a pool taken than its maxUnavailable allowed when the last of them was granted its slot; and none
 * that is granted one in a paused pool, or while somebody holds it.
 */
export class ThrottleCheck implements Check {
  readonly promise = 'never more than maxUnavailable of a pool unavailable through Drydock';
  readonly #granted = new Map<string, Granted>();
  readonly #arrived = new Map<string, number>();
  readonly #sizes = new Map<string, { at: number; members: number }[]>();
  #grants = 0;

  /** So many slots were seen to be taken. */
  get grants(): number {
    return this.#grants;
  }

  see(change: SeenChange, world: World, at: number): readonly Finding[] {
    if (change.kind === 'pool' && change.after !== undefined) this.#record(change.after, at);
    if (change.kind !== 'node') return [];
    const { before, after } = change;
    if (before?.pool !== after?.pool) this.#moved(change.name, [before, after], world, at);
    if (after === undefined || !isTaken(after) || (before !== undefined && isTaken(before))) return [];
    this.#grants += 1;
    return this.#judge(after, before, world, at);
  }

  #record({ name, grants, maxUnavailable, paused }: SeenPool, seenAt: number): void {
    for (const { node, at } of grants) {
      const known = this.#granted.get(node);
      if (known?.at === at && known.pool === name) continue;
      this.#granted.set(node, { at, seenAt, pool: name, maxUnavailable, paused });
    }
  }

  #moved(name: string, [before, after]: readonly (SeenNode | undefined)[], world: World, at: number): void {
    if (after !== undefined) this.#arrived.set(name, at);
    for (const pool of [before?.pool, after?.pool]) {
      if (pool === undefined || pool === '') continue;
      const sizes = (this.#sizes.get(pool) ?? []).filter((size) => size.at >= at - 2 * READ_BEFORE_MS);
      // What it was until now counts from now backwards.
      const previous = world.members(pool).length + (before?.pool === pool ? 1 : -1);
      this.#sizes.set(pool, [...sizes, { at, members: previous }]);
    }
  }

  #judge(node: SeenNode, before: SeenNode | undefined, world: World, at: number): Finding[] {
    const recorded = this.#granted.get(node.name);
    const grant = recorded?.pool === node.pool ? recorded : undefined;
    const findings = [this.#judgeRoom(node, grant, world, at)].filter((finding) => finding !== undefined);
    if (before === undefined) return findings;
    const found = (sentence: string) => findings.push({ nodes: [node.name], sentence });
    if (grant?.paused === true) found(`${node.name} was granted a slot while pool ${node.pool} was paused`);
    if (before.hold !== '') found(`${node.name} is taken although it is held: ${before.hold}`);
    return findings;
  }

  #judgeRoom(node: SeenNode, grant: Granted | undefined, world: World, at: number): Finding | undefined {
    const maxUnavailable = (grant ?? world.pools.get(node.pool))?.maxUnavailable ?? 1;
    const since = (grant?.seenAt ?? at) - READ_BEFORE_MS;
    const members = world.members(node.pool);
    const limit = allowed(maxUnavailable, Math.max(members.length, ...this.#sizesSince(node.pool, since)));
    const isCounted = (member: SeenNode) =>
      isTaken(member) && (member.name === node.name || (this.#arrived.get(member.name) ?? 0) < since);
    const taken = members.filter(isCounted).map(({ name }) => name);
    if (taken.length <= limit) return undefined;
    const sentence =
      `${node.name} is taken as one of ${taken.length} of pool ${node.pool} (${taken.join(', ')}), ` +
      `of which ${limit} may be`;
    return { nodes: taken, sentence };
  }

  #sizesSince(pool: string, since: number): number[] {
    return (this.#sizes.get(pool) ?? []).filter(({ at }) => at >= since).map(({ members }) => members);
  }
}

/** By the words of the field: a number, or a percentage rounded down but at least one; 0 is 0. */
function allowed(maxUnavailable: number | string, members: number): number {
  if (typeof maxUnavailable === 'number') return maxUnavailable;
  const percent = Number(maxUnavailable.replace('%', ''));
  return percent === 0 ? 0 : Math.max(1, Math.floor((percent * members) / 100));
}
