import { CancellationScope } from '@temporalio/workflow';
import { classify } from './classify.js';
import type { UpdateNodeInput, UpdateNodeResult } from './contract/inputs.js';
import { drainSlice } from './drain-node.js';
import { endEarly, endWithoutGrant, endFailed, nodeRun, reportingEnd, type NodeRun } from './node-run.js';
import { awaitRebootClearance } from './reboot-clearance.js';

/**
 * The run-book of one node's update. Its id, `node/<node>`, lets only one of them run at a time, whoever asks.
 * Until `apply` begins, every end leaves the node as it was; from there on the update is finished, come what may.
 */
export async function updateNode(input: UpdateNodeInput): Promise<UpdateNodeResult> {
  const run = nodeRun(input);
  return reportingEnd(run, async () => {
    try {
      const grant = await run.takeSlot();
      if (grant.outcome !== 'granted') return await endWithoutGrant(run, grant);
      for (;;) {
        const wanted = await makeReady(run);
        if (wanted !== 'ready') return await endEarly(run, wanted);
        const result = await CancellationScope.nonCancellable(() => change(run));
        if (result !== 'planAgain') return result;
      }
    } catch (error) {
      return endFailed(run, classify(error));
    }
  });
}

/**
 * Plans, cordons and drains until the node may be changed, and asks before each further slice of draining, and last
 * thing before applying, what the pool wants by now: a newer config retargets the update, one reboot instead of two.
 * Else how the update ends.
 */
async function makeReady(run: NodeRun): Promise<'ready' | UpdateNodeResult> {
  const superseded = (reason: string): UpdateNodeResult => ({ outcome: 'superseded', reason });
  for (;;) {
    await run.prepare();
    const drained = run.mustDrain() ? await drainSlice(run) : 'empty';
    if (typeof drained === 'object') return { outcome: 'postponed', ...drained };

    const grant = await run.askAgain();
    if (grant.outcome === 'unneeded') return superseded(`${run.id.node} already runs what the pool wants`);
    if (grant.outcome === 'refused') return superseded(grant.sentence);
    if (grant.changed) continue;
    if (drained === 'empty') return 'ready';
  }
}

/** Changes the node: all of it or nothing. `planAgain`: nothing, since the change turned out to need an emptier node. */
async function change(run: NodeRun): Promise<UpdateNodeResult | 'planAgain'> {
  const applied = await run.apply();
  if (applied === 'notDrained') return 'planAgain';
  if (applied.reboot) {
    await awaitRebootClearance(run);
    await run.reboot();
  }
  const confirmed = await run.confirm();
  await run.uncordon();
  return { outcome: 'updated', from: run.from(), to: run.target, rebooted: confirmed.rebooted };
}
