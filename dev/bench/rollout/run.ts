import { startLab, type Lab } from '../../lab.js';
import type { Log } from '../../tools/cache.js';
import { measureFloorApart } from './floor-apart.js';
import type { Histories } from './histories.js';
import type { RolloutBenchOptions } from './options.js';
import { measureProduct } from './product.js';
import type { Measured } from './report.js';

/**
 * Nodes of a busy machine are late at times, and what simulated kubelets say of themselves is not what is measured: 5,000
 * leases that are renewed every minute or two take more of the API server than all updates.
 */
const NODE_GRACE_SECONDS = 3_600;

/** Measures a rollout, and beside it, on the same server, what its workflows cost alone. */
export async function measureRollout(options: RolloutBenchOptions, log: Log): Promise<Measured> {
  const lab = await startLab({
    log,
    audits: true,
    nodeGraceSeconds: NODE_GRACE_SECONDS,
    ...(options.keep === undefined ? {} : { directory: options.keep }),
  });
  try {
    const floor = options.floor ? await measuredFloor(lab, options, log) : undefined;
    return { options, floor, product: await measureProduct(lab, options, log) };
  } finally {
    await lab.stop();
  }
}

/** The product then finds a server as the floor found it: without the queues, in memory, of as many nodes again. */
async function measuredFloor(lab: Lab, options: RolloutBenchOptions, log: Log): Promise<Histories> {
  const floor = await measureFloorApart(lab.temporal, options, log);
  await lab.temporal.kill('SIGTERM');
  await lab.temporal.restart();
  return floor;
}
