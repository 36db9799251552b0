import pMap from 'p-map';
import type { CheckChildrenInput, CheckChildrenResult } from '../../workflows/contract/activities.js';
import { refuseOtherCluster, type ControlDependencies } from './control-dependencies.js';

/** Asks by describe, never by list: visibility lags behind. */
export async function checkChildren(
  { cluster, updates }: Pick<ControlDependencies, 'cluster' | 'updates'>,
  input: CheckChildrenInput,
): Promise<CheckChildrenResult> {
  refuseOtherCluster(cluster, input.cluster);
  const answers = await pMap(
    Object.entries(input.children),
    async ([node, runId]) => ({ node, running: await updates.isRunning(node, runId) }),
    { concurrency: 10 },
  );
  return { closed: answers.filter(({ running }) => !running).map(({ node }) => node) };
}
