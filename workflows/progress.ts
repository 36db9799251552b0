import { log, setCurrentDetails, setHandler, upsertSearchAttributes } from '@temporalio/workflow';
import type { UpdateNodeInput, UpdateStep } from './contract/inputs.js';
import { nodeUpdateStatus } from './contract/messages.js';
import { SEARCH_ATTRIBUTES } from './contract/search-attributes.js';

/** What an update tells while it runs: the query, the details in the UI, the search attribute. */
export interface Progress {
  readonly step: UpdateStep;
  /** The update is now at `step`; `sentence` says in words what it does or waits for. */
  at(step: UpdateStep, sentence: string): void;
  /** It goes to another target from here on. */
  retarget(target: string): void;
}

export function trackProgress(input: UpdateNodeInput): Progress {
  let step: UpdateStep = 'assign';
  let target = input.target;
  let sentence = `Asks for a slot to update ${input.node}`;
  let phase = '';
  setHandler(nodeUpdateStatus, () => ({ node: input.node, target, step, sentence }), {
    description: 'The step this update is at, and what it waits for',
  });
  return {
    get step() {
      return step;
    },
    at(nextStep, nextSentence) {
      if (nextStep !== step) log.info(nextSentence, { step: nextStep, target });
      step = nextStep;
      sentence = nextSentence;
      setCurrentDetails(sentence);
      if ((step === 'drain' || step === 'reboot') && phase !== step) {
        phase = step;
        upsertSearchAttributes([{ key: SEARCH_ATTRIBUTES.phase, value: phase }]);
      }
    },
    retarget(nextTarget) {
      target = nextTarget;
    },
  };
}

/** `rendered-worker-1a2b` for `rendered-worker-1a2b3c4d…`: enough to tell revisions apart in a list. */
export function shortConfigName(name: string): string {
  return name.replace(/-([0-9a-f]{4})[0-9a-f]{28}$/, '-$1');
}

/** One line for lists: `worker-3: rendered-worker-1a2b → 3c4d`. */
export function updateSummary(node: string, current: string, target: string): string {
  const from = shortConfigName(current);
  const to = shortConfigName(target);
  const shared = from.slice(0, from.lastIndexOf('-') + 1);
  return `${node}: ${from} → ${shared !== '' && to.startsWith(shared) ? to.slice(shared.length) : to}`;
}
