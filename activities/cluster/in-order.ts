/** Runs what is asked for under one key one after the other, in the order in which it was asked for. */
export class InOrder {
  readonly #last = new Map<string, Promise<unknown>>();

  run<T>(key: string, work: () => Promise<T>): Promise<T> {
    const before = this.#last.get(key) ?? Promise.resolve();
    const answer = before.then(work);
    // What failed is told to whoever asked, and does not keep back the next one.
    const done = answer.catch(() => undefined);
    this.#last.set(key, done);
    void done.then(() => {
      if (this.#last.get(key) === done) this.#last.delete(key);
    });
    return answer;
  }
}
