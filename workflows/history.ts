import { workflowInfo } from '@temporalio/workflow';

/** A run that has much to hand over goes on for longer than the server suggests, but no further than this. */
const MOST_EVENTS = 9_000;
const MOST_BYTES = 4_000_000;
/** What a handover may cost, as a share of what the run did, for it to be made as soon as the server suggests it. */
const CHEAP_SHARE = 0.1;

/**
 * Whether this run should continue as new: the server suggests it, or the injected limit of events is reached.
 * `eventsToHandOver`: how many events that costs; where they are many, it is done later and so less often.
 */
export function historyIsFull(maxEvents: number | undefined, eventsToHandOver = 0): boolean {
  const { continueAsNewSuggested, historyLength, historySize } = workflowInfo();
  if (maxEvents !== undefined && historyLength >= maxEvents) return true;
  if (!continueAsNewSuggested) return false;
  const isCheap = eventsToHandOver <= CHEAP_SHARE * historyLength;
  return isCheap || historyLength + eventsToHandOver >= MOST_EVENTS || historySize >= MOST_BYTES;
}
