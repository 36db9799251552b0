import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { NodeDependencies } from '../activities/node/dependencies.js';
import { guardOnce, type GuardTimes, type Probes } from '../activities/node/guard.js';
import { hostStopwatch } from '../activities/node/stopwatch.js';

export interface NodeGuardOptions {
  readonly deps: NodeDependencies;
  readonly probes: Probes;
  readonly times: GuardTimes;
  readonly logger: Logger;
  readonly signal: AbortSignal;
  /** Called after each look: the worker is alive. */
  readonly onLook?: () => void;
}

/**
 * Looks after the node until the signal, whether or not Temporal and the API server are there: to be started before
 * anything that waits for them. A look that fails is logged, and the next one comes all the same.
 */
export async function runNodeGuard(options: NodeGuardOptions): Promise<void> {
  const { deps, times, logger, signal } = options;
  const input = { ...options, stopwatch: hostStopwatch(deps.host, monotonicSeconds) };
  let lastError = '';
  while (!signal.aborted) {
    try {
      const act = await guardOnce(input);
      if (act !== 'nothing') logger.warn({ node: deps.node, act }, 'the guard acted');
      lastError = '';
    } catch (err) {
      const words = String(err);
      if (words !== lastError) logger.warn({ err, node: deps.node }, 'the guard could not look; it tries again');
      lastError = words;
    }
    options.onLook?.();
    await sleep(times.checkSeconds * 1000, undefined, { signal, ref: false }).catch(() => undefined);
  }
}

function monotonicSeconds(): number {
  return Number(process.hrtime.bigint() / 1_000_000_000n);
}
