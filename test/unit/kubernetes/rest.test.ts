import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { KINDS } from '../../../activities/kubernetes/client.js';
import { failureDetail } from '../../../activities/kubernetes/failures.js';
import { createKubernetesClient, type ClosableKubernetesClient } from '../../../activities/kubernetes/rest.js';

let folder: string;
let server: Server;
let kubeconfigPath: string;
let client: ClosableKubernetesClient;
let answer: (request: IncomingMessage, response: ServerResponse, body: string) => void;
let requests: { line: string; headers: IncomingMessage['headers']; body: string }[];

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'drydock-rest-'));
  requests = [];
  server = createServer((request, response) => {
    let body = '';
    request.on('data', (chunk: Buffer) => (body += chunk.toString()));
    request.on('end', () => {
      requests.push({ line: `${request.method ?? ''} ${request.url ?? ''}`, headers: request.headers, body });
      answer(request, response, body);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  kubeconfigPath = join(folder, 'kubeconfig');
  writeKubeconfig({ token: 'first' });
  client = createKubernetesClient({ kubeconfigPath }, { timeoutSeconds: 1, userAgent: 'drydock-test' });
});

afterEach(async () => {
  await client.close();
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
  rmSync(folder, { recursive: true });
});

const port = (): number => (server.address() as AddressInfo).port;

function writeKubeconfig(user: object): void {
  const config = {
    'current-context': 'lab',
    clusters: [{ name: 'lab', cluster: { server: `http://127.0.0.1:${port()}/` } }],
    users: [{ name: 'me', user }],
    contexts: [{ name: 'lab', context: { cluster: 'lab', user: 'me' } }],
  };
  // Replaced as Kubernetes does it: a new file under the old name.
  writeFileSync(`${kubeconfigPath}.new`, JSON.stringify(config));
  renameSync(`${kubeconfigPath}.new`, kubeconfigPath);
}

function json(response: ServerResponse, status: number, body: object, headers: Record<string, string> = {}): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));
}

const node = (name: string, resourceVersion = '1') => ({ metadata: { name, resourceVersion } });

test('a merge patch is sent as one, with the token and the name of the manager', async () => {
  answer = (_, response) => json(response, 200, node('worker-1'));
  const patched = await client.patch(KINDS.node, { name: 'worker-1' }, { spec: { unschedulable: true } }, 'status');
  expect(patched).toMatchObject({ apiVersion: 'v1', kind: 'Node' });
  expect(requests[0]).toMatchObject({
    line: 'PATCH /api/v1/nodes/worker-1/status?fieldManager=drydock',
    body: '{"spec":{"unschedulable":true}}',
  });
  expect(requests[0]?.headers).toMatchObject({
    authorization: 'Bearer first',
    'content-type': 'application/merge-patch+json',
    'user-agent': 'drydock-test',
  });
});

test('an apply is a patch of its own kind, in the name of its manager, and forced or dry only if asked to be', async () => {
  answer = (_, response) => json(response, 200, node('worker-1'));
  await client.apply(KINDS.node, node('worker-1'), { fieldManager: 'me' });
  await client.apply(KINDS.node, node('worker-1'), { fieldManager: 'me', force: true, dryRun: true });
  expect(requests.map(({ line }) => line)).toEqual([
    'PATCH /api/v1/nodes/worker-1?fieldManager=me&force=false',
    'PATCH /api/v1/nodes/worker-1?fieldManager=me&force=true&dryRun=All',
  ]);
  expect(requests[0]?.headers).toMatchObject({ 'content-type': 'application/apply-patch+yaml' });
  expect(JSON.parse(requests[0]?.body ?? '')).toMatchObject({ apiVersion: 'v1', kind: 'Node' });
});

