/** What a node knows of the times of its update; ISO 8601 or epoch milliseconds. */
export interface UpdateTimes {
  readonly target: string;
  readonly now: Date;
  /** Epoch milliseconds at which its drain began; absent: it was not drained. */
  readonly drainSince?: number | undefined;
  /** When it began to change its disk, and when that was done. */
  readonly applyAt?: string | undefined;
  readonly appliedAt?: string | undefined;
  readonly rebooted: boolean;
}

/**
 * The annotation about an update that has just ended: how many seconds its drain, its changes and what came after them
 * took, `reboot` until the node was back and well or `confirm` where none was due. What is not known is left out.
 */
export function lastUpdateText({ target, now, drainSince, applyAt, appliedAt, rebooted }: UpdateTimes): string {
  const began = timeOf(applyAt);
  const applied = timeOf(appliedAt);
  const steps = {
    drain: between(drainSince, began),
    apply: between(began, applied),
    [rebooted ? 'reboot' : 'confirm']: between(applied, now.getTime()),
    total: between(drainSince ?? began, now.getTime()),
  };
  const seconds = Object.fromEntries(Object.entries(steps).filter(([, value]) => value !== undefined));
  return JSON.stringify({ target, at: now.toISOString(), seconds });
}

function timeOf(text: string | undefined): number | undefined {
  return text === undefined ? undefined : Date.parse(text);
}

/** Whole seconds; of times that are not both known, or in the wrong order since a clock was set, nothing. */
function between(from: number | undefined, until: number | undefined): number | undefined {
  if (from === undefined || until === undefined || Number.isNaN(from) || Number.isNaN(until)) return undefined;
  return until < from ? undefined : Math.round((until - from) / 1000);
}
