import { workflowInfo } from '@temporalio/workflow';

/** Whether this run should continue as new: the server suggests it, or the injected limit of events is reached. */
export function historyIsFull(maxEvents: number | undefined): boolean {
  const { continueAsNewSuggested, historyLength } = workflowInfo();
  return continueAsNewSuggested || (maxEvents !== undefined && historyLength >= maxEvents);
}
