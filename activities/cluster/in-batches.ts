import type { InOrder } from './in-order.js';

/** So many that what is written for all of them together stays small. */
const MOST_TOGETHER = 50;

interface Batch<I, O> {
  readonly items: I[];
  readonly answers: Promise<readonly O[]>;
}

/** Collects what is asked for under one key until it is its turn, and works on all of it together. */
export class InBatches<I, O> {
  readonly #order: InOrder;
  readonly #work: (items: readonly I[]) => Promise<readonly O[]>;
  /** Those whose turn has not come. */
  readonly #open = new Map<string, Batch<I, O>>();

  /** `work` answers for each item, in their order. What it throws is told to all who asked. */
  constructor(order: InOrder, work: (items: readonly I[]) => Promise<readonly O[]>) {
    this.#order = order;
    this.#work = work;
  }

  async run(key: string, item: I): Promise<O | undefined> {
    const { items, answers } = this.#open.get(key) ?? this.#begin(key);
    const index = items.push(item) - 1;
    if (items.length === MOST_TOGETHER) this.#open.delete(key);
    return (await answers)[index];
  }

  #begin(key: string): Batch<I, O> {
    const items: I[] = [];
    const answers = this.#order.run(key, () => {
      if (this.#open.get(key) === batch) this.#open.delete(key);
      return this.#work(items);
    });
    const batch = { items, answers };
    this.#open.set(key, batch);
    return batch;
  }
}
