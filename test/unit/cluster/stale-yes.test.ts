import { describe, expect, it } from 'vitest';
import { Assignments } from '../../../activities/cluster/assign.js';
import type { NodeResource, PoolResource } from '../../../activities/cluster/control-dependencies.js';
import { KINDS } from '../../../activities/kubernetes/client.js';
import { holdsGrant } from '../../../machine-config/pool/availability.js';
import { nodeFacts } from '../../../machine-config/pool/facts.js';
import type { AssignInput } from '../../../workflows/contract/activities.js';
import { LaggingCache } from '../../support/lagging-cache.js';
import { CLUSTER, FakeControl, POOL } from './fake-control.js';

const TARGET = 'rendered-worker-1';

/** Two control workers on one pool of two nodes and one slot; each watch shows only what it is told to. */
function twoWorkers() {
  const control = new FakeControl();
  const { cluster, flavour, dependencies } = control;
  const worker = (identity: string) => {
    const nodes = new LaggingCache<NodeResource>(cluster, KINDS.node, dependencies.now);
    const pools = new LaggingCache<PoolResource>(cluster, flavour.machineConfigPool, dependencies.now);
    const assignments = new Assignments({ ...dependencies, client: cluster.as(identity), nodes, pools });
    return {
      ask: (node: string, intent: AssignInput['intent']) =>
        assignments.assign({
          cluster: CLUSTER,
          pool: POOL,
          node,
          nodeUid: control.node(node).metadata.uid ?? '',
          intent,
        }),
      catchUp: () => {
        for (const watch of [nodes, pools]) watch.show(Infinity);
      },
    };
  };
  const [lagging, other] = [worker('control-1'), worker('control-2')];
  control.addPool({ configuration: { name: TARGET }, maxUnavailable: 1 });
  for (const name of ['a', 'b']) control.addNode(name, { [flavour.annotations.currentConfig]: 'old' });
  const holders = () => ['a', 'b'].filter((name) => holdsGrant(nodeFacts(control.node(name), flavour)));
  return { lagging, other, holders };
}

describe('a start that is asked of a control worker whose watch still shows the slot as held', () => {
  it('is no yes when another one has taken the slot back and given it to the next', async () => {
    const { lagging, other, holders } = twoWorkers();
    for (const worker of [lagging, other]) worker.catchUp();
    expect(await other.ask('a', 'start')).toMatchObject({ outcome: 'granted' });
    for (const worker of [lagging, other]) worker.catchUp();
    expect(await other.ask('a', 'withdraw')).toMatchObject({ outcome: 'unneeded' });
    other.catchUp();
    expect(await other.ask('b', 'start')).toMatchObject({ outcome: 'granted' });
    expect(await lagging.ask('a', 'start')).toMatchObject({ outcome: 'refused', code: 'NoSlot' });
    expect(holders()).toEqual(['b']);
  });

  it('is no yes to what nothing shows: it is written again where the slot is still free', async () => {
    const { lagging, other, holders } = twoWorkers();
    for (const worker of [lagging, other]) worker.catchUp();
    await other.ask('a', 'start');
    for (const worker of [lagging, other]) worker.catchUp();
    await other.ask('a', 'withdraw');
    expect(holders()).toEqual([]);
    expect(await lagging.ask('a', 'start')).toMatchObject({ outcome: 'granted', target: TARGET });
    expect(holders()).toEqual(['a']);
  });

  it('is no yes either to what it has granted itself and its watch has yet to show', async () => {
    const { lagging, other, holders } = twoWorkers();
    for (const worker of [lagging, other]) worker.catchUp();
    await lagging.ask('a', 'start');
    await other.ask('a', 'withdraw');
    other.catchUp();
    await other.ask('b', 'start');
    expect(await lagging.ask('a', 'start')).toMatchObject({ outcome: 'refused', code: 'NoSlot' });
    expect(holders()).toEqual(['b']);
  });
});
