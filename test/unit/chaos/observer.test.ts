import { describe, expect, it } from 'vitest';
import { StoredCluster } from './stored.js';

const TAKEN = { desired: 'rendered-2' };
const CORDONED = { ...TAKEN, cordonedFor: 'rendered-2', unschedulable: true };

function cluster(): StoredCluster {
  return new StoredCluster().pool('worker', { target: 'rendered-2' }).pool('infra', { target: 'rendered-2' });
}

describe('the observer of the chaos test: maxUnavailable', () => {
  const three = () => cluster().node('a', { current: 'rendered-2' }).node('b').node('c').pass(60);

  it('finds one node more than the pool allows', () => {
    const seen = cluster().node('a').node('b').node('c', { pool: 'infra' }).pass(60);
    seen.node('a', TAKEN).node('c', { ...TAKEN, pool: 'infra' });
    expect(seen.found).toEqual([]);
    seen.node('b', TAKEN);
    expect(seen.found).toEqual([expect.stringContaining('b is taken as one of 2 of pool worker (a, b), of which 1')]);
  });

  it('counts a cordon of ours and an application that has begun', () => {
    const cordoned = three().node('b', { cordonedFor: 'rendered-2', unschedulable: true }).node('c', TAKEN);
    expect(cordoned.found).toEqual([expect.stringContaining('c is taken')]);
    expect(three().node('b', { applying: 'rendered-2' }).node('c', TAKEN).found).toHaveLength(1);
  });

  it('takes the value that was in force when the slot was granted', () => {
    const lowered = three().pool('worker', { maxUnavailable: 2, target: 'rendered-2', granted: 'b' }).node('b', TAKEN);
    lowered.pool('worker', { maxUnavailable: 2, target: 'rendered-2', granted: 'c' });
    lowered.pool('worker', { maxUnavailable: 1, target: 'rendered-2', granted: 'c' }).node('c', TAKEN);
    expect(lowered.found).toEqual([]);
  });

  it('rounds a percentage down, but not below one', () => {
    const seen = three().pool('worker', { maxUnavailable: '50%', target: 'rendered-2' }).node('b', TAKEN);
    expect(seen.found).toEqual([]);
    expect(seen.node('c', TAKEN).found).toHaveLength(1);
  });

  it('does not blame Drydock for a taken node that people have just moved into the pool', () => {
    const seen = cluster()
      .node('a')
      .node('c', { pool: 'infra' })
      .pass(60)
      .node('c', { ...TAKEN, pool: 'infra' });
    expect(seen.node('c', TAKEN).node('a', TAKEN).found).toEqual([]);
    expect(seen.node('a').pass(60).node('a', TAKEN).found).toHaveLength(1);
  });

  it('finds a start in a paused pool, and one of a node that is held', () => {
    const paused = three().pool('worker', { paused: true, target: 'rendered-2', granted: 'b' }).node('b', TAKEN);
    expect(paused.found).toEqual([expect.stringContaining('while pool worker was paused')]);
    const held = three()
      .node('b', { hold: 'why', hand: 1 })
      .node('b', { ...TAKEN, hold: 'why', hand: 1 });
    expect(held.found).toEqual([expect.stringContaining('although it is held')]);
  });
});

describe('the observer of the chaos test: configs', () => {
  it('finds a config that no pool of the node ever wanted', () => {
    const seen = cluster().pool('infra', { target: 'rendered-3' }).node('a', { current: 'rendered-2' });
    expect(seen.found).toEqual([]);
    expect(seen.node('a', { current: 'rendered-2', desired: 'rendered-3' }).found).toEqual([
      'the desired config of a is rendered-3, which none of its pools ever wanted',
    ]);
  });

  it('lets a node keep what an earlier pool gave it, also when its Node is made again', () => {
    const seen = cluster().pool('infra', { target: 'rendered-3' }).node('a', { pool: 'infra', current: 'rendered-3' });
    seen.node('a', { current: 'rendered-3' }).pool('infra', { target: 'rendered-4' });
    seen.noNode('a').node('a', { current: 'rendered-3' });
    expect(seen.found).toEqual([]);
  });
});

describe('the observer of the chaos test: cordons and holds', () => {
  const cordoned = () => cluster().node('a', { current: 'rendered-2', unschedulable: true, hand: 1 });

  it('finds a cordon of somebody that is lifted or taken over', () => {
    expect(cordoned().node('a', { current: 'rendered-2', hand: 1 }).found).toEqual([
      "the cordon of a was somebody's, and Drydock lifted it",
    ]);
    const taken = { current: 'rendered-2', unschedulable: true, hand: 1, cordonedFor: 'rendered-2' };
    expect(cordoned().node('a', taken).found).toContain(
      'a was cordoned by somebody, and Drydock took the cordon for its own',
    );
  });

  it('lets people lift their cordon, and Drydock its own', () => {
    expect(cordoned().node('a', { current: 'rendered-2', hand: 2 }).found).toEqual([]);
    const ours = cluster().node('a').node('a', CORDONED).node('a', { current: 'rendered-2' });
    expect(ours.found).toEqual([]);
  });

  it('finds a cordon without an owner', () => {
    expect(cluster().node('a').node('a', { unschedulable: true }).found).toEqual([
      'a was cordoned by nobody who says so',
    ]);
  });

  it('finds a hold that is lost, unless people lift it', () => {
    const held = () => cluster().node('a', { hold: 'why', hand: 1 });
    expect(held().node('a', { hand: 1 }).found).toEqual(['the hold of a (why) is gone, and nobody did that']);
    expect(held().node('a', { hand: 2 }).found).toEqual([]);
  });
});

