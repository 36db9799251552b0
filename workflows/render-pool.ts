import { isCancellation, log, patched, setCurrentDetails } from '@temporalio/workflow';
import { rendering, tidying } from './activity-proxies.js';
import type { RenderPoolResult } from './contract/activities.js';
import type { RenderPoolInput } from './contract/inputs.js';

/** Brings a pool's rendered config up to date. Its id, `render/<pool>`, lets only one of them run at a time. */
export async function renderPool(input: RenderPoolInput): Promise<RenderPoolResult> {
  const result = await rendering.renderPool.executeWithOptions({ summary: `render ${input.pool}` }, [input]);
  setCurrentDetails(sentenceOf(input.pool, result));
  // From version 0.2 on; to be removed with the last workflow that began before.
  if (result.outcome === 'rendered' && patched('collect-rendered')) await collect(input);
  return result;
}

/** Here, since no other render of the pool runs at the same time. The pool has its config whether this works or not. */
async function collect(input: RenderPoolInput): Promise<void> {
  try {
    await tidying.collectRendered.executeWithOptions({ summary: `unused configs of ${input.pool}` }, [input]);
  } catch (error) {
    if (isCancellation(error)) throw error;
    log.warn('Rendered configs that are not used any more could not be deleted; the next render tries again', {
      error,
    });
  }
}

function sentenceOf(pool: string, result: RenderPoolResult): string {
  switch (result.outcome) {
    case 'rendered':
      return `${result.rendered} from ${result.sources} MachineConfigs${result.changed ? '' : ', as before'}`;
    case 'refused':
      return `RenderDegraded: ${result.reason}`;
    case 'poolGone':
      return `The pool ${pool} does not exist any more`;
  }
}
