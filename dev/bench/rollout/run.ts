import { startLab } from '../../lab.js';
import type { Log } from '../../tools/cache.js';
import { measureFloor } from './floor.js';
import type { RolloutBenchOptions } from './options.js';
import { measureProduct } from './product.js';
import type { Measured } from './report.js';

/** As of a cluster in production: nodes of a busy machine are late at times. */
const NODE_GRACE_SECONDS = 60;

/** Measures a rollout, and beside it, on the same server, what its workflows cost alone. */
export async function measureRollout(options: RolloutBenchOptions, log: Log): Promise<Measured> {
  const lab = await startLab({
    log,
    audits: true,
    nodeGraceSeconds: NODE_GRACE_SECONDS,
    ...(options.keep === undefined ? {} : { directory: options.keep }),
  });
  try {
    const floor = options.floor ? await measureFloor(lab.temporal, options, log) : undefined;
    return { options, floor, product: await measureProduct(lab, options, log) };
  } finally {
    await lab.stop();
  }
}
