/** A point at which something is held until a test lets it go. */
export class Gate {
  #open: () => void = () => undefined;
  #reached: () => void = () => undefined;
  /** Resolves when somebody waits at the gate. */
  readonly reached: Promise<void>;
  readonly #opened: Promise<void>;

  constructor() {
    this.reached = new Promise((resolve) => (this.#reached = resolve));
    this.#opened = new Promise((resolve) => (this.#open = resolve));
  }

  wait(): Promise<void> {
    this.#reached();
    return this.#opened;
  }

  open(): void {
    this.#open();
  }
}
