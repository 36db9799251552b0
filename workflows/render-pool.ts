import { setCurrentDetails } from '@temporalio/workflow';
import { rendering } from './activity-proxies.js';
import type { RenderPoolResult } from './contract/activities.js';
import type { RenderPoolInput } from './contract/inputs.js';

/** Brings a pool's rendered config up to date. Its id, `render/<pool>`, lets only one of them run at a time. */
export async function renderPool(input: RenderPoolInput): Promise<RenderPoolResult> {
  const result = await rendering.renderPool.executeWithOptions({ summary: `render ${input.pool}` }, [input]);
  setCurrentDetails(sentenceOf(input.pool, result));
  return result;
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
