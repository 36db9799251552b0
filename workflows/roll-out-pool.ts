import {
  CancellationScope,
  CancelledFailure,
  condition,
  continueAsNew,
  isCancellation,
  setCurrentDetails,
  setHandler,
  sleep,
} from '@temporalio/workflow';
import type { Turn } from '../machine-config/pool/turn.js';
import { control } from './activity-proxies.js';
import type { RollOutPoolInput, RollOutPoolResult } from './contract/inputs.js';
import { rolloutStatus } from './contract/messages.js';
import { Fleet } from './fleet.js';
import { historyIsFull } from './history.js';
import { rolloutDetails } from './rollout-details.js';

/**
 * Brings every node of a pool to the pool's rendered config, oldest first and never more than maxUnavailable at once.
 * What may start is decided by `planTurn`; this only takes turns, starts and stops updates, and waits for news. It ends
 * when there is nothing left to do, and hands its running updates over when it continues as new.
 */
export async function rollOutPool(input: RollOutPoolInput): Promise<RollOutPoolResult> {
  const fleet = new Fleet(input);
  const { turnSeconds, tickSeconds, maxEvents } = input.tuning;
  let lastTurn: Turn | null = null;
  setHandler(rolloutStatus, () => ({ pool: input.pool, turn: lastTurn, inFlight: fleet.nodes() }), {
    description: 'The last turn: what runs, what waits and why',
  });
  try {
    for (;;) {
      const startedAt = Date.now();
      fleet.takeNews();
      const turn = await takeTurn(input, fleet);
      lastTurn = turn;
      setCurrentDetails(rolloutDetails(turn, fleet.nodes()));
      if (turn.done && fleet.size === 0) {
        const result = await finish(input, turn);
        // A wake that came since the turn began would be lost with this run: whoever sent it believes it was heard.
        if (!fleet.hasNews) return result;
      }
      if (historyIsFull(maxEvents)) await continueAsNew<typeof rollOutPool>({ ...input, ...fleet.handOver() });

      const patience = Math.min(tickSeconds * 1000, Math.max((turn.waiting?.until ?? Infinity) - Date.now(), 0));
      await condition(() => fleet.hasNews, patience);
      const early = startedAt + turnSeconds * 1000 - Date.now();
      if (early > 0) await sleep(early, { summary: 'at most one turn in this time' });
      await fleet.findSilent();
    }
  } catch (error) {
    if (isCancellation(error)) await CancellationScope.nonCancellable(() => fleet.stopAll());
    throw error;
  }
}

async function takeTurn({ cluster, pool }: RollOutPoolInput, fleet: Fleet): Promise<Turn> {
  const [turn] = await Promise.all([
    control.planTurn.executeWithOptions({ summary: `what next in ${pool}? (${fleet.size} running)` }, [
      { cluster, pool, inFlight: fleet.nodeUids(), resting: fleet.resting(), now: Date.now() },
    ]),
    control.syncPool.executeWithOptions({ summary: `status of ${pool}` }, [{ cluster, pool }]),
  ]);
  // Activities that do not heartbeat end as if nothing had happened; nothing may start after a cancellation.
  if (CancellationScope.current().consideredCancelled)
    throw new CancelledFailure(`the rollout of ${pool} is cancelled`);
  await fleet.drop(turn.cancel);
  await fleet.reconsider(turn.reconsider);
  for (const start of turn.start) await fleet.start(start);
  return turn;
}

async function finish({ cluster, pool }: RollOutPoolInput, turn: Turn): Promise<RollOutPoolResult> {
  await control.syncPool.executeWithOptions({ summary: `status of ${pool}` }, [{ cluster, pool }]);
  const { updated, machines, degraded } = turn.counts;
  return { target: turn.target, updated, machines, degraded };
}