test('a list collects all pages', async () => {
  answer = (request, response) => {
    const page = new URL(request.url ?? '', 'http://x').searchParams;
    if (page.get('continue') === 'next') json(response, 200, { metadata: {}, items: [node('b')] });
    else json(response, 200, { metadata: { continue: 'next' }, items: [node('a')] });
  };
  const nodes = await client.list(KINDS.node, { labelSelector: 'a=b' });
  expect(nodes.map(({ metadata }) => metadata.name)).toEqual(['a', 'b']);
  expect(requests.map(({ line }) => line)).toEqual([
    'GET /api/v1/nodes?labelSelector=a%3Db&limit=500',
    'GET /api/v1/nodes?labelSelector=a%3Db&limit=500&continue=next',
  ]);
});

test('pages that expired while they were read are read again at once, none twice', async () => {
  answer = (request, response) => {
    const query = new URL(request.url ?? '', 'http://x').searchParams;
    if (query.has('continue')) json(response, 410, { reason: 'Expired', message: 'too old' });
    else if (query.has('limit')) json(response, 200, { metadata: { continue: 'next' }, items: [node('a')] });
    else json(response, 200, { metadata: {}, items: [node('a'), node('b')] });
  };
  const nodes = await client.list(KINDS.node);
  expect(nodes.map(({ metadata }) => metadata.name)).toEqual(['a', 'b']);
});

test.each([
  [400, 'Invalid', true],
  [401, 'Forbidden', false],
  [403, 'Forbidden', false],
  [404, 'NotFound', true],
  [409, 'Conflict', false],
  [413, 'Invalid', true],
  [422, 'Invalid', true],
  [429, 'ApiUnavailable', false],
  [500, 'ApiUnavailable', false],
  [503, 'ApiUnavailable', false],
])('status %i is %s', async (status, type, nonRetryable) => {
  answer = (_, response) => json(response, status, { reason: 'Why', message: 'first\nsecond' }, { 'retry-after': '7' });
  const error: unknown = await client
    .get(KINDS.pod, { namespace: 'shop', name: 'cart-1' })
    .catch((reason: unknown) => reason);
  const message = `get Pod shop/cart-1: ${status} first second`;
  expect(error).toMatchObject({ type, nonRetryable, message, nextRetryDelay: 7000 });
  expect(failureDetail(error)).toMatchObject({ status, reason: 'Why', verb: 'get', kind: 'Pod', name: 'cart-1' });
});

test('an error that is not JSON is the message', async () => {
  answer = (_, response) => response.writeHead(502).end('bad\ngateway');
  await expect(client.list(KINDS.node)).rejects.toMatchObject({
    type: 'ApiUnavailable',
    message: 'list Node: 502 bad gateway',
  });
});

test('a call that is not answered in time is ApiUnavailable and says so', async () => {
  answer = () => undefined;
  await expect(client.get(KINDS.node, { name: 'worker-1' })).rejects.toMatchObject({
    type: 'ApiUnavailable',
    message: `get Node worker-1: the API server http://127.0.0.1:${port()} could not be reached: no answer within 1 s`,
  });
});

test('a server that is not there is ApiUnavailable with the reason, the original error as its cause', async () => {
  await new Promise((resolve) => server.close(resolve));
  const error = (await client.list(KINDS.node).catch((reason: unknown) => reason)) as Error;
  expect(error).toMatchObject({ type: 'ApiUnavailable' });
  expect(error.message).toMatch(/could not be reached: .*ECONNREFUSED/);
  expect(error.cause).toBeInstanceOf(Error);
});

test('a kubeconfig that is not there is named in one line', async () => {
  const other = createKubernetesClient({ kubeconfigPath: join(folder, 'missing') });
  await expect(other.list(KINDS.node)).rejects.toMatchObject({ type: 'ApiUnavailable' });
  await expect(other.list(KINDS.node)).rejects.toThrow(/ENOENT.*missing/);
});

