import type { Check, Finding } from './check.js';
import type { SeenChange, SeenNode } from './world.js';

/** What people have set on a Node only people take away: their cordons and their holds. */
export class CordonCheck implements Check {
  readonly promise = 'no cordon set before ours lost, and no hold';
  readonly #foreign = new Set<string>();

  /** The node is cordoned, and by somebody else. */
  isForeign(node: string): boolean {
    return this.#foreign.has(node);
  }

  see(change: SeenChange): readonly Finding[] {
    if (change.kind !== 'node') return [];
    const { name, before, after } = change;
    if (after === undefined) {
      this.#foreign.delete(name);
      return [];
    }
    const byHand = before?.hand !== after.hand;
    return [...this.#cordon(before, after, byHand), ...hold(before, after, byHand)];
  }

  #cordon(before: SeenNode | undefined, after: SeenNode, byHand: boolean): Finding[] {
    const { name } = after;
    const found = (sentence: string): Finding[] => [{ nodes: [name], sentence }];
    const wasCordoned = before?.unschedulable === true;
    if (!wasCordoned && after.unschedulable && after.cordonedFor === '') {
      if (!byHand) return found(`${name} was cordoned by nobody who says so`);
      this.#foreign.add(name);
    }
    if (!this.#foreign.has(name)) return [];
    if (!after.unschedulable) {
      this.#foreign.delete(name);
      return byHand ? [] : found(`the cordon of ${name} was somebody's, and Drydock lifted it`);
    }
    if (after.cordonedFor !== '' && before?.cordonedFor === '') {
      return found(`${name} was cordoned by somebody, and Drydock took the cordon for its own`);
    }
    return [];
  }
}

function hold(before: SeenNode | undefined, after: SeenNode, byHand: boolean): Finding[] {
  if (byHand || before === undefined || before.hold === after.hold) return [];
  const how = after.hold === '' ? 'gone' : `now ${after.hold}`;
  return [
    { nodes: [after.name], sentence: `the hold of ${after.name} (${before.hold}) is ${how}, and nobody did that` },
  ];
}
