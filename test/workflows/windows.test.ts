import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { DRYDOCK_ANNOTATIONS } from '../../machine-config/api/flavour.js';
import type { RolloutPolicy } from '../../machine-config/api/rollout-policy.js';
import { flavour } from '../support/workflow-lab.js';
import { SkippingLab, TICK_SECONDS } from '../support/skipping-lab.js';

const HOUR = 3_600_000;
const MINUTE = 60_000;
const DAY = 24 * HOUR;
/** Turns, and the updates of the nodes before, take a little of the workflow's time too. */
const SLACK = 15 * MINUTE;
const TICK = TICK_SECONDS * 1000;

/** `22:00` of the hour in which an epoch time lies, in UTC. */
const hourOf = (epoch: number): string => `${new Date(epoch).toISOString().slice(11, 13)}:00`;
const dateOf = (epoch: number): string => new Date(epoch).toISOString().slice(0, 10);

describe('a rollout that waits for hours, on a server that skips time', () => {
  let lab: SkippingLab;
  /** A full hour, some hours from now. */
  let opens: number;
  beforeEach(async () => {
    lab = await SkippingLab.start();
    opens = Math.ceil((Date.now() + 3 * HOUR) / HOUR) * HOUR;
  });
  afterEach(() => lab.stop());

  /** Rolls out under the policy, and tells when each node started, oldest node first. */
  async function startsUnder(rollout: RolloutPolicy, nodes: number): Promise<number[]> {
    const made = await lab.addPool(nodes, { rollout });
    const { result } = await lab.rollOut();
    await expect(result()).resolves.toMatchObject({ updated: nodes, machines: nodes });
    return made.map(({ name }) => lab.startedAt.get(name) ?? 0);
  }

  function expectAt(start: number | undefined, expected: number, slack = SLACK): void {
    expect(start).toBeGreaterThanOrEqual(expected);
    expect(start).toBeLessThan(expected + slack);
  }

  it('starts nothing before the window begins, and goes on in the next one that is not excluded', async () => {
    const starts = await startsUnder(
      {
        soak: '90m',
        windows: {
          timeZone: 'UTC',
          allow: [{ start: hourOf(opens), length: '2h' }],
          exclude: [{ from: dateOf(opens + DAY) }],
        },
      },
      3,
    );
    expectAt(starts[0], opens);
    expectAt(starts[1], opens + 90 * MINUTE);
    expectAt(starts[2], opens + 2 * DAY);
  });

  it('lets the canary soak before it starts the others', async () => {
    const starts = await startsUnder({ stages: [{ name: 'canary', count: 1, soak: '5h' }] }, 3);
    expect((starts[1] ?? 0) - (starts[0] ?? 0)).toBeGreaterThanOrEqual(5 * HOUR);
    expectAt(starts[1], (starts[0] ?? 0) + 5 * HOUR);
    expectAt(starts[2], starts[1] ?? 0);
  });

  it('waits for an approval as long as it takes, and goes on by itself once it is there', async () => {
    lab.onTurn = async (now) => {
      if (now < opens) return;
      const approval = JSON.stringify({ config: 'rendered-worker-b', stages: ['all'] });
      await lab.cluster.patch(
        flavour.machineConfigPool,
        { name: 'worker' },
        { metadata: { annotations: { [DRYDOCK_ANNOTATIONS.approval]: approval } } },
      );
    };
    const starts = await startsUnder({ stages: [{ name: 'all', approval: 'Required' }] }, 2);
    // No watch tells of it here, and a rollout that has waited for long looks by itself every ten ticks.
    expectAt(starts[0], opens, 10 * TICK + SLACK);
    expectAt(starts[1], starts[0] ?? 0);
  });
});
