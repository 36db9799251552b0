import { execFileSync } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { createServer, type RequestListener, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { Prometheus } from '../../../activities/cluster/prometheus.js';

const NOTHING = JSON.stringify({ status: 'success', data: { resultType: 'vector', result: [] } });
const TIMEOUT_MS = 500;

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.closeAllConnections();
});

async function serve(listener: RequestListener, server: Server = createServer()): Promise<string> {
  servers.push(server);
  server.on('request', listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const answering =
  (status: number, body: string): RequestListener =>
  (_, response) => {
    response.writeHead(status, { 'content-type': 'application/json' }).end(body);
  };
const ask = (url: string, more: object = {}) => new Prometheus(TIMEOUT_MS).ask({ url, query: 'up == 0', ...more });

describe('a Prometheus server', () => {
  it('is asked with the query as a form, below the path of its address', async () => {
    const asked: { url: string | undefined; method: string | undefined; body: string }[] = [];
    const address = await serve((request, response) => {
      let body = '';
      request.on('data', (chunk: Buffer) => (body += chunk.toString()));
      request.on('end', () => {
        asked.push({ url: request.url, method: request.method, body });
        response.end(NOTHING);
      });
    });
    const query = 'sum(rate(errors{job="a&b"}[5m])) > 0';
    expect(await ask(`http://${address}/prometheus/`, { query })).toMatchObject({ passed: true });
    expect(asked).toEqual([
      { url: '/prometheus/api/v1/query', method: 'POST', body: new URLSearchParams({ query }).toString() },
    ]);
  });

  it.each([
    [503, 'no healthy upstream', 'answered 503'],
    [500, NOTHING, 'answered 500'],
    [302, NOTHING, 'answered 302'],
    [401, 'log in', 'answered 401'],
    [200, '<html>log in</html>', 'no Prometheus'],
    [422, JSON.stringify({ status: 'error', error: 'query timed out' }), 'the query failed: query timed out'],
  ])('that answers %i does not pass', async (status, body, words) => {
    const address = await serve(answering(status, body));
    const verdict = await ask(`http://${address}`);
    expect(verdict).toMatchObject({ passed: false, why: expect.stringContaining(words) as string });
  });

  it('that takes too long, also within its answer, does not pass', async () => {
    const silent = await serve(() => undefined);
    const words = expect.stringContaining('no answer within 0.5 s') as string;
    expect(await ask(`http://${silent}`)).toMatchObject({ passed: false, why: words });
    const slow = await serve((_, response) => void response.writeHead(200).write('{'));
    expect(await ask(`http://${slow}`)).toMatchObject({ passed: false, why: words });
  });

  it('that is not there, or nowhere, does not pass', async () => {
    expect(await ask('http://127.0.0.1:1')).toMatchObject({
      passed: false,
      why: expect.stringContaining('ECONNREFUSED') as string,
    });
    expect(await ask('http://[')).toMatchObject({
      passed: false,
      why: expect.stringContaining('Invalid URL') as string,
    });
  });

  it('that answers without end is not read to the end', async () => {
    let sent = 0;
    const address = await serve((_, response) => {
      const chunk = 'x'.repeat(65_536);
      const more = () => {
        sent += chunk.length;
        if (response.write(chunk)) setImmediate(more);
        else response.once('drain', more);
      };
      more();
    });
    const verdict = await new Prometheus(20_000).ask({ url: `http://${address}`, query: 'up' });
    expect(verdict).toMatchObject({ passed: false, why: expect.stringContaining('larger than 1 MiB') as string });
    expect(sent).toBeLessThan(50_000_000);
  });

  it('is believed over https only when its authority is trusted', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'drydock-prometheus-test-'));
    try {
      const [key, cert] = [join(directory, 'key.pem'), join(directory, 'cert.pem')];
      const subject = ['-subj', '/CN=127.0.0.1', '-addext', 'subjectAltName=IP:127.0.0.1'];
      const made = ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', '-keyout', key, '-out', cert];
      execFileSync('openssl', [...made, ...subject], { stdio: 'ignore' });
      const authority = await readFile(cert, 'utf8');
      const server = createTlsServer({ key: await readFile(key), cert: authority });
      const address = await serve(answering(200, NOTHING), server);
      expect(await ask(`https://${address}`)).toMatchObject({
        passed: false,
        why: expect.stringContaining('self-signed certificate') as string,
      });
      const trusting = new Prometheus(TIMEOUT_MS, () => [authority]);
      expect(await trusting.ask({ url: `https://${address}`, query: 'up' })).toMatchObject({ passed: true });
    } finally {
      await rm(directory, { recursive: true });
    }
  });
});
