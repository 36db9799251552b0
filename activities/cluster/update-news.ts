import { isApplying } from '../../machine-config/pool/availability.js';
import { isControlPlaneNode } from '../../machine-config/pool/control-plane.js';
import type { NodeFacts } from '../../machine-config/pool/facts.js';
import type { PlanTurnFacts } from '../../machine-config/pool/plan-turn.js';

/** Names of nodes, by pool. */
type ByPool = Map<string, ReadonlySet<string>>;

/** Why the rest of the control plane does not let a node reboot; undefined: it does. */
type Obstacle = (node: NodeFacts) => Promise<string | undefined>;

/**
 * Which running updates have something to ask again, so that they need not wait for their own timers: those that drain
 * while everything is being stopped, and those that could not reboot at the last turn and may now. Each is told once. A
 * control worker that has not seen what was before tells nobody, and the timers do the rest.
 */
export class UpdateNews {
  /** The pools that were stopped at their last turn, with the nodes that were told of that. */
  readonly #stopped: ByPool = new Map();
  /** Those whose control plane did not let them reboot at the last turn. */
  readonly #held: ByPool = new Map();

  /** Names of the nodes to be told. To be asked at every turn. */
  async of({ pool, members, inFlight, cluster }: PlanTurnFacts, obstacle: Obstacle): Promise<string[]> {
    const running = new Set(inFlight);
    const inWork = members.filter(({ name }) => running.has(name));
    const applying = inWork.filter(isApplying);
    const freed = await this.#freed(pool.name, applying, obstacle);
    const told = this.#stopped.get(pool.name);
    if (cluster?.stop !== undefined) {
      const open = inWork.filter((node) => !isApplying(node)).map(({ name }) => name);
      this.#stopped.set(pool.name, new Set(open));
      return open.filter((name) => told?.has(name) !== true);
    }
    this.#stopped.delete(pool.name);
    return told === undefined ? freed : applying.map(({ name }) => name);
  }

  /** Those that the rest of their control plane does not keep from their reboot any more. */
  async #freed(pool: string, applying: readonly NodeFacts[], obstacle: Obstacle): Promise<string[]> {
    const held = new Set<string>();
    for (const node of applying.filter(isControlPlaneNode)) {
      if ((await obstacle(node)) !== undefined) held.add(node.name);
    }
    const before = this.#held.get(pool) ?? new Set();
    if (held.size > 0) this.#held.set(pool, held);
    else this.#held.delete(pool);
    return [...before].filter((name) => !held.has(name) && applying.some((node) => node.name === name));
  }
}
