import { createHash } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { pino } from 'pino';
import { afterEach, beforeAll, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import type { KubernetesObject } from '../../../activities/kubernetes/client.js';
import type { ServerIdentity } from '../../../ignition-server/certificates.js';
import { readNodePackage, type ServedPackage } from '../../../ignition-server/node-package.js';
import {
  startIgnitionServer,
  type IgnitionServer,
  type IgnitionServerOptions,
} from '../../../ignition-server/server.js';
import { apiFlavour } from '../../../machine-config/api/flavour.js';
import type { IgnitionConfig } from '../../../machine-config/ignition/config.js';
import { fileContents } from '../../../machine-config/ignition/contents.js';
import { FakeCluster } from '../../support/fake-cluster.js';
import { ask, renderedConfig, SECRET, selfSignedIdentity, tokenSecret } from '../../support/served-first-boot.js';
import { PATIENCE } from '../../support/patience.js';

const flavour = apiFlavour('openshift');
const POOL = flavour.machineConfigPool;
const CONFIG = flavour.machineConfig;
const accepts = (version: string) => ({ accept: `application/vnd.coreos.ignition+json;version=${version}, */*;q=0.1` });
const LATER = Date.now() + 3_600_000;

let identity: ServerIdentity;
let nodePackage: ServedPackage;
let folder: string;
beforeAll(async () => {
  identity = await selfSignedIdentity();
  folder = await mkdtemp(join(tmpdir(), 'drydock-ignition-'));
  await writeFile(join(folder, 'node.tar.gz'), Buffer.alloc(300_000, 7));
  nodePackage = await readNodePackage(join(folder, 'node.tar.gz'));
  return () => rm(folder, { recursive: true, force: true });
});

describe('the Ignition server', () => {
  let cluster: FakeCluster;
  let server: IgnitionServer;
  const logged: string[] = [];

  async function start(more: Partial<IgnitionServerOptions> = {}): Promise<IgnitionServer> {
    const stream = { write: (line: string) => void logged.push(line) };
    const started = await startIgnitionServer({
      kubernetes: cluster,
      flavour,
      identity,
      nodePackage,
      requestsPerMinute: 0,
      access: { networks: [], token: () => undefined },
      firstBoot: { server: 'https://boot.example:22623', kubelet: 'kubeadm', nodeEnvironment: 'TEMPORAL_ADDRESS=t\n' },
      apiServer: { url: 'https://api.example:6443', certificateAuthority: identity.authority },
      listen: { host: '127.0.0.1', port: 0 },
      logger: pino({ level: 'info' }, stream),
      ...more,
    });
    onTestFinished(() => started.close());
    return started;
  }
  const get = (path: string, headers: Record<string, string> = accepts('3.4.0'), more: object = {}) =>
    ask(`${server.url}${path}`, { ca: identity.authority, headers, ...more });
  const reason = (text: string) => (JSON.parse(text) as { reason: string }).reason;
  const motd = (text: string) =>
    renderedConfig(flavour, 'worker', {
      storage: { files: [{ path: '/etc/motd', contents: { source: `data:,${text}` } }] },
    });
  function addPool(config: string, status: object = {}): void {
    cluster.add(POOL, {
      metadata: { name: 'worker' },
      spec: { configuration: { name: config } },
      status,
    } as KubernetesObject);
  }
  function fileIn(text: string, path: string): string {
    const { storage } = JSON.parse(text) as IgnitionConfig;
    const found = storage?.files?.find((file) => file.path === path);
    return found === undefined ? '' : Buffer.from(fileContents(found)).toString();
  }

  let first: KubernetesObject;
  beforeEach(async () => {
    cluster = new FakeCluster();
    logged.length = 0;
    first = motd('first');
    cluster.add(CONFIG, first);
    addPool(first.metadata.name);
    cluster.add(SECRET, tokenSecret('drydka', '0123456789abcdef', LATER));
    server = await start();
    await vi.waitFor(async () => expect((await get('/readyz')).status).toBe(200), PATIENCE);
    await server.settled();
  });
  afterEach(() => vi.restoreAllMocks());

  describe('gives out', () => {
    it('the config of a pool in the version that the client asks for', async () => {
      for (const [asked, version] of [
        ['3.1.0', '3.1.0'],
        ['3.9.0', '3.5.0'],
        ['2.4.0', '2.2.0'],
      ] as const) {
        const { status, headers, text } = await get('/config/worker', accepts(asked));
        expect(status).toBe(200);
        expect(headers).toMatchObject({ 'content-type': 'application/json', 'content-length': String(text.length) });
        expect((JSON.parse(text) as IgnitionConfig).ignition.version).toBe(version);
      }
      const { text } = await get('/config/worker/?ignored=1');
      expect(fileIn(text, '/etc/motd')).toBe('first');
      expect(fileIn(text, '/etc/kubernetes/bootstrap-kubelet.conf')).toContain('token: drydka.0123456789abcdef');
    });

    it('the length and no body where only that is asked for', async () => {
      const whole = await get('/config/worker');
      const head = await get('/config/worker', accepts('3.4.0'), { method: 'HEAD' });
      expect(head).toMatchObject({ status: 200, text: '' });
      expect(head.headers['content-length']).toBe(whole.headers['content-length']);
    });

    it('the package of the node worker, under the hash that the config names', async () => {
      const { text } = await get('/config/worker');
      const { storage } = JSON.parse(text) as IgnitionConfig;
      const remote = storage?.files?.find(({ contents }) => contents?.source?.startsWith('https:'));
      const path = new URL(remote?.contents?.source ?? '').pathname;
      const fetched = await get(path, {});
      expect(`sha256-${createHash('sha256').update(Buffer.from(fetched.text, 'latin1')).digest('hex')}`).toBe(
        remote?.contents?.verification?.hash,
      );
      expect((await get(`/artifact/${'0'.repeat(64)}`, {})).status).toBe(404);
    });

    it('the old config until a node has finished the new one', async () => {
      const next = motd('next');
      cluster.add(CONFIG, next);
      const state = (updated: number) => ({
        updatedMachineCount: updated,
        configuration: { name: first.metadata.name },
      });
      await cluster.patch(POOL, { name: 'worker' }, { status: state(0) }, 'status');
      await cluster.patch(POOL, { name: 'worker' }, { spec: { configuration: { name: next.metadata.name } } });
      await server.settled();
      expect(fileIn((await get('/config/worker')).text, '/etc/motd')).toBe('first');
      await cluster.patch(POOL, { name: 'worker' }, { status: state(1) }, 'status');
      await vi.waitFor(
        async () => expect(fileIn((await get('/config/worker')).text, '/etc/motd')).toBe('next'),
        PATIENCE,
      );
    });

    it('the newest bootstrap token as soon as it is there', async () => {
      cluster.add(SECRET, tokenSecret('drydkb', 'fedcba9876543210', LATER + 1000));
      await vi.waitFor(
        async () =>
          expect(fileIn((await get('/config/worker')).text, '/etc/kubernetes/bootstrap-kubelet.conf')).toContain(
            'token: drydkb.fedcba9876543210',
          ),
        PATIENCE,
      );
    });

    it('without a call to the API server and without preparing anything anew', async () => {
      const calls: string[] = [];
      cluster.intercept(({ verb }) => void calls.push(verb));
      const answers = await Promise.all(Array.from({ length: 40 }, () => get('/config/worker')));
      expect(new Set(answers.map(({ text }) => text)).size).toBe(1);
      expect(calls).toEqual([]);
      expect(logged.filter((line) => line.includes('new machines get this config'))).toHaveLength(1);
    });
  });

  it('prepares nothing anew when what changed is in no config', async () => {
    await cluster.patch(POOL, { name: 'worker' }, { spec: { paused: true } });
    await cluster.patch(CONFIG, first.metadata, { metadata: { labels: null } });
    cluster.add(CONFIG, motd('of nobody'));
    await server.settled();
    await vi.waitFor(async () => expect((await get('/config/worker')).status).toBe(200), PATIENCE);
    expect(logged.filter((line) => line.includes('new machines get this config'))).toHaveLength(1);
  });

  describe('refuses, and says why,', () => {
    it.each([
      ['GET', '/config/nosuch', 404, 'there is no MachineConfigPool "nosuch" in this cluster'],
      ['GET', '/config/', 404, 'there are /config/<pool>'],
      ['GET', '/config/a/worker', 404, 'there are /config/<pool>'],
      ['GET', '/', 404, 'there are /config/<pool>'],
      ['POST', '/config/worker', 405, 'only GET and HEAD are answered'],
      ['DELETE', '/nowhere', 405, 'only GET and HEAD are answered'],
    ])('%s %s with %i', async (method, path, status, why) => {
      const answer = await get(path, accepts('3.4.0'), { method });
      expect(answer.status).toBe(status);
      expect(reason(answer.text)).toContain(why);
      if (status === 405) expect(answer.headers['allow']).toBe('GET, HEAD');
    });

    it('a version that it does not serve', async () => {
      const answer = await get('/config/worker', accepts('3.0.0'));
      expect([answer.status, reason(answer.text)]).toEqual([
        406,
        'Ignition 3.0.0 is not served; accept one of 2.2.0, 3.1.0, 3.2.0, 3.3.0, 3.4.0, 3.5.0',
      ]);
    });

    it('a version that cannot say what the config says, and no other', async () => {
      const newer = renderedConfig(flavour, 'worker', {
        storage: { directories: [{ path: '/srv/drop', mode: 0o1777 }] },
      });
      cluster.add(CONFIG, newer);
      await cluster.patch(POOL, { name: 'worker' }, { spec: { configuration: { name: newer.metadata.name } } });
      await vi.waitFor(async () => expect((await get('/config/worker', accepts('3.3.0'))).status).toBe(406), PATIENCE);
      expect(reason((await get('/config/worker', accepts('3.3.0'))).text)).toContain('/srv/drop');
      expect((await get('/config/worker', accepts('3.4.0'))).status).toBe(200);
    });

    it.each([
      ['that does not exist', () => undefined, 'it does not exist'],
      [
        'that no pool owns',
        () => ({ ...motd('own'), metadata: { name: motd('own').metadata.name } }),
        'it is not owned by a MachineConfigPool',
      ],
      [
        'that was changed',
        () => ({ ...motd('own'), spec: { fips: true } }) as KubernetesObject,
        'it was changed after it was rendered',
      ],
    ])('a config %s, for now', async (_, make, why) => {
      const config = make();
      if (config !== undefined) cluster.add(CONFIG, config);
      await cluster.patch(POOL, { name: 'worker' }, { spec: { configuration: { name: motd('own').metadata.name } } });
      await vi.waitFor(async () => expect((await get('/config/worker')).status).toBe(503), PATIENCE);
      const answer = await get('/config/worker');
      expect(reason(answer.text)).toContain(motd('own').metadata.name);
      expect(reason(answer.text)).toContain(why);
      expect(answer.headers['retry-after']).toBe('5');
    });

    it('older TLS than 1.2', async () => {
      const { port } = new URL(server.url);
      const failed = await new Promise<Error>((resolve, reject) => {
        const socket = connect(
          { host: '127.0.0.1', port: Number(port), ca: identity.authority, maxVersion: 'TLSv1.1', minVersion: 'TLSv1' },
          () => reject(new Error('it was accepted')),
        );
        socket.once('error', resolve);
      });
      expect(failed.message).not.toBe('it was accepted');
      const modern = await get('/config/worker', {}, { maxVersion: 'TLSv1.2' });
      expect(modern.protocol).toBe('TLSv1.2');
    });
  });

  describe('lets in', () => {
    it('only who has the provisioning token, in whatever it is at the time', async () => {
      let token = 'first-secret';
      server = await start({ access: { networks: [], token: () => token } });
      await vi.waitFor(async () => expect((await get('/readyz')).status).toBe(200), PATIENCE);
      const withToken = (sent: string) =>
        get('/config/worker', { authorization: `Bearer ${sent}`, ...accepts('3.4.0') });
      expect((await withToken('first-secret')).status).toBe(200);
      token = 'second-secret';
      const denied = await withToken('first-secret');
      expect(denied.status).toBe(401);
      expect((await get('/config/worker')).status).toBe(401);
      expect((await withToken('second-secret')).status).toBe(200);
      expect(denied.text + logged.join('')).not.toMatch(/first-secret|second-secret/);
    });

    it('only the allowed networks, for what is secret', async () => {
      server = await start({ access: { networks: ['10.0.0.0/8', 'fd00::/8'], token: () => undefined } });
      await vi.waitFor(async () => expect((await get('/readyz')).status).toBe(200), PATIENCE);
      expect((await get('/config/worker')).status).toBe(403);
      expect((await get(`/artifact/${nodePackage.sha256}`)).status).toBe(403);
      server = await start({ access: { networks: ['127.0.0.0/8'], token: () => undefined } });
      await vi.waitFor(async () => expect((await get('/config/worker')).status).toBe(200), PATIENCE);
    });

    it('only clients with a certificate of the given authority', async () => {
      const client = await selfSignedIdentity();
      const stranger = await selfSignedIdentity();
      server = await start({ clientAuthority: client.authority });
      const as = ({ certificate, key }: ServerIdentity) =>
        get('/config/worker', accepts('3.4.0'), { cert: certificate, key });
      await vi.waitFor(async () => expect((await as(client)).status).toBe(200), PATIENCE);
      expect((await as(stranger)).status).toBe(403);
      expect((await get('/config/worker')).status).toBe(403);
      expect((await get('/healthz')).status).toBe(200);
    });

    it('no address more often than it may come, so that a machine tries again', async () => {
      server = await start({ requestsPerMinute: 3 });
      await vi.waitFor(async () => expect((await get('/readyz')).status).toBe(200), PATIENCE);
      const statuses: number[] = [];
      for (let count = 0; count < 5; count += 1) statuses.push((await get('/config/worker')).status);
      expect(statuses).toEqual([200, 200, 200, 503, 503]);
      expect((await get('/healthz')).status).toBe(200);
    });
  });

  it('is not ready, and answers 503, until there is a bootstrap token', async () => {
    cluster = new FakeCluster();
    cluster.add(CONFIG, first);
    addPool(first.metadata.name);
    server = await start();
    await vi.waitFor(
      async () => expect(reason((await get('/config/worker')).text)).toContain('there is no bootstrap token yet'),
      PATIENCE,
    );
    expect((await get('/readyz')).status).toBe(503);
    cluster.add(SECRET, tokenSecret('drydka', '0123456789abcdef', LATER));
    await vi.waitFor(async () => expect((await get('/readyz')).status).toBe(200), PATIENCE);
  });

  it('shows a new certificate to the next client, and tells machines its authority', async () => {
    const next = await selfSignedIdentity();
    const before = await get('/healthz');
    server.useIdentity(next);
    await server.settled();
    const after = await get('/config/worker', accepts('3.4.0'), { ca: next.authority });
    expect(after.fingerprint).not.toBe(before.fingerprint);
    const authorities = (JSON.parse(after.text) as IgnitionConfig).ignition.security?.tls?.certificateAuthorities;
    expect(authorities).toEqual([{ source: `data:;base64,${Buffer.from(next.authority).toString('base64')}` }]);
  });

  it('logs who asked for what, and nothing of what was given out', async () => {
    await get('/config/worker', { ...accepts('3.4.0'), authorization: 'Bearer of-bad-news' });
    const lines = logged.map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(lines).toContainEqual(
      expect.objectContaining({ pool: 'worker', version: '3.4.0', status: 200, address: '127.0.0.1' }),
    );
    expect(logged.join('')).not.toMatch(/of-bad-news|0123456789abcdef|TEMPORAL_ADDRESS|BEGIN/);
  });

  it('measures by pool, and not by what somebody asks for', async () => {
    await get('/config/worker');
    await get('/config/made-up-name');
    const { text } = await get('/metrics', {});
    expect(text).toMatch(
      /drydock_ignition_requests_total\{route="\/config\/:pool",pool="worker",version="3.4.0",status="200"\} 1/,
    );
    expect(text).toMatch(/drydock_ignition_config_bytes\{pool="worker",config="rendered-worker-[\da-f]{32}"\} \d+/);
    expect(text).toContain('drydock_ignition_stale 0');
    expect(text).not.toContain('made-up-name');
  });

  it('ends its answers before it ends', async () => {
    const big = renderedConfig(flavour, 'worker', {}, 4_000_000);
    cluster.add(CONFIG, big);
    await cluster.patch(POOL, { name: 'worker' }, { spec: { configuration: { name: big.metadata.name } } });
    await vi.waitFor(
      async () => expect((await get('/config/worker')).text.length).toBeGreaterThan(4_000_000),
      PATIENCE,
    );
    const answers = Array.from({ length: 5 }, () => get('/config/worker'));
    await new Promise((resolve) => setImmediate(resolve));
    await vi.waitFor(() => expect(logged.length).toBeGreaterThan(0), PATIENCE);
    const [closed, ...all] = await Promise.all([
      server.close(),
      ...answers.map((one) => one.catch((error: unknown) => error)),
    ]);
    expect(closed).toBeUndefined();
    for (const answer of all) {
      // One that was not begun is refused; one that was begun is whole.
      if (answer instanceof Error)
        expect(answer).toMatchObject({ code: expect.stringMatching(/ECONNREFUSED|ECONNRESET/) as string });
      else expect(() => JSON.parse((answer as { text: string }).text) as unknown).not.toThrow();
    }
    await expect(get('/healthz')).rejects.toThrow();
  });
});
