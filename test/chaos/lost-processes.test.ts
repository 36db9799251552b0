import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isRebootPending } from '../../activities/host/simulated-host.js';
import { openStateStore } from '../../activities/host/state-store.js';
import { ChaosLab, LAST_STEP_OF_APPLY, OLDEST, SECOND, YOUNGEST, type ChaosRollout } from '../support/chaos-lab.js';

describe('a rollout goes on to its end, no node reboots twice and the throttle holds', () => {
  let chaos: ChaosLab;
  beforeAll(async () => {
    chaos = await ChaosLab.start();
  });
  afterAll(() => chaos.stop());

  /** The oldest node has the new file on its disk, in a change that is not closed, and the youngest has not begun. */
  async function untilAppliesOnTheOldest(rollout: ChaosRollout): Promise<void> {
    await chaos.waitFor(`${OLDEST} to have its disk written`, () => chaos.hasOnDisk(OLDEST, rollout));
    expect(chaos.started()).not.toContain(YOUNGEST);
  }

  /** The apply ends although nobody can be told. */
  async function letTheOldestEndItsApply(): Promise<void> {
    await chaos.setFaults(OLDEST);
    const store = openStateStore(chaos.processes.rootOf(OLDEST));
    await chaos.waitFor(`${OLDEST} to close its change`, async () => (await store.journal())?.phase === 'applied');
  }

  it('when the control worker is killed and a node goes on applying without it', async () => {
    await chaos.setFaults(OLDEST, { holdAt: LAST_STEP_OF_APPLY });
    await chaos.rollOutThrough(async (rollout) => {
      await untilAppliesOnTheOldest(rollout);
      await chaos.processes.control.kill('SIGKILL');
      await letTheOldestEndItsApply();
      await chaos.processes.control.restart();
    });
  });

  it('when the Temporal server is killed and a node ends its apply without being able to report it', async () => {
    await chaos.setFaults(OLDEST, { holdAt: LAST_STEP_OF_APPLY });
    await chaos.rollOutThrough(async (rollout) => {
      await untilAppliesOnTheOldest(rollout);
      await chaos.lab.temporal.kill('SIGKILL');
      await letTheOldestEndItsApply();
      await chaos.lab.temporal.restart();
    });
  });

  it('when the fleet is killed with one node in mid-apply and another that has not answered whether it reboots', async () => {
    await chaos.setFaults(OLDEST, { holdAt: LAST_STEP_OF_APPLY });
    await chaos.setFaults(SECOND, { holdReboot: true, loseRebootAnswer: true });
    await chaos.rollOutThrough(async (rollout) => {
      await untilAppliesOnTheOldest(rollout);
      await chaos.waitFor(`${SECOND} to be told to reboot`, () => isRebootPending(chaos.processes.rootOf(SECOND)));
      await chaos.processes.fleet.kill('SIGKILL');
      await chaos.setFaults(OLDEST);
      await chaos.setFaults(SECOND);
      await chaos.processes.fleet.restart();
    });
  });

  it('when two control workers do the work at once, and none leads', async () => {
    const { control } = chaos.processes;
    const other = await chaos.startControl('drydock-control-other');
    await chaos.rollOutThrough(() => Promise.resolve());
    control.assertRunning();
    other.assertRunning();
  });
});
