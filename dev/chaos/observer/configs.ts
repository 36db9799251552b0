import { EMPTY_CONFIG_NAME } from '../../../machine-config/api/flavour.js';
import type { Check, Finding } from './check.js';
import type { SeenChange, SeenNode, World } from './world.js';

/** A node has only configs that a pool wanted while the node was a member of it; what is on its disk outlives its Node. */
export class ConfigCheck implements Check {
  readonly promise = 'no node with a config that no pool gave it';
  readonly #given = new Map<string, Set<string>>();

  see(change: SeenChange, world: World): readonly Finding[] {
    if (change.kind === 'pool') {
      for (const member of world.members(change.name)) this.#give(member.name, change.after?.target);
      return [];
    }
    if (change.kind !== 'node' || change.after === undefined) return [];
    const { before, after } = change;
    this.#give(after.name, world.pools.get(after.pool)?.target);
    return (['desired', 'current'] as const).flatMap((field) => this.#judge(field, before, after));
  }

  #give(node: string, config: string | undefined): void {
    const given = this.#given.get(node) ?? new Set([EMPTY_CONFIG_NAME]);
    if (config !== undefined && config !== '') given.add(config);
    this.#given.set(node, given);
  }

  #judge(field: 'desired' | 'current', before: SeenNode | undefined, after: SeenNode): Finding[] {
    const config = after[field];
    if (config === '' || config === before?.[field] || this.#given.get(after.name)?.has(config) === true) return [];
    return [
      {
        nodes: [after.name],
        sentence: `the ${field} config of ${after.name} is ${config}, which none of its pools ever wanted`,
      },
    ];
  }
}
