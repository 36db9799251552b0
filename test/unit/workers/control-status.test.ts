import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { KINDS } from '../../../activities/kubernetes/client.js';
import type { NodeResource } from '../../../activities/cluster/control-dependencies.js';
import { DRYDOCK_ANNOTATIONS } from '../../../machine-config/api/flavour.js';
import type { MachineConfigPoolStatus } from '../../../machine-config/api/machine-config-pool.js';
import { controlStatus, type ControlStatusFacts } from '../../../workers/control-status.js';
import { serveStatus, type StatusServer } from '../../../workers/status-server.js';
import { FakeControl, POOL } from '../cluster/fake-control.js';

const NOW = Date.parse('2026-03-01T12:00:00Z');
const open: StatusServer[] = [];
afterEach(() => open.splice(0).forEach((server) => server.close()));

function setUp(workerState: ControlStatusFacts['workerState'] = () => 'RUNNING') {
  const control = new FakeControl();
  const { nodes, pools } = control.dependencies;
  const heard = { nodes: NOW as number | undefined, pools: NOW as number | undefined };
  const watched = <T>(cache: { list(): T[] }, which: keyof typeof heard) => ({
    list: () => cache.list(),
    freshness: () => {
      const heardAt = heard[which];
      return heardAt === undefined ? undefined : { version: '1', heardAt };
    },
  });
  const source = controlStatus({
    flavour: control.flavour,
    nodes: watched(nodes, 'nodes'),
    pools: watched(pools, 'pools'),
    workerState,
    now: () => NOW,
  });
  return {
    control,
    heard,
    source,
    setStatus: (status: MachineConfigPoolStatus) =>
      control.cluster.patch(control.flavour.machineConfigPool, { name: POOL }, { status }, 'status'),
    async serve() {
      const server = await serveStatus('127.0.0.1:0', source);
      open.push(server);
      return server.url;
    },
  };
}
const valueOf = (text: string, series: string) =>
  text
    .split('\n')
    .find((line) => line.startsWith(`${series} `))
    ?.slice(series.length + 1);

describe('the metrics of a control worker', () => {
  it('are what the pools show, read as they are asked for', async () => {
    const test = setUp();
    test.control.addPool();
    await test.setStatus({
      machineCount: 6,
      updatedMachineCount: 2,
      degradedMachineCount: 1,
      conditions: [
        { type: 'Waiting', status: 'True', reason: 'WindowClosed' },
        { type: 'Halted', status: 'False' },
      ],
      rollouts: [{ target: 'x', startedAt: '2026-03-01T11:50:00Z', outcome: 'Running', updated: 2, failed: 0 }],
    });
    const url = await test.serve();
    const response = await fetch(`${url}/metrics`);
    const text = await response.text();
    expect(response.headers.get('content-type')).toContain('version=0.0.4');
    expect(valueOf(text, 'drydock_pool_machines{pool="worker"}')).toBe('6');
    expect(valueOf(text, 'drydock_pool_machines_updated{pool="worker"}')).toBe('2');
    expect(valueOf(text, 'drydock_pool_waiting{pool="worker",code="WindowClosed"}')).toBe('1');
    expect(valueOf(text, 'drydock_pool_halted{pool="worker"}')).toBe('0');
    expect(valueOf(text, 'drydock_pool_rollout_seconds{pool="worker"}')).toBe('600');
    expect(text).not.toContain('drydock_pool_machines_ready{');
    await test.control.cluster.delete(test.control.flavour.machineConfigPool, { name: POOL });
    expect(await (await fetch(`${url}/metrics`)).text()).not.toContain('pool="worker"');
  });

  it('count the pods and nodes whose drain is blocked, by pool', async () => {
    const test = setUp();
    test.control.addPool();
    for (const name of ['n1', 'n2']) {
      const drainBlocked = JSON.stringify({ sentence: 'PDB', pods: ['shop/cart-1', `shop/${name}`], budgets: [] });
      test.control.addNode(name, { [DRYDOCK_ANNOTATIONS.drainBlocked]: drainBlocked });
    }
    expect(valueOf(test.source.metrics(), 'drydock_pool_drain_blocked_nodes{pool="worker"}')).toBe('2');
    expect(valueOf(test.source.metrics(), 'drydock_pool_drain_blocked_pods{pool="worker"}')).toBe('3');
    const annotations = { [DRYDOCK_ANNOTATIONS.drainBlocked]: null };
    await test.control.cluster.patch<NodeResource>(KINDS.node, { name: 'n1' }, { metadata: { annotations } });
    expect(valueOf(test.source.metrics(), 'drydock_pool_drain_blocked_nodes{pool="worker"}')).toBe('1');
  });
});

describe('the health of a control worker', () => {
  it('is well while the worker runs and its watches are heard of', async () => {
    const test = setUp();
    const url = await test.serve();
    for (const path of ['healthz', 'readyz']) expect((await fetch(`${url}/${path}`)).status).toBe(200);
  });

  it('is not ready, but alive, while a watch is silent: starting it again would not help', async () => {
    const test = setUp();
    const url = await test.serve();
    test.heard.pools = NOW - 181_000;
    expect((await fetch(`${url}/healthz`)).status).toBe(200);
    const silent = await fetch(`${url}/readyz`);
    expect([silent.status, await silent.text()]).toEqual([
      503,
      'the watch of pools has told nothing for 181 s: is the API server well?\n',
    ]);
    test.heard.pools = undefined;
    expect(await (await fetch(`${url}/readyz`)).text()).toContain('has not told what there is yet');
  });

  it.each([
    [undefined, 200, 503],
    ['INITIALIZED' as const, 200, 503],
    ['FAILED' as const, 503, 503],
    ['STOPPED' as const, 503, 503],
  ])('of a worker that is %s is %i, its readiness %i', async (state, alive, ready) => {
    const url = await setUp(() => state).serve();
    const statuses = await Promise.all(
      ['healthz', 'readyz'].map(async (path) => (await fetch(`${url}/${path}`)).status),
    );
    expect(statuses).toEqual([alive, ready]);
  });
});

describe('serveStatus', () => {
  const source = { metrics: () => '', whyNotAlive: () => undefined, whyNotReady: () => undefined };

  it('answers nothing but GET, and nothing but what it has', async () => {
    const server = await serveStatus('[::1]:0', source).catch(() => serveStatus('127.0.0.1:0', source));
    open.push(server);
    expect((await fetch(`${server.url}/`)).status).toBe(404);
    expect((await fetch(`${server.url}/metrics`, { method: 'POST' })).status).toBe(405);
    expect((await fetch(`${server.url}/metrics?x=1`)).status).toBe(200);
  });

  it.each(['9100', 'localhost', 'host:port', '::1:9100'])('refuses the address %s', async (address) => {
    await expect(serveStatus(address, source)).rejects.toThrow(`${address} is no address`);
  });

  it('says that the address is taken, and by which setting it is another', async () => {
    const other = createServer();
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
    const { port } = other.address() as AddressInfo;
    await expect(serveStatus(`127.0.0.1:${port}`, source)).rejects.toThrow(/EADDRINUSE.*DRYDOCK_METRICS_ADDRESS/);
    other.close();
  });
});
