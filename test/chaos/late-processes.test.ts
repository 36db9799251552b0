import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ChaosLab, LAST_STEP_OF_APPLY, OLDEST } from '../support/chaos-lab.js';

/** Twice the time after which Temporal gives up an attempt that it does not hear of. */
const FROZEN_MS = 60_000;
/** The freezes overlap: each process is alone with the frozen other one for this long. */
const STAGGER_MS = 15_000;
const WATCH_DELAY_MS = 10_000;

describe('a rollout goes on to its end, no node reboots twice and the throttle holds', () => {
  let chaos: ChaosLab;
  beforeAll(async () => {
    chaos = await ChaosLab.start();
  });
  afterAll(() => chaos.stop());

  it('when the fleet and the control worker freeze for 60 s and go on with attempts that were given up', async () => {
    const { fleet, control } = chaos.processes;
    async function freezeControl(): Promise<void> {
      await sleep(STAGGER_MS);
      await control.kill('SIGSTOP');
      await sleep(FROZEN_MS);
      await control.kill('SIGCONT');
    }
    async function freezeFleet(): Promise<void> {
      await fleet.kill('SIGSTOP');
      await sleep(FROZEN_MS);
      expect(await chaos.attemptOf(OLDEST), `attempt of the apply on ${OLDEST}`).toBeGreaterThan(1);
      // The zombie goes on in the same moment in which the attempt that replaced it begins.
      await chaos.setFaults(OLDEST);
      await fleet.kill('SIGCONT');
    }
    await chaos.setFaults(OLDEST, { holdAt: LAST_STEP_OF_APPLY });
    await chaos.rollOutThrough(async (rollout) => {
      await chaos.waitFor(`${OLDEST} to have its disk written`, () => chaos.hasOnDisk(OLDEST, rollout));
      await Promise.all([freezeFleet(), freezeControl()]);
    });
  });

  it('when the one control worker sees every change of the cluster 10 s late', async () => {
    await chaos.retireControl();
    await chaos.startControl('drydock-control-late', WATCH_DELAY_MS);
    await chaos.rollOutThrough(() => Promise.resolve());
  });
});
