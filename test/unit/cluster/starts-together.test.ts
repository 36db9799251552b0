import { beforeEach, describe, expect, it } from 'vitest';
import { Assignments } from '../../../activities/cluster/assign.js';
import type { NodeResource, PoolResource } from '../../../activities/cluster/control-dependencies.js';
import { KINDS } from '../../../activities/kubernetes/client.js';
import { holdsGrant } from '../../../machine-config/pool/availability.js';
import { WAITING_TAINT, nodeFacts } from '../../../machine-config/pool/facts.js';
import { LaggingCache } from '../../support/lagging-cache.js';
import { CLUSTER, FakeControl, POOL } from './fake-control.js';

const TARGET = 'rendered-worker-1';
const FOREIGN = { key: 'dedicated', value: 'shop', effect: 'NoSchedule' };
const NAMES = Array.from({ length: 12 }, (_, index) => `n${index}`);

let control: FakeControl;
let ask: (name: string) => Promise<{ outcome: string }>;
let calls: string[];
const holders = () => NAMES.filter((name) => holdsGrant(nodeFacts(control.node(name), control.flavour)));

/** A pool of twelve nodes and ten slots, of which one is granted already, with watches that have seen it. */
beforeEach(async () => {
  control = new FakeControl();
  const { cluster, flavour, dependencies } = control;
  const nodes = new LaggingCache<NodeResource>(cluster, KINDS.node, dependencies.now);
  const pools = new LaggingCache<PoolResource>(cluster, flavour.machineConfigPool, dependencies.now);
  const assignments = new Assignments({ ...dependencies, nodes, pools });
  ask = (node) => {
    const nodeUid = control.node(node).metadata.uid ?? '';
    return assignments.assign({ cluster: CLUSTER, pool: POOL, node, nodeUid, intent: 'start' });
  };
  control.addPool({ configuration: { name: TARGET }, maxUnavailable: 10 });
  for (const name of NAMES) control.addNode(name, { [flavour.annotations.currentConfig]: 'old' });
  await cluster.patch(KINDS.node, { name: 'n1' }, { spec: { taints: [FOREIGN, WAITING_TAINT] } });
  nodes.show(Infinity);
  pools.show(Infinity);
  await ask('n0');
  nodes.show(Infinity);
  pools.show(Infinity);
  calls = [];
  cluster.intercept(({ verb, resource }) => void calls.push(`${verb} ${resource.kind}`));
});

describe('starts that are asked for together', () => {
  it('are recorded in one write of the pool, and written on one Node each, without a read', async () => {
    const answers = await Promise.all(NAMES.slice(1, 9).map(ask));
    expect(answers.every(({ outcome }) => outcome === 'granted')).toBe(true);
    expect(calls).toEqual(['patch MachineConfigPool', ...Array<string>(8).fill('patch Node')]);
  });

  it('get no more slots than there are', async () => {
    const answers = await Promise.all(NAMES.slice(1).map(ask));
    expect(answers.filter(({ outcome }) => outcome === 'granted')).toHaveLength(9);
    expect(holders()).toHaveLength(10);
  });

  it('are decided once more, together, where somebody else has written the pool', async () => {
    const metadata = { annotations: { note: 'x' } };
    await control.cluster.patch(control.flavour.machineConfigPool, { name: POOL }, { metadata });
    calls = [];
    await Promise.all(NAMES.slice(1, 9).map(ask));
    expect(holders()).toHaveLength(9);
    const pool = calls.filter((call) => call.endsWith('MachineConfigPool'));
    expect(pool).toEqual(['patch MachineConfigPool', 'get MachineConfigPool', 'patch MachineConfigPool']);
  });

  it('take the taint of waiting nodes off with the grant, and no other', async () => {
    await ask('n1');
    expect(control.node('n1').spec?.taints).toEqual([FOREIGN]);
  });
});