describe('the observer of the chaos test: reboots', () => {
  const rebooted = () =>
    cluster()
      .node('a')
      .node('a', CORDONED)
      .node('a', { ...CORDONED, bootId: 'boot-2' });

  it('finds a second reboot for one config', () => {
    expect(rebooted().found).toEqual([]);
    expect(rebooted().node('a', { ...CORDONED, bootId: 'boot-3' }).found).toEqual([
      'a rebooted for the 2. time for rendered-2',
    ]);
  });

  it('allows the one back of an update that the host took back after its boot', () => {
    const failure = JSON.stringify({ target: 'rendered-2', code: 'RolledBackAfterBoot' });
    const back = rebooted().node('a', { ...CORDONED, failure, bootId: 'boot-3' });
    expect(back.found).toEqual([]);
    expect(back.node('a', { ...CORDONED, failure, bootId: 'boot-4' }).found).toHaveLength(1);
  });

  it('counts anew when the node has been on another config in between', () => {
    const there = rebooted().node('a', { current: 'rendered-2', bootId: 'boot-2' });
    const back = { current: 'rendered-2', desired: 'rendered-1' };
    there.pool('worker', { target: 'rendered-1' }).node('a', { ...back, bootId: 'boot-2' });
    there.node('a', { ...back, bootId: 'boot-3' }).node('a', { current: 'rendered-1', bootId: 'boot-3' });
    const again = { current: 'rendered-1', desired: 'rendered-2' };
    there.pool('worker', { target: 'rendered-2' }).node('a', { ...again, bootId: 'boot-3' });
    expect(there.node('a', { ...again, bootId: 'boot-4' }).found).toEqual([]);
  });

  it('does not take the first boot that a machine tells for a reboot', () => {
    const joins = cluster().node('a', { managed: false }).node('a', { managed: false, bootId: 'boot-2' });
    expect(joins.node('a', { bootId: 'boot-2' }).found).toEqual([]);
    expect(joins.node('a', { bootId: 'boot-3' }).found).toHaveLength(1);
  });

  it('finds a reboot for nothing', () => {
    expect(cluster().node('a').node('a', { bootId: 'boot-2' }).found).toEqual([
      'a rebooted without an update: it runs drydock-empty',
    ]);
  });

  it('knows the machine again when its Node is made anew while it reboots', () => {
    const again = cluster().node('a').node('a', CORDONED).noNode('a').node('a', { current: '', bootId: 'boot-1' });
    expect(again.node('a', { current: '', bootId: 'boot-2' }).found).toEqual([]);
    expect(again.node('a', { bootId: 'boot-2' }).node('a', { ...TAKEN, bootId: 'boot-3' }).found).toHaveLength(1);
  });
});

describe('the observer of the chaos test: budgets', () => {
  const EVICTION = { ending: true, disruption: 'EvictionByEvictionAPI' };
  const three = () =>
    cluster()
      .node('a')
      .node('a', CORDONED)
      .budget(2)
      .pod('1', { node: 'a' })
      .pod('2', { node: 'b' })
      .pod('3', { node: 'c' });

  it('finds an eviction that leaves less than the budget guards', () => {
    const seen = three().pod('1', { node: 'a', ...EVICTION });
    expect(seen.found).toEqual([]);
    expect(seen.pod('2', { node: 'b', ...EVICTION }).found).toEqual([
      'the eviction of shop/2 from b left 1 healthy pods of the budget shop/cart, which guards 2',
    ]);
  });

  it('does not count a loss of which the cluster did not know yet', () => {
    const seen = three()
      .pod('2', { node: 'b', ready: false })
      .pod('1', { node: 'a', ...EVICTION });
    expect(seen.found).toEqual([]);
    seen
      .pod('2', { node: 'b' })
      .pod('4', { node: 'd' })
      .pass(120)
      .pod('2', { node: 'b', ...EVICTION });
    expect(seen.found).toEqual([]);
    expect(seen.pod('4', { node: 'd', ...EVICTION }).found).toHaveLength(1);
  });

  it('finds a pod that leaves a node in our hands without its eviction', () => {
    expect(three().pod('1', { node: 'a', ending: true }).found).toEqual(['shop/1 was deleted from a, and not evicted']);
    expect(three().pod('1', { node: 'a', ending: true, disruption: 'DeletionByPodGC' }).found).toEqual([]);
    expect(three().pod('2', { node: 'b', ending: true }).found).toEqual([]);
  });
});

it('the observer of the chaos test tells what befell the node of a violation', () => {
  const seen = cluster().node('a').node('a', { bootId: 'boot-2' });
  const [violation] = seen.observer.violations;
  expect(violation?.nodes).toEqual(['a']);
  expect(violation?.history.at(-1)).toMatch(/r4 {2}a {2}bootId=boot-2$/);
});
