import { beforeEach, describe, expect, it } from 'vitest';
import { assign } from '../../../activities/cluster/assign.js';
import { planTurn } from '../../../activities/cluster/plan-turn.js';
import { DRYDOCK_ANNOTATIONS } from '../../../machine-config/api/flavour.js';
import type { AssignInput } from '../../../workflows/contract/activities.js';
import { KINDS } from '../../../activities/kubernetes/client.js';
import { CLUSTER, FakeControl, POOL } from './fake-control.js';

const TARGET = 'rendered-worker-1';

let control: FakeControl;
beforeEach(() => {
  control = new FakeControl();
  control.addPool({ configuration: { name: TARGET } });
  for (const name of ['a', 'b']) {
    const { currentConfig, desiredConfig, state } = control.flavour.annotations;
    control.addNode(name, {
      [currentConfig]: TARGET,
      [desiredConfig]: TARGET,
      [state]: 'Degraded',
      [DRYDOCK_ANNOTATIONS.force]: 'boot-1',
    });
  }
});

const ask = (node: string, intent: AssignInput['intent'] = 'start') =>
  assign(control.dependencies, {
    cluster: CLUSTER,
    pool: POOL,
    node,
    nodeUid: control.node(node).metadata.uid ?? '',
    intent,
  });
const grantOf = (node: string) => control.node(node).metadata.annotations?.[DRYDOCK_ANNOTATIONS.forceGranted];

describe('assign, for nodes on which somebody asked by force', () => {
  it('grants one after the other, says so on the Node, and takes it back', async () => {
    expect(await ask('a')).toEqual({ outcome: 'granted', target: TARGET, current: TARGET });
    expect(grantOf('a')).toBe('boot-1');
    expect(await ask('b')).toMatchObject({ outcome: 'refused', code: 'NoSlot' });
    expect(grantOf('b')).toBeUndefined();
    expect(await ask('a', 'continue')).toMatchObject({ outcome: 'granted' });
    expect(await ask('a', 'withdraw')).toMatchObject({ outcome: 'unneeded', target: TARGET });
    expect(grantOf('a')).toBeUndefined();
    expect(await ask('b')).toMatchObject({ outcome: 'granted' });
  });

  it('never grants two at once, however they race', async () => {
    const answers = await Promise.all([ask('a'), ask('b'), ask('a'), ask('b')]);
    const granted = new Set(['a', 'b'].filter((name) => grantOf(name) !== undefined));
    expect(granted.size).toBe(1);
    expect(answers.filter(({ outcome }) => outcome === 'granted').length).toBeGreaterThan(0);
  });

  it('counts a slot that was recorded and not yet written to its Node', async () => {
    control.cluster.failNext({ verb: 'patch', kind: 'Node', name: 'a' });
    await expect(ask('a')).rejects.toThrow();
    expect(await ask('b')).toMatchObject({ outcome: 'refused', code: 'NoSlot' });
    expect(await ask('a')).toMatchObject({ outcome: 'granted' });
  });

  it('is asked by planTurn for one of them at a time, also after a restart in the middle', async () => {
    const turn = (inFlight: Record<string, string>) =>
      planTurn(control.dependencies, { cluster: CLUSTER, pool: POOL, inFlight, resting: {}, now: 0 });
    expect(await turn({})).toMatchObject({ done: false, start: [{ node: 'a', target: TARGET, current: TARGET }] });
    expect(await turn({ a: control.node('a').metadata.uid ?? '' })).toMatchObject({ start: [], done: false });
    await ask('b');
    // Nothing is known of any update: the Node that was granted its slot goes first, and alone.
    expect((await turn({})).start.map(({ node }) => node)).toEqual(['b']);
    await control.cluster.patch(KINDS.node, { name: 'b' }, { spec: { unschedulable: true } });
    const annotations = { [DRYDOCK_ANNOTATIONS.cordonedFor]: TARGET };
    await control.cluster.patch(KINDS.node, { name: 'b' }, { metadata: { annotations } });
    expect((await turn({})).start.map(({ node }) => node)).toEqual(['b']);
  });
});
