import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { KINDS } from '../../../activities/kubernetes/client.js';
import { keepRegistered } from '../../../activities/node/keep-registered.js';
import { DRYDOCK_ANNOTATIONS } from '../../../machine-config/api/flavour.js';
import { file } from '../../support/fake-host.js';
import { setUpNode, type NodeObject } from '../../support/node-under-test.js';
import { PATIENCE } from '../../support/patience.js';

describe('a worker whose Node was deleted', () => {
  const stop = { all: [] as AbortController[] };
  let test: Awaited<ReturnType<typeof setUpNode>>;
  const failures: unknown[] = [];

  beforeEach(async () => {
    test = await setUpNode();
    failures.length = 0;
  });
  afterEach(() => {
    for (const one of stop.all.splice(0)) one.abort();
  });

  function keep(): Promise<void> {
    const stopping = new AbortController();
    stop.all.push(stopping);
    const onRetry = (error: unknown) => void failures.push(error);
    return keepRegistered(test.deps, { everyMs: 5, signal: stopping.signal, onRetry });
  }
  /** As the kubelet does that finds no Node of its own. */
  async function recreate(): Promise<void> {
    const bootID = await test.fake.host.bootId();
    test.cluster.add<NodeObject>(KINDS.node, {
      metadata: { name: 'n1', uid: 'uid-2' },
      status: { conditions: [{ type: 'Ready', status: 'True' }], nodeInfo: { bootID } },
    });
  }

  it('says on the new Node what it runs, which is what its disk is at', async () => {
    const target = test.store({ storage: { files: [file('/etc/motd', 'here\n')] } });
    await test.update(target);
    void keep();
    await test.cluster.delete(KINDS.node, { name: 'n1' });
    await recreate();
    await vi.waitFor(
      () =>
        expect(test.annotations()).toMatchObject({
          [DRYDOCK_ANNOTATIONS.worker]: '0.1.0',
          [test.flavour.annotations.currentConfig]: target,
          [test.flavour.annotations.state]: 'Done',
        }),
      PATIENCE,
    );
  });

  it('waits for the new Node, and for an API server that does not answer', async () => {
    void keep();
    await test.cluster.delete(KINDS.node, { name: 'n1' });
    await vi.waitFor(() => expect(failures.length).toBeGreaterThan(1), PATIENCE);
    test.cluster.failNext({ kind: 'Node', verb: 'get' }, { times: 2 });
    await recreate();
    await vi.waitFor(() => expect(test.annotations()).toHaveProperty([DRYDOCK_ANNOTATIONS.worker], '0.1.0'), PATIENCE);
  });

  it('writes nothing as long as the Node says what it did, and ends when it is told to', async () => {
    const version = () => test.cluster.peek(KINDS.node, 'n1')?.metadata.resourceVersion;
    const before = version();
    const reads = { count: 0 };
    test.cluster.intercept(({ verb }) => {
      if (verb === 'get') reads.count += 1;
    });
    const kept = keep();
    await vi.waitFor(() => expect(reads.count).toBeGreaterThan(3), PATIENCE);
    expect(version()).toBe(before);
    for (const one of stop.all.splice(0)) one.abort();
    await kept;
  });
});
