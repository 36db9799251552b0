import { describe, expect, it, vi } from 'vitest';
import { KINDS, type KubernetesObject } from '../../../activities/kubernetes/client.js';
import { createNodeEvents } from '../../../activities/node/events.js';
import { FakeCluster } from '../../support/fake-cluster.js';
import { Gate } from '../../support/gate.js';

type EventObject = KubernetesObject & {
  type: string;
  reason: string;
  message: string;
  count: number;
  firstTimestamp: string;
  lastTimestamp: string;
  involvedObject: object;
};

function setUp(node = 'n1') {
  const cluster = new FakeCluster();
  let now = Date.parse('2026-11-30T12:00:00.123Z');
  const onError = vi.fn();
  const events = createNodeEvents({
    client: cluster.as(`system:node:${node}`),
    node,
    now: () => new Date(now),
    onError,
  });
  return {
    cluster,
    events,
    onError,
    advance: (seconds: number) => (now += seconds * 1_000),
    async written() {
      await events.flushed();
      return cluster.list<EventObject>(KINDS.event, { namespace: 'default' });
    },
  };
}

describe('an Event of a node', () => {
  it('regards the Node as the kubelet’s do, with the node’s own identity', async () => {
    const test = setUp();
    test.events.warning('ConfigDriftDetected', '/etc/x: other contents');
    expect(await test.written()).toMatchObject([
      {
        metadata: { namespace: 'default', name: expect.stringMatching(/^n1\.[0-9a-f]{16}$/) as string },
        involvedObject: { apiVersion: 'v1', kind: 'Node', name: 'n1', uid: 'n1' },
        type: 'Warning',
        reason: 'ConfigDriftDetected',
        message: '/etc/x: other contents',
        count: 1,
        firstTimestamp: '2026-11-30T12:00:00Z',
        source: { component: 'drydock-node', host: 'n1' },
      },
    ]);
  });

  it('that happens again soon is counted, later it is a new one', async () => {
    const test = setUp();
    for (let times = 0; times < 3; times++) {
      test.events.normal('NodeDone', 'at rendered-1');
      await test.events.flushed();
      test.advance(60);
    }
    test.events.normal('NodeDone', 'at rendered-2');
    const span = { firstTimestamp: '2026-11-30T12:00:00Z', lastTimestamp: '2026-11-30T12:02:00Z' };
    // Events have random names, and are listed by them.
    const written = (await test.written()).sort((one, other) => (one.message < other.message ? -1 : 1));
    expect(written).toMatchObject([
      { message: 'at rendered-1', count: 3, ...span },
      { message: 'at rendered-2', count: 1 },
    ]);
    test.advance(601);
    test.events.normal('NodeDone', 'at rendered-1');
    const again = (await test.written()).filter(({ message }) => message === 'at rendered-1');
    expect(again.map(({ count }) => count).sort()).toEqual([1, 3]);
  });

  it('that the API server has forgotten meanwhile is written anew with its count', async () => {
    const test = setUp();
    test.events.normal('Reboot', 'x');
    const [event] = await test.written();
    await test.cluster.delete(KINDS.event, { name: event!.metadata.name, namespace: 'default' });
    test.events.normal('Reboot', 'x');
    expect(await test.written()).toMatchObject([{ count: 2 }]);
  });

  it('is cut to 1,024 characters, and its name to 253', async () => {
    const name = `${'n'.repeat(60)}.`.repeat(4).slice(0, 253);
    const test = setUp(name);
    test.events.normal('Reboot', 'x'.repeat(3_000));
    const [event] = await test.written();
    expect(event?.message).toHaveLength(1_024);
    expect(event?.metadata.name.length).toBeLessThanOrEqual(253);
    expect(event?.metadata.name).toMatch(/^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/);
  });

  it('that cannot be written fails nothing, and the next one is written', async () => {
    const test = setUp();
    test.cluster.failNext({ verb: 'create', kind: 'Event' });
    test.events.normal('Reboot', 'one');
    test.events.normal('Reboot', 'two');
    expect(await test.written()).toMatchObject([{ message: 'two' }]);
    expect(test.onError).toHaveBeenCalledTimes(1);
  });
});

describe('a flood of Events', () => {
  it('is cut off, and let through again slowly', async () => {
    const test = setUp();
    for (let index = 0; index < 1_000; index++) test.events.warning('UpdateFailed', `number ${index}`);
    expect(await test.written()).toHaveLength(25);
    test.advance(60);
    test.events.warning('UpdateFailed', 'one more');
    test.events.warning('UpdateFailed', 'one too many');
    const written = await test.written();
    expect(written).toHaveLength(26);
    expect(written.map(({ message }) => message)).toContain('one more');
  });

  it('of the same waits for one write, which counts them all', async () => {
    const test = setUp();
    const gate = new Gate();
    const stop = test.cluster.intercept(({ verb }) => (verb === 'create' ? gate.wait() : undefined));
    test.events.normal('Reboot', 'first');
    await gate.reached;
    for (let times = 0; times < 500; times++) test.events.warning('ConfigDriftDetected', 'again');
    gate.open();
    stop();
    const counts = (await test.written()).map(({ message, count }) => `${message} ${count}`).sort();
    expect(counts).toEqual(['again 500', 'first 1']);
  });
});