test('after a 401 rotated credentials are read and the call is made again', async () => {
  answer = (request, response) =>
    request.headers.authorization === 'Bearer second'
      ? json(response, 200, node('worker-1'))
      : json(response, 401, { message: 'Unauthorized' });
  await expect(client.get(KINDS.node, { name: 'worker-1' })).rejects.toMatchObject({ type: 'Forbidden' });
  expect(requests).toHaveLength(1);
  writeKubeconfig({ token: 'second' });
  expect(await client.get(KINDS.node, { name: 'worker-1' })).toMatchObject(node('worker-1'));
});

test('an exec plugin hands out the token', async () => {
  const credential = {
    apiVersion: 'client.authentication.k8s.io/v1',
    kind: 'ExecCredential',
    status: { token: 'of-plugin' },
  };
  const exec = {
    apiVersion: 'client.authentication.k8s.io/v1',
    command: process.execPath,
    args: ['-e', `console.log(${JSON.stringify(JSON.stringify(credential))})`],
    interactiveMode: 'Never',
  };
  writeKubeconfig({ exec });
  answer = (_, response) => json(response, 200, node('worker-1'));
  await client.get(KINDS.node, { name: 'worker-1' });
  expect(requests[0]?.headers.authorization).toBe('Bearer of-plugin');
});

test('a watch lists, follows, resumes where the server ended it, and stops at once', async () => {
  const end = new AbortController();
  const seen: string[] = [];
  const open: ServerResponse[] = [];
  answer = (request, response) => {
    const query = new URL(request.url ?? '', 'http://x').searchParams;
    if (!query.has('watch')) {
      json(response, 200, { metadata: { resourceVersion: '10' }, items: [node('a', '9')] });
      return;
    }
    response.writeHead(200);
    const event = (type: string, object: object) => response.write(`${JSON.stringify({ type, object })}\n`);
    if (query.get('resourceVersion') === '10') {
      event('MODIFIED', { ...node('a', '11'), metadata: { ...node('a', '11').metadata, managedFields: [1] } });
      event('BOOKMARK', { metadata: { resourceVersion: '12' } });
      response.end();
    } else open.push(response);
  };
  client.watch(
    KINDS.node,
    { onChange: (type, object) => seen.push(`${type} ${JSON.stringify(object.metadata)}`) },
    end.signal,
  );
  await vi.waitFor(() => expect(open).toHaveLength(1), 5000);
  expect(requests.at(-1)?.line).toContain('resourceVersion=12');
  expect(requests.filter(({ line }) => !line.includes('watch='))).toHaveLength(1);
  expect(seen).toEqual(['ADDED {"name":"a","resourceVersion":"9"}', 'MODIFIED {"name":"a","resourceVersion":"11"}']);
  const closed = new Promise((resolve) => open[0]?.once('close', resolve));
  end.abort();
  await closed;
});

test('a kind is found by its apiVersion in what the API server serves, and subresources are none', async () => {
  const resources = [
    { name: 'deployments/scale', kind: 'Deployment', namespaced: true },
    { name: 'deployments', kind: 'Deployment', namespaced: true },
  ];
  answer = (request, response) =>
    json(response, request.url === '/apis/apps/v1' ? 200 : 404, { kind: 'APIResourceList', resources });
  expect(await client.discover('apps/v1', 'Deployment')).toEqual(KINDS.deployment);
  expect(await client.discover('apps/v1', 'Widget')).toBeUndefined();
  expect(await client.discover('example.com/v1', 'Widget')).toBeUndefined();
  expect(requests.at(-1)?.line).toBe('GET /apis/example.com/v1');
});

test('etcd has a problem only when the check of it fails, and not when it may not be asked', async () => {
  answer = (_, response) => void response.writeHead(500).end('[-]etcd failed: reason withheld\nreadyz check failed');
  expect(await client.etcdProblem()).toBe('[-]etcd failed: reason withheld readyz check failed');
  expect(requests[0]?.line).toBe('GET /readyz/etcd');
  for (const status of [200, 403, 404]) {
    answer = (_, response) => void response.writeHead(status).end('ok');
    expect(await client.etcdProblem()).toBeUndefined();
  }
});
