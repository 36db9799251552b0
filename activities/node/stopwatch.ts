import { join } from 'node:path';
import { readIfThere, writeDurably } from '../host/durable.js';
import type { Host } from '../host/host.js';
import type { Stopwatch } from './guard.js';

/** Gone with the boot, like what it is about; outside the service's own runtime folder, which goes with each stop. */
const STOPWATCH_FILE = 'run/drydock-stopwatch.json';

interface Record {
  readonly bootId: string;
  /** What has been so, and since when. */
  readonly since: { readonly [what: string]: number };
}

/**
 * A stopwatch that a restart of the worker does not set back. `monotonicSeconds` is a clock of the machine's present
 * boot, which nobody sets.
 */
export function hostStopwatch(host: Host, monotonicSeconds: () => number): Stopwatch {
  const path = join(host.root, STOPWATCH_FILE);

  async function read(bootId: string): Promise<Record> {
    const fresh: Record = { bootId, since: {} };
    try {
      const record = JSON.parse((await readIfThere(path)) ?? 'null') as Record | null;
      return record?.bootId === bootId ? record : fresh;
    } catch {
      return fresh;
    }
  }

  return {
    async seconds(what, isSo) {
      const bootId = await host.bootId();
      const { since } = await read(bootId);
      const now = monotonicSeconds();
      const began = since[what];
      if (isSo && began !== undefined) return Math.max(0, now - began);
      if (isSo === (began !== undefined)) return 0;
      const others = Object.fromEntries(Object.entries(since).filter(([other]) => other !== what));
      await writeDurably(path, JSON.stringify({ bootId, since: isSo ? { ...others, [what]: now } : others }));
      return 0;
    },
  };
}
