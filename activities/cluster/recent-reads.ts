/**
 * One read for all who ask for the same within a short time: what they are told was begun to be read at most so long ago.
 * A failure is told to those who asked, and the next one asks again.
 */
export class RecentReads<T> {
  readonly #milliseconds: number;
  readonly #now: () => number;
  readonly #asked = new Map<string, { readonly at: number; readonly answer: Promise<T> }>();

  constructor(milliseconds: number, now: () => number) {
    this.#milliseconds = milliseconds;
    this.#now = now;
  }

  read(what: string, read: () => Promise<T>): Promise<T> {
    const now = this.#now();
    const asked = this.#asked.get(what);
    if (asked !== undefined && now - asked.at < this.#milliseconds) return asked.answer;
    const answer = read();
    const mine = { at: now, answer };
    this.#asked.set(what, mine);
    answer.catch(() => {
      if (this.#asked.get(what) === mine) this.#asked.delete(what);
    });
    return answer;
  }
}
