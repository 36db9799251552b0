import { NativeConnection, Runtime } from '@temporalio/worker';
import { get, type IncomingMessage } from 'node:http';
import { createServer, type AddressInfo } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { lastingMeter } from '../../../workers/lasting-meter.js';

afterEach(() => Runtime.instance().shutdown());

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** The lines of a metric as Prometheus reads them. */
async function scrape(port: number, name: string): Promise<string[]> {
  // A connection of its own: the server is another after a failure.
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    get({ host: '127.0.0.1', port, path: '/metrics', agent: false }, resolve).once('error', reject);
  });
  const text = (await response.setEncoding('utf8').toArray()).join('');
  return text.split('\n').filter((line) => line.startsWith(name));
}

test('what is measured outlives a connection to Temporal that could not be made', async () => {
  const port = await freePort();
  const telemetryOptions = { metrics: { prometheus: { bindAddress: `127.0.0.1:${port}` } } };
  Runtime.install({
    shutdownSignals: [],
    telemetryOptions,
    logger: { log() {}, trace() {}, debug() {}, info() {}, warn() {}, error() {} },
  });
  const meter = lastingMeter(() => Runtime.instance().metricMeter);
  const drift = meter.createGauge('drydock_drift', 'int', '', 'of a test');
  const failures = meter.createCounter('drydock_failures', '', 'of a test');
  const seconds = meter.withTags({ node: 'n1' }).createHistogram('drydock_seconds', 'int', '', 'of a test');
  drift.set(1, { path: '/etc/a' });
  failures.add(1, { code: 'x' });
  expect(await scrape(port, 'drydock_drift')).toEqual(['drydock_drift{path="/etc/a"} 1']);

  const refused = `127.0.0.1:${await freePort()}`;
  await expect(NativeConnection.connect({ address: refused })).rejects.toThrow();

  drift.set(1, { path: '/etc/b' });
  failures.withTags({ code: 'y' }).add(2);
  seconds.record(3);
  expect((await scrape(port, 'drydock_drift')).sort()).toEqual([
    'drydock_drift{path="/etc/a"} 1',
    'drydock_drift{path="/etc/b"} 1',
  ]);
  expect(await scrape(port, 'drydock_failures')).toEqual([expect.stringMatching(/code="y".* 2$/)]);
  expect(await scrape(port, 'drydock_seconds_count')).toEqual(['drydock_seconds_count{node="n1"} 1']);
});
