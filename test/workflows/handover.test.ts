import type { Client } from '@temporalio/client';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { PlayedPool } from '../../dev/bench/rollout/played-pool.js';
import type { ControlActivities, NodeActivities } from '../../workflows/contract/activities.js';
import { rollOutPoolId } from '../../workflows/contract/ids.js';
import type { PoolTuning } from '../../workflows/contract/inputs.js';
import { BareTemporal } from '../support/bare-temporal.js';
import { Gate } from '../support/gate.js';
import { TEST_TUNING, until } from '../support/workflow-lab.js';

/** Ticks so seldom that an end that is not heard of fails the test: nobody asks after it. */
const NOBODY_ASKS: Partial<PoolTuning> = { tickSeconds: 3_600, turnSeconds: 0.05, settleSeconds: 0.1 };

let temporal: BareTemporal;
beforeAll(async () => {
  temporal = await BareTemporal.start();
});
afterAll(() => temporal.stop());

interface Play {
  readonly pool: PlayedPool;
  readonly name: string;
  readonly maxEvents: number;
  readonly control?: Partial<ControlActivities>;
  readonly node?: (name: string) => Partial<NodeActivities>;
}

/** Runs the rollout of a pool that is only in memory; resolves when it has ended. */
async function play({ pool, name, maxEvents, control, node }: Play, meanwhile: (client: Client) => Promise<void>) {
  const { client } = temporal;
  let asked = 0;
  const checkChildren: ControlActivities['checkChildren'] = () => {
    asked += 1;
    return Promise.resolve({ closed: [] });
  };
  const workers = [
    await temporal.controlWorker({ ...pool.control(), checkChildren, ...control }),
    ...(await Promise.all(
      pool.names.map((each) => temporal.nodeWorker(each, { ...pool.node(each), ...node?.(each) })),
    )),
  ];
  const ended = workers.map((worker) => worker.run());
  try {
    const tuning: PoolTuning = { ...TEST_TUNING, ...NOBODY_ASKS, maxEvents };
    const rollout = await temporal.startRollout(name, tuning);
    await meanwhile(client);
    const result = (await rollout.result()) as { updated: number };
    return { updated: result.updated, asked };
  } finally {
    for (const worker of workers) worker.shutdown();
    await Promise.all(ended);
  }
}

const runOf = async (client: Client, pool: string) =>
  (await client.workflow.getHandle(rollOutPoolId(pool)).describe()).runId;

it('a rollout that continues as new again and again hears of every end, whenever it comes, and asks after none', async () => {
  const pool = new PlayedPool('busy', { nodes: 24, maxUnavailable: 8, stepSeconds: 0 });
  const { updated, asked } = await play({ pool, name: 'busy', maxEvents: 10 }, () => Promise.resolve());
  expect({ updated, asked }).toEqual({ updated: 24, asked: 0 });
});

it('an update that ends after the run that started it is heard of by the next one', async () => {
  const pool = new PlayedPool('late', { nodes: 3, maxUnavailable: 1, stepSeconds: 0 });
  const applies = new Gate();
  const apply: Partial<NodeActivities> = {
    apply: async (input) => {
      await applies.wait();
      return pool.node('late-1').apply(input);
    },
  };
  const node = (name: string) => (name === 'late-1' ? apply : {});
  const { updated, asked } = await play({ pool, name: 'late', maxEvents: 10, node }, async (client) => {
    await applies.reached;
    const first = await runOf(client, 'late');
    await client.workflow.getHandle(rollOutPoolId('late')).signal('wake');
    await until('the rollout to continue as new', async () => (await runOf(client, 'late')) !== first);
    applies.open();
  });
  expect({ updated, asked }).toEqual({ updated: 3, asked: 0 });
});

it('an update that ends while its rollout decides to continue as new is heard of', async () => {
  const pool = new PlayedPool('between', { nodes: 3, maxUnavailable: 1, stepSeconds: 0 });
  const [applies, decides] = [new Gate(), new Gate()];
  const played = pool.control();
  const control: Partial<ControlActivities> = {
    planTurn: async (input) => {
      const turn = await played.planTurn(input);
      // The second turn of the first run: its workflow task stays open while the update ends.
      if (Object.keys(input.inFlight).includes('between-1')) await decides.wait();
      return turn;
    },
  };
  const node = (name: string): Partial<NodeActivities> => ({
    apply: async (input) => {
      if (name === 'between-1') await applies.wait();
      return pool.node(name).apply(input);
    },
  });
  const { updated, asked } = await play({ pool, name: 'between', maxEvents: 10, control, node }, async (client) => {
    await applies.reached;
    await client.workflow.getHandle(rollOutPoolId('between')).signal('wake');
    await decides.reached;
    applies.open();
    const update = client.workflow.getHandle('node/between-1');
    await until('the update to end', async () => (await update.describe()).status.name === 'COMPLETED');
    decides.open();
  });
  expect({ updated, asked }).toEqual({ updated: 3, asked: 0 });
});
