import { currentOf, underWay, type Check, type Finding } from './check.js';
import type { SeenChange, SeenNode } from './world.js';

/** The way back of an update that the host took back after its boot. */
const TAKEN_BACK = 'RolledBackAfterBoot';

/** What is known of a machine, over all Nodes that it had. */
interface Machine {
  /** Its worker has registered once. Until then its Node says what it was created with, and no reboot counts. */
  joined: boolean;
  bootId: string;
  current: string;
  /** Where it was last seen to be on its way to. */
  towards: string | undefined;
  /** Reboots by config, since the node last became another one. */
  readonly reboots: Map<string, number>;
}

/** A node reboots for an update and for nothing else, and once for each time that it is brought to a config. */
export class RebootCheck implements Check {
  readonly promise = 'for one config no second reboot of a node, but the one back';
  readonly #machines = new Map<string, Machine>();
  #reboots = 0;

  /** So many reboots were seen. */
  get reboots(): number {
    return this.#reboots;
  }

  see(change: SeenChange): readonly Finding[] {
    if (change.kind !== 'node' || change.after === undefined) return [];
    const { after } = change;
    const machine = this.#machines.get(after.name) ?? newMachine(after);
    this.#machines.set(after.name, machine);
    const hasNewBoot = after.bootId !== '' && after.bootId !== machine.bootId;
    const findings = hasNewBoot && machine.joined ? this.#rebooted(machine, after) : [];
    if (hasNewBoot) machine.bootId = after.bootId;
    machine.joined ||= after.managed;
    if (after.current !== '' && currentOf(after) !== machine.current) arrive(machine, currentOf(after));
    machine.towards = underWay(after) ?? (isNew(after) ? machine.towards : undefined);
    return findings;
  }

  #rebooted(machine: Machine, node: SeenNode): Finding[] {
    this.#reboots += 1;
    const target = underWay(node) ?? machine.towards;
    if (target === undefined) {
      return [{ nodes: [node.name], sentence: `${node.name} rebooted without an update: it runs ${currentOf(node)}` }];
    }
    const count = (machine.reboots.get(target) ?? 0) + 1;
    machine.reboots.set(target, count);
    const most = node.failure.includes(TAKEN_BACK) ? 2 : 1;
    if (count <= most) return [];
    return [{ nodes: [node.name], sentence: `${node.name} rebooted for the ${count}. time for ${target}` }];
  }
}

function newMachine(node: SeenNode): Machine {
  return {
    joined: node.managed,
    bootId: node.bootId,
    current: currentOf(node),
    towards: undefined,
    reboots: new Map(),
  };
}

/** A Node that was created again says nothing until its worker has found it. */
function isNew(node: SeenNode): boolean {
  return node.current === '';
}

/** It runs another config from here on: to be brought to an earlier one again is another update. */
function arrive(machine: Machine, config: string): void {
  machine.current = config;
  for (const other of [...machine.reboots.keys()]) if (other !== config) machine.reboots.delete(other);
}
