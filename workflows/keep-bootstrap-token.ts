import { continueAsNew, setCurrentDetails, sleep } from '@temporalio/workflow';
import { control } from './activity-proxies.js';
import type { KeepBootstrapTokenInput } from './contract/inputs.js';
import { historyIsFull } from './history.js';

/** So often at least the Secrets are looked at: somebody may have taken the token away. */
const LOOK_EVERY_SECONDS = 3600;

/**
 * Has the token with which new machines join made anew when it is due. One entity workflow a cluster; it ends where no
 * first boots are wanted any more, and every control worker starts it again where they are.
 */
export async function keepBootstrapToken(input: KeepBootstrapTokenInput): Promise<void> {
  const { cluster, maxEvents, lookEverySeconds = LOOK_EVERY_SECONDS } = input;
  for (;;) {
    const result = await control.renewBootstrapToken.executeWithOptions(
      { summary: 'make the token anew if it is due' },
      [{ cluster }],
    );
    if (result.outcome === 'absent') return;
    const { dueInSeconds } = result;
    setCurrentDetails(`The bootstrap token is due to be made anew in ${Math.ceil(dueInSeconds / 60)} minutes`);
    if (historyIsFull(maxEvents)) await continueAsNew<typeof keepBootstrapToken>(input);
    await sleep(Math.min(dueInSeconds, lookEverySeconds) * 1000, { summary: 'until the token is looked at again' });
  }
}
