import { holdsGrant, isUnavailable } from '../availability.js';
import { takesRoom, type SlotNeed } from '../candidates.js';
import type { NodeFacts } from '../facts.js';
import { nameSome } from '../sentences.js';
import type { PolicyCode } from '../turn.js';
import { awaitsGates } from './after-node.js';
import { paceOf } from './pace.js';
import { isBegun, type RolloutFacts } from './rollout-facts.js';
import { zoneLimits } from './zones.js';

/** What there is no room in. */
export type Lack = 'NoSlot' | (PolicyCode & ('ZoneFull' | 'PaceFull'));

export interface RoomFacts extends RolloutFacts {
  /** Nodes that have just passed the gates after a node, and do not say so yet. */
  readonly passed?: ReadonlySet<string>;
  /** The node that asks, of which nothing runs: what it takes itself it may keep. */
  readonly except?: string;
  /** No slots are to be given at all; only what is out of service anyway may be brought to its end. */
  readonly closed?: boolean;
}

/** The room that is left for updates, in the whole pool, in each zone, and by the pace of the rollout. */
export interface Room {
  /** What there is no room in for a node that needs this much; undefined: it may start. */
  lackFor(node: NodeFacts, slot: SlotNeed): Lack | undefined;
  /** Takes the room for a node that starts. */
  take(node: NodeFacts, slot: SlotNeed): void;
  /** How much room there is of that, and who takes it, as a part of a sentence. */
  describe(lack: Lack, node: NodeFacts): string;
}

const NEEDS = ['none', 'unheld', 'held'] as const;
type Counted = (typeof NEEDS)[number];

/** Names of those that take room, by how much is needed; all of them and zone by zone. */
class Taken {
  readonly #names = new Map<string, Set<string>>();

  of(need: Counted, zone = ''): Set<string> {
    const key = `${need} ${zone}`;
    const known = this.#names.get(key) ?? new Set<string>();
    this.#names.set(key, known);
    return known;
  }

  add(name: string, need: Counted, zone: string | undefined): void {
    this.of(need).add(name);
    if (zone !== undefined) this.of(need, zone).add(name);
  }
}

/** What runs takes room whether or not the facts show it already, and an updated node until it has passed its gates. */
function countTaken(facts: RoomFacts, zoneOf: (node: NodeFacts) => string | undefined) {
  const { members, running, target, pool, passed, except } = facts;
  const taken = new Taken();
  const working = new Set<string>();
  for (const name of running) {
    for (const need of NEEDS) taken.add(name, need, undefined);
    working.add(name);
  }
  for (const node of members) {
    const runs = running.has(node.name);
    const waits = awaitsGates(node, pool) && passed?.has(node.name) !== true;
    // Most nodes of a large pool take none.
    if (node.name === except || !(runs || waits || isUnavailable(node, target))) continue;
    const takes = (need: Counted) => runs || takesRoom(node, need, target) || (waits && need !== 'held');
    if (waits || holdsGrant(node)) working.add(node.name);
    for (const need of NEEDS.filter(takes)) taken.add(node.name, need, zoneOf(node));
  }
  return { taken, working };
}

/**
 * Counts the room that is left. A fresh node needs a slot that nothing takes. One that counts as unavailable already,
 * but was granted nothing, starts where those that were granted one leave room. One that was granted its slot and still
 * carries workloads starts as long as fewer nodes than allowed are really out of service, and one that we took out of
 * service always: only its update brings it back.
 */
export function roomIn(facts: RoomFacts): Room {
  const { pool, members, limit, closed } = facts;
  const slots = limit.ok && closed !== true ? limit.limit : 0;
  const pace = paceOf(pool, members, slots);
  const zones = zoneLimits(pool, members);
  const zoneOf = (node: NodeFacts) => zones?.zoneOf(node);
  const { taken, working } = countTaken(facts, zoneOf);
  const zoneLimit = (node: NodeFacts) => zones?.limitOf(zoneOf(node) ?? '') ?? slots;
  return {
    lackFor(node, slot) {
      if (slot === 'down') return undefined;
      const zone = zoneOf(node);
      if (taken.of(slot).size >= slots) return 'NoSlot';
      if (zone !== undefined && taken.of(slot, zone).size >= zoneLimit(node)) return 'ZoneFull';
      // What holds a slot is counted among those in work already.
      if (slot !== 'held' && !isBegun(node) && working.size >= pace) return 'PaceFull';
      return undefined;
    },
    take(node, slot) {
      if (slot === 'down') return;
      taken.add(node.name, slot, zoneOf(node));
      working.add(node.name);
    },
    describe(lack, node) {
      if (lack === 'PaceFull') {
        return (
          `the pace of the rollout allows ${pace} at once by now, in work ${isOrAre(working)}; it grows as nodes are ` +
          `updated, see spec.rollout.pace`
        );
      }
      const zone = zoneOf(node) ?? '';
      if (lack === 'ZoneFull') {
        return (
          `in zone ${zone} ${zoneLimit(node)} may be unavailable at once, and ${isOrAre(taken.of('none', zone))}, see ` +
          `spec.rollout.maxUnavailablePerZone`
        );
      }
      return `${taken.of('none').size} of ${slots} of pool ${pool.name} are taken by ${nameSome([...taken.of('none')].sort())}`;
    },
  };
}

function isOrAre(names: ReadonlySet<string>): string {
  return `${names.size === 1 ? 'is' : 'are'} ${nameSome([...names].sort())}`;
}

/** Names of all that takes a slot: what the facts show united with what runs. */
export function slotsTaken(
  members: readonly NodeFacts[],
  running: Iterable<string>,
  target: string | undefined,
): Set<string> {
  return new Set([...running, ...members.filter((node) => isUnavailable(node, target)).map(({ name }) => name)]);
}
