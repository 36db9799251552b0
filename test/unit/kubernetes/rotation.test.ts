import { chmodSync, mkdtempSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { TLSSocket } from 'node:tls';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { KINDS } from '../../../activities/kubernetes/client.js';
import type { ClusterSource } from '../../../activities/kubernetes/kubeconfig.js';
import { createKubernetesClient, type ClosableKubernetesClient } from '../../../activities/kubernetes/rest.js';
import { CertificateAuthority } from '../../../dev/kubernetes/certificates.js';

/*
 * A node's identity as the kubelet keeps it: one file with key and certificate, a link that is switched when it is
 * renewed, and an API server that only knows certificates.
 */

let folder: string;
let authority: CertificateAuthority;
let server: Server;
/** What the server lets in: common names of certificates, and bearer tokens. */
let welcome: Set<string>;
/** Who came, in order. */
let visitors: string[];
let clients: ClosableKubernetesClient[];

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'drydock-rotation-'));
  authority = await CertificateAuthority.open(folder);
  welcome = new Set();
  visitors = [];
  clients = [];
});

afterEach(async () => {
  vi.restoreAllMocks();
  for (const client of clients) await client.close();
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
  rmSync(folder, { recursive: true });
});

/** `certified`: a handshake without a certificate of the authority fails already. */
async function serve({ certified = false, ca = authority.certificate } = {}): Promise<void> {
  const own = authority.issueServer('api', { dns: ['localhost'], ip: ['127.0.0.1'] });
  server = createServer(
    { key: own.key, cert: own.certificate, ca, requestCert: true, rejectUnauthorized: certified },
    (request, response) => {
      const { socket } = request;
      const certificate = socket instanceof TLSSocket ? socket.getPeerCertificate() : undefined;
      const { CN } = (certificate as { subject?: { CN?: string } } | undefined)?.subject ?? {};
      const visitor = request.headers.authorization?.replace('Bearer ', '') ?? CN ?? 'nobody';
      visitors.push(visitor);
      const body = welcome.has(visitor) ? { metadata: { name: 'n1' } } : { message: 'Unauthorized' };
      response
        .writeHead(welcome.has(visitor) ? 200 : 401, { 'content-type': 'application/json' })
        .end(JSON.stringify(body));
    },
  );
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
}

function identity(user: string, by = authority): void {
  const { key, certificate } = by.issueClient({ user });
  writeFileSync(join(folder, `${user}.pem`), `${certificate}${key}`, { mode: 0o600 });
  symlinkSync(`${user}.pem`, join(folder, 'current.new'));
  renameSync(join(folder, 'current.new'), join(folder, 'current.pem'));
}

function kubeconfig(user: object): string {
  const path = join(folder, 'kubelet.conf');
  const cluster = {
    server: `https://127.0.0.1:${(server.address() as AddressInfo).port}`,
    'certificate-authority-data': Buffer.from(authority.certificate).toString('base64'),
  };
  writeFileSync(
    path,
    JSON.stringify({
      'current-context': 'lab',
      clusters: [{ name: 'lab', cluster }],
      users: [{ name: 'node', user }],
      contexts: [{ name: 'lab', context: { cluster: 'lab', user: 'node' } }],
    }),
  );
  return path;
}

function connect(source: ClusterSource): () => Promise<unknown> {
  const client = createKubernetesClient(source, { timeoutSeconds: 5 });
  clients.push(client);
  return () => client.get(KINDS.node, { name: 'n1' });
}

const CERTIFICATE = { 'client-certificate': 'current.pem', 'client-key': 'current.pem' };

test('a client certificate that is rotated is used at once when the server refuses the old one', async () => {
  await serve();
  welcome.add('old').add('new');
  identity('old');
  const get = connect({ kubeconfigPath: kubeconfig(CERTIFICATE) });
  await get();
  identity('new');
  welcome.delete('old');
  await get();
  expect(visitors).toEqual(['old', 'old', 'new']);
});

test('a rotated certificate is used within a minute, before the old one is refused', async () => {
  await serve();
  welcome.add('old').add('new');
  identity('old');
  const get = connect({ kubeconfigPath: kubeconfig(CERTIFICATE) });
  await get();
  identity('new');
  await get();
  const now = Date.now();
  vi.spyOn(Date, 'now').mockReturnValue(now + 61_000);
  await get();
  expect(visitors).toEqual(['old', 'old', 'new']);
});

test('a server that refuses the handshake makes the next call look for a new certificate', async () => {
  await serve({ certified: true });
  welcome.add('new');
  const stranger = mkdtempSync(join(folder, 'stranger-'));
  identity('old', await CertificateAuthority.open(stranger));
  const get = connect({ kubeconfigPath: kubeconfig(CERTIFICATE) });
  await expect(get()).rejects.toMatchObject({ type: 'ApiUnavailable' });
  identity('new');
  await get();
  expect(visitors).toEqual(['new']);
});

test('a kubeconfig that is not there yet is asked for at each call, and used when it is', async () => {
  await serve();
  welcome.add('node');
  identity('node');
  let isThere = false;
  const findKubeconfig = vi.fn(() =>
    isThere ? Promise.resolve(kubeconfig(CERTIFICATE)) : Promise.reject(new Error('no kubeconfig: looked for /a, /b')),
  );
  const get = connect({ findKubeconfig });
  await expect(get()).rejects.toMatchObject({
    type: 'ApiUnavailable',
    message: expect.stringContaining('no way to the cluster: no kubeconfig: looked for /a, /b') as string,
  });
  isThere = true;
  await get();
  await get();
  expect(findKubeconfig).toHaveBeenCalledTimes(2);
});

test('an exec plugin gives the token, and is run again when the token is refused', async () => {
  await serve();
  const token = join(folder, 'token');
  writeFileSync(token, 'first');
  const plugin = join(folder, 'plugin');
  writeFileSync(
    plugin,
    `#!/bin/sh\nprintf '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"%s"}}' "$(cat ${token})"\n`,
  );
  chmodSync(plugin, 0o755);
  welcome.add('first');
  const exec = { apiVersion: 'client.authentication.k8s.io/v1', command: plugin, interactiveMode: 'Never' };
  const get = connect({ kubeconfigPath: kubeconfig({ exec }) });
  await get();
  expect(readFileSync(token, 'utf8')).toBe('first');
  writeFileSync(token, 'second');
  welcome.delete('first');
  welcome.add('second');
  await get();
  expect(visitors).toEqual(['first', 'first', 'second']);
});

test('an exec plugin that fails is named', async () => {
  await serve();
  const exec = {
    apiVersion: 'client.authentication.k8s.io/v1',
    command: join(folder, 'no-such-plugin'),
    interactiveMode: 'Never',
  };
  const get = connect({ kubeconfigPath: kubeconfig({ exec }) });
  await expect(get()).rejects.toThrow('no-such-plugin');
});
