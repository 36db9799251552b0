import { condition, continueAsNew, setCurrentDetails, setHandler, sleep } from '@temporalio/workflow';
import { rendering } from './activity-proxies.js';
import type { ReconcileSourcesResult } from './contract/activities.js';
import type { ManageSourcesInput } from './contract/inputs.js';
import { sourcesChanged } from './contract/messages.js';
import { historyIsFull } from './history.js';

/**
 * Looks after the objects of one kind that MachineConfigs are generated from: generates anew when one of them, or
 * something they depend on, has changed. Started and told of changes by signal-with-start; lost signals are made good by
 * the next one, since every control worker repeats it.
 */
export async function manageSources(input: ManageSourcesInput): Promise<void> {
  const { cluster, kind, tuning } = input;
  let heard = 1;
  let seen = 0;
  setHandler(
    sourcesChanged,
    () => {
      heard += 1;
    },
    { description: 'An object of the kind, a pool or a MachineConfig has changed: generate again' },
  );

  for (;;) {
    await condition(() => heard > seen);
    await sleep(tuning.debounceSeconds * 1000, { summary: 'more changes may come' });
    seen = heard;
    const result = await rendering.reconcileSources.executeWithOptions({ summary: `generate from ${kind}` }, [
      { cluster, kind },
    ]);
    if (!result.known) return;
    setCurrentDetails(sentenceOf(input, result));
    if (historyIsFull(tuning.maxEvents) && heard === seen) {
      await continueAsNew<typeof manageSources>(input);
    }
    await sleep(tuning.turnSeconds * 1000, { summary: 'at most one look in this time' });
  }
}

function sentenceOf({ kind }: ManageSourcesInput, { objects, generated, refused }: ReconcileSourcesResult): string {
  if (objects === 0) return `There is no ${kind}`;
  const made = generated.length === 0 ? 'Nothing is generated' : `Generated: ${generated.join(', ')}`;
  return [made, ...refused.map((line) => `Refused: ${line}`)].join('\n\n');
}
