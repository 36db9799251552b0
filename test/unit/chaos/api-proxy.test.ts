import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:https';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { KINDS, type KubernetesClient } from '../../../activities/kubernetes/client.js';
import { createKubernetesClient, type ClosableKubernetesClient } from '../../../activities/kubernetes/rest.js';
import { ApiProxy } from '../../../dev/chaos/api-proxy.js';
import { Random } from '../../../dev/chaos/random.js';
import { CertificateAuthority } from '../../../dev/kubernetes/certificates.js';
import { formatKubeconfig } from '../../../dev/kubernetes/kubeconfig.js';

const NODE = 'system:node:worker-1';
const CONTROL = 'drydock-control';

describe('the proxy of the chaos test', () => {
  let directory: string;
  let authority: CertificateAuthority;
  let upstream: Server;
  let proxy: ApiProxy;
  let clients: Record<string, ClosableKubernetesClient>;
  /** Who called, as the server behind the proxy sees it. */
  let callers: string[];

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'drydock-chaos-proxy-'));
    authority = await CertificateAuthority.open(directory);
    callers = [];
    upstream = await startUpstream();
    const server = addressOf(upstream);
    proxy = await ApiProxy.start({ upstream: server, authority, random: new Random(1, 'test') });
    clients = { [NODE]: await clientOf(NODE, server), [CONTROL]: await clientOf(CONTROL, server) };
  });
  afterEach(async () => {
    await Promise.all(Object.values(clients).map((client) => client.close()));
    await proxy.close();
    upstream.closeAllConnections();
    await new Promise((closed) => upstream.close(closed));
    await rm(directory, { recursive: true });
  });

  function startUpstream(): Promise<Server> {
    const { key, certificate } = authority.issueServer('upstream', { dns: ['localhost'], ip: ['127.0.0.1'] });
    const tls = { key, cert: certificate, ca: authority.certificate, requestCert: true, rejectUnauthorized: true };
    const names = new Map<Socket, string>();
    const server = createServer(tls, (request, response) => {
      callers.push(names.get(request.socket) ?? '');
      response.end(JSON.stringify({ metadata: { name: 'worker-1' } }));
    });
    server.on('secureConnection', (socket) => names.set(socket, String(socket.getPeerCertificate().subject.CN)));
    return new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(server)));
  }

  async function clientOf(user: string, server: string): Promise<ClosableKubernetesClient> {
    const file = join(directory, `${user}.kubeconfig`);
    const client = authority.issueClient({ user });
    await writeFile(file, formatKubeconfig(user, { server, authority: authority.certificate, client }));
    return createKubernetesClient({ kubeconfigPath: await proxy.redirect(file) });
  }

  const client = (user: string): KubernetesClient => {
    const found = clients[user];
    if (found === undefined) throw new Error(`no client of ${user}`);
    return found;
  };
  const getAs = (user: string) => client(user).get(KINDS.node, { name: 'worker-1' });
  const patchAs = (user: string) => client(user).patch(KINDS.node, { name: 'worker-1' }, { metadata: {} });

  it('passes calls on as whoever called', async () => {
    await Promise.all([getAs(NODE), getAs(CONTROL), getAs(NODE)]);
    expect(callers.sort()).toEqual([CONTROL, NODE, NODE]);
  });

  it('answers the calls of its audience with errors that the server never sees', async () => {
    proxy.set('nodes', { errors: 1 });
    await expect(getAs(NODE)).rejects.toMatchObject({ type: 'ApiUnavailable' });
    await expect(getAs(CONTROL)).resolves.toBeDefined();
    const types = new Set<string>();
    for (let tries = 0; tries < 40; tries += 1) {
      await patchAs(NODE).catch((error: unknown) => types.add((error as { type: string }).type));
    }
    expect(types).toEqual(new Set(['ApiUnavailable', 'Conflict']));
    expect(callers).toEqual([CONTROL]);
    proxy.clear();
    await expect(getAs(NODE)).resolves.toBeDefined();
  });

  it('loses the answer of a call that was carried out', async () => {
    proxy.set('everybody', { lostAnswers: 1 });
    await expect(patchAs(CONTROL)).rejects.toMatchObject({ type: 'ApiUnavailable' });
    expect(callers).toEqual([CONTROL]);
  });

  it('cuts connections that are open, and refuses new ones until it is mended', async () => {
    await Promise.all([getAs(NODE), getAs(CONTROL)]);
    proxy.set('control', { cut: true });
    await expect(getAs(CONTROL)).rejects.toMatchObject({ type: 'ApiUnavailable' });
    await expect(getAs(NODE)).resolves.toBeDefined();
    proxy.set('control', { cut: false });
    await expect(getAs(CONTROL)).resolves.toBeDefined();
    expect(proxy.counts.cuts).toBeGreaterThan(0);
  });

  it('closes while a connection is being made that never gets on', async () => {
    const stranger = connect(proxy.port, '127.0.0.1').on('error', () => undefined);
    onTestFinished(() => void stranger.destroy());
    await once(stranger, 'connect');
    // Later than the stranger, who is accepted therefore.
    await getAs(CONTROL);
    await Promise.all([once(stranger, 'close'), proxy.close()]);
  });
});

function addressOf(server: Server): string {
  return `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
