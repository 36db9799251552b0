import { describe, expect, it, onTestFinished } from 'vitest';
import { converge } from '../../../dev/chaos/converge.js';
import { Hand } from '../../../dev/chaos/hand.js';
import { Keeper } from '../../../dev/chaos/keeper.js';
import { describeState, withState } from '../../../dev/chaos/state.js';
import { within } from '../../../dev/chaos/within.js';
import { apiFlavour } from '../../../machine-config/api/flavour.js';
import type { LabTemporal } from '../../../dev/temporal.js';
import { FakeCluster } from '../../support/fake-cluster.js';
import { StoredCluster } from './stored.js';
import { PATIENCE } from '../../support/patience.js';

const flavour = apiFlavour('openshift');
const rootOf = () => '/nowhere';
const never = () => Promise.resolve();

describe('a run of the chaos test that does not get on', () => {
  it('fails at the limit, with what was waited for', async () => {
    await expect(within(10, 'the whole run to end', new Promise(() => undefined))).rejects.toThrow(
      'waited 0.01 s for the whole run to end',
    );
    await expect(within(60_000, 'nothing', Promise.resolve('done'))).resolves.toBe('done');
    await expect(within(60_000, 'nothing', Promise.reject(new Error('broken')))).rejects.toThrow('broken');
  });

  it('tells of the nodes that are not where their pool wants them, and of no others', async () => {
    const { observer } = new StoredCluster()
      .pool('worker', { target: 'rendered-2', granted: 'b' })
      .node('a', { current: 'rendered-2' })
      .node('b', { current: 'rendered-1', desired: 'rendered-2', cordonedFor: 'rendered-2', unschedulable: true });
    const told = await describeState({ observer });
    expect(told).toContainEqual(expect.stringMatching(/^pool worker: .*wants rendered-2, last grants: b at/));
    expect(told).toContainEqual(expect.stringMatching(/^node b: .*runs rendered-1, desired rendered-2, state Done/));
    expect(told.join('\n')).not.toContain('node a');
  });

  it('tells of the pods that do not serve where they may stay, and of the budgets over them', async () => {
    const { observer } = new StoredCluster()
      .pool('worker', { target: 'rendered-2' })
      .node('a', { current: 'rendered-2' })
      .node('b', { current: 'rendered-2', unschedulable: true })
      .budget(3)
      .pod('serves', { node: 'a' })
      .pod('unready', { node: 'a', ready: false })
      .pod('leaves', { node: 'b', ending: true, disruption: 'EvictionByEvictionAPI' })
      .pod('lost', { node: 'c' });
    const told = (await describeState({ observer })).filter((line) => /^(pod|budget) /.test(line));
    expect(told).toEqual([
      'pod shop/unready on a, not ready',
      'pod shop/leaves on b, ending, evicted',
      'pod shop/lost on c, which is gone',
      'budget cart: at least 3, ready 2 of 4',
    ]);
  });

  it('says so when Temporal does not tell what it does', async () => {
    const temporal = { address: '127.0.0.1:1', namespace: 'default' } as LabTemporal;
    const told = await describeState({ lab: { temporal } });
    expect(told).toContainEqual(expect.stringMatching(/^Temporal does not tell: .+/));
  });

  it('tells of processes that are away, and of what people still try and why it fails', async () => {
    const process = { id: 'etcd', pid: undefined, kill: never, restart: never };
    const keeper = new Keeper([process]);
    onTestFinished(() => keeper.stop());
    await keeper.takeAway(process);
    const client = new FakeCluster();
    await client.create(flavour.machineConfigPool, { metadata: { name: 'worker' } });
    client.failNext({ verb: 'patch', kind: 'MachineConfigPool' }, { code: 'Forbidden' });
    const hand = new Hand({ client, flavour, rootOf });
    const changed = hand.setPool('worker', { paused: true });
    await expect
      .poll(() => hand.unfinished, PATIENCE)
      .toEqual([expect.stringMatching(/^change pool worker, for 0 s: .*patch/)]);
    const { message } = await withState(new Error('waited'), { keeper, hand });
    await changed;
    expect(hand.unfinished).toEqual([]);
    expect(message).toMatch(/^waited\n.*processes: etcd taken away\n.*\n.*people try to change pool worker/);
  });

  it('names each node and pool that has not converged', async () => {
    const { observer } = new StoredCluster().pool('worker', { target: 'rendered-2' }).node('a').node('b');
    const ending = { observer, nodes: ['a', 'c'], revisions: new Map(), rootOf };
    await expect(converge(ending, 1)).rejects.toThrow(
      /a runs drydock-empty, its pool worker wants rendered-2; c has no Node; worker is a pool that is not Updated/,
    );
  });
});
