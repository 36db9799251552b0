/** Numbers that follow from a seed alone, the same on every machine. Not for secrets. */
export class Random {
  #state: number;

  /** @param stream independent sequences of one seed have different names */
  constructor(seed: number, stream: string) {
    this.#state = seed >>> 0;
    for (const character of stream) this.#state = Math.imul(this.#state ^ character.charCodeAt(0), 0x01000193) >>> 0;
    // Neighbouring seeds would begin alike.
    for (let round = 0; round < 8; round += 1) this.fraction();
  }

  /** From 0 up to but not including 1 (the generator mulberry32). */
  fraction(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  /** A whole number, both ends included. */
  between(from: number, to: number): number {
    return from + Math.floor(this.fraction() * (to - from + 1));
  }

  pick<T>(from: readonly [T, ...T[]] | readonly T[]): T {
    const picked = from[this.between(0, from.length - 1)];
    if (picked === undefined) throw new Error('nothing to pick from');
    return picked;
  }
}

/** Picks everything once, in random order, before anything twice: even a short run leaves nothing out. */
export class Deck<T> {
  readonly #all: readonly T[];
  #left: T[] = [];

  constructor(all: readonly T[]) {
    this.#all = all;
  }

  pick(random: Random): T {
    if (this.#left.length === 0) this.#left = [...this.#all];
    const index = random.between(0, this.#left.length - 1);
    const [picked] = this.#left.splice(index, 1);
    if (picked === undefined) throw new Error('nothing to pick from');
    return picked;
  }
}
