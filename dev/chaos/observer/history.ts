import type { SeenChange, SeenNode } from './world.js';

const MOST_LINES = 60;
/** Of the hash of a rendered config, so many characters are shown. */
const HASH_LENGTH = 6;

/** What befell each node, as lines for people, the latest of them. */
export class NodeHistory {
  readonly #lines = new Map<string, string[]>();

  see(change: SeenChange, when: string): void {
    if (change.kind !== 'node') return;
    const { before, after } = change;
    const what = after === undefined ? 'deleted' : differences(before, after);
    if (what === '') return;
    const lines = this.#lines.get(change.name) ?? [];
    lines.push(`${when}  ${change.name}  ${what}`);
    this.#lines.set(change.name, lines.slice(-MOST_LINES));
  }

  of(node: string): readonly string[] {
    return this.#lines.get(node) ?? [];
  }
}

function differences(before: SeenNode | undefined, after: SeenNode): string {
  const fields = Object.keys(after) as (keyof SeenNode)[];
  const changed = fields.filter((field) => field !== 'name' && before?.[field] !== after[field]);
  return changed.map((field) => `${field}=${shortened(String(after[field]))}`).join(' ');
}

/** Rendered configs and long ids in short. */
function shortened(text: string): string {
  return text
    .replaceAll(/(rendered-[a-z]+-[0-9a-f]{6})[0-9a-f]+/g, '$1')
    .replaceAll(/([0-9a-f]{6})[0-9a-f]{2}-[0-9a-f-]{27}/g, '$1')
    .slice(0, 30 * HASH_LENGTH);
}
