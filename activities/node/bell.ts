/** Timers cannot be longer. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** Wakes one sleeper. */
export class Bell {
  private wake: (() => void) | undefined;

  ring(): void {
    this.wake?.();
  }

  /** Sleeps for so long, or until the bell rings and `isOver` says yes. */
  sleep(milliseconds: number, isOver: () => boolean): Promise<void> {
    if (isOver()) return Promise.resolve();
    return new Promise((resolve) => {
      const end = () => {
        clearTimeout(timer);
        this.wake = undefined;
        resolve();
      };
      const timer = setTimeout(end, Math.min(milliseconds, LONGEST_TIMER_MS));
      this.wake = () => {
        if (isOver()) end();
      };
    });
  }
}
