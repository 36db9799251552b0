import type { Turn } from '../machine-config/pool/turn.js';

/** At most this many nodes are named in the details. */
const NAMED_NODES = 30;
/** The UI reads the details with every refresh; more than this is not read by anybody. */
const MAX_DETAILS_BYTES = 8192;

/** One sentence, the counts, and the nodes in work. */
export function rolloutDetails(turn: Turn, inFlight: readonly string[]): string {
  const { counts } = turn;
  const lines = [
    turn.waiting === null ? sentenceWithoutWaiting(turn, inFlight.length) : `Waiting: ${turn.waiting.sentence}`,
    '',
    `${counts.updated} of ${counts.machines} updated to ${turn.target ?? 'nothing yet'}, ${inFlight.length} in work` +
      ` (at most ${turn.maxUnavailable}), ${counts.unavailable} unavailable, ${counts.degraded} degraded` +
      (counts.unmanaged === 0 ? '' : `, ${counts.unmanaged} unmanaged`),
    ...inFlight.slice(0, NAMED_NODES).map((node) => `- ${node}`),
    ...(inFlight.length > NAMED_NODES ? [`- and ${inFlight.length - NAMED_NODES} more`] : []),
  ];
  return lines.join('\n').slice(0, MAX_DETAILS_BYTES / 2);
}

function sentenceWithoutWaiting(turn: Turn, running: number): string {
  if (turn.done && running === 0) return 'Done: every node runs the target';
  return `Updating ${running} node${running === 1 ? '' : 's'}`;
}
