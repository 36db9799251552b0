import {
  CancellationScope,
  CancelledFailure,
  condition,
  continueAsNew,
  isCancellation,
  patched,
  setCurrentDetails,
  setHandler,
  sleep,
} from '@temporalio/workflow';
import type { Turn } from '../machine-config/pool/turn.js';
import { atOnce, control } from './activity-proxies.js';
import type { RollOutPoolInput, RollOutPoolResult } from './contract/inputs.js';
import { rolloutStatus } from './contract/messages.js';
import { Fleet } from './fleet.js';
import { historyIsFull } from './history.js';
import { Patience } from './patience.js';
import { PoolDisplay } from './pool-display.js';
import { rolloutDetails } from './rollout-details.js';

/**
 * Before, each turn was an activity of its own with another one for the status: twenty events, once a second. To be
 * removed when no rollout runs that began before version 0.2.
 */
const LEAN_TURNS = 'lean-turns';

/** A workflow may have 2,000 children that it waits for; more nodes than this at once are no rollout but an outage. */
const MOST_UPDATES_AT_ONCE = 1_500;

/**
 * Brings every node of a pool to the pool's rendered config, oldest first and never more than maxUnavailable at once.
 * What may start is decided by `planTurn`; this only takes turns, starts and stops updates, and waits for news. It ends
 * when there is nothing left to do, and hands its running updates over when it continues as new.
 */
export async function rollOutPool(input: RollOutPoolInput): Promise<RollOutPoolResult> {
  const fleet = new Fleet(input);
  const display = patched(LEAN_TURNS) ? new PoolDisplay(input) : undefined;
  const patience = new Patience(input.tuning);
  const { turnSeconds, maxEvents } = input.tuning;
  let lastTurn: Turn | null = null;
  setHandler(rolloutStatus, () => ({ pool: input.pool, turn: lastTurn, inFlight: fleet.nodes() }), {
    description: 'The last turn: what runs, what waits and why',
  });
  try {
    for (;;) {
      const startedAt = Date.now();
      fleet.takeNews();
      const turn: Turn = await (display === undefined ? takeTurn(input, fleet) : takeLeanTurn(input, fleet, display));
      lastTurn = turn;
      setCurrentDetails(rolloutDetails(turn, fleet.nodes()));
      if (turn.done && fleet.size === 0) {
        const result = await finish(input, turn, display);
        // A wake that came since the turn began would be lost with this run: whoever sent it believes it was heard.
        if (!fleet.hasNews) return result;
      }
      if (historyIsFull(maxEvents, fleet.eventsToHandOver)) {
        await fleet.askForSignals();
        await continueAsNew<typeof rollOutPool>({ ...input, ...fleet.handOver() });
      }

      const atMost = patience.after(turn, fleet.pending, Date.now());
      await condition(() => fleet.hasNews, Math.min(atMost, untilDue(display)));
      const early = startedAt + turnSeconds * 1000 - Date.now();
      if (early > 0) await sleep(early, { summary: 'at most one turn in this time' });
      await fleet.findSilent();
    }
  } catch (error) {
    if (isCancellation(error)) await CancellationScope.nonCancellable(() => fleet.stopAll());
    throw error;
  }
}

async function takeLeanTurn(input: RollOutPoolInput, fleet: Fleet, display: PoolDisplay): Promise<Turn> {
  const { cluster, pool } = input;
  const now = Date.now();
  const turn = await atOnce.planTurn.executeWithOptions({ summary: `what next in ${pool}? (${fleet.size} running)` }, [
    { cluster, pool, inFlight: fleet.nodeUids(), resting: fleet.resting(), now },
  ]);
  stopIfCancelled(pool);
  await display.tell(turn);
  stopIfCancelled(pool);
  await fleet.drop(turn.cancel);
  await fleet.reconsider(turn.reconsider);
  const room = Math.max(0, MOST_UPDATES_AT_ONCE - fleet.size);
  await Promise.all(turn.start.slice(0, room).map((start) => fleet.start(start)));
  return turn;
}

function untilDue(display: PoolDisplay | undefined): number {
  return display === undefined ? Infinity : Math.max(0, display.dueAt - Date.now());
}

/** Activities that do not heartbeat end as if nothing had happened; nothing may start after a cancellation. */
function stopIfCancelled(pool: string): void {
  if (CancellationScope.current().consideredCancelled)
    throw new CancelledFailure(`the rollout of ${pool} is cancelled`);
}

async function takeTurn(input: RollOutPoolInput, fleet: Fleet): Promise<Turn> {
  const { cluster, pool } = input;
  const [turn] = await Promise.all([
    control.planTurn.executeWithOptions({ summary: `what next in ${pool}? (${fleet.size} running)` }, [
      { cluster, pool, inFlight: fleet.nodeUids(), resting: fleet.resting(), now: Date.now() },
    ]),
    showStatus(input),
  ]);
  stopIfCancelled(pool);
  await fleet.drop(turn.cancel);
  await fleet.reconsider(turn.reconsider);
  for (const start of turn.start) await fleet.start(start);
  return turn;
}

async function showStatus({ cluster, pool }: RollOutPoolInput): Promise<void> {
  await control.syncPool.executeWithOptions({ summary: `status of ${pool}` }, [{ cluster, pool }]);
}

async function finish(input: RollOutPoolInput, turn: Turn, display?: PoolDisplay): Promise<RollOutPoolResult> {
  await (display === undefined ? showStatus(input) : display.show(turn));
  const { updated, machines, degraded } = turn.counts;
  return { target: turn.target, updated, machines, degraded };
}
