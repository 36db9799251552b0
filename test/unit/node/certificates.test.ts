import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { expect, it, onTestFinished, vi } from 'vitest';
import type { Host } from '../../../activities/host/host.js';
import { withHostLock } from '../../../activities/host/lock.js';
import { KINDS, type KubernetesObject } from '../../../activities/kubernetes/client.js';
import { startCertificateKeeper, type CertificatePace } from '../../../activities/node/certificates.js';
import { CONTROLLER_CONFIG_NAME, type NodeCertificate } from '../../../machine-config/api/controller-config.js';
import { certificateRoleName } from '../../../machine-config/certificates/objects.js';
import { driftingNode, flavour, KEYS } from '../../support/drifting-node.js';
import { file, rendered } from '../../support/fake-host.js';
import { PATIENCE } from '../../support/patience.js';

const PATH = '/etc/pki/drydock/ca.pem';
const SECRET = { namespace: 'drydock', name: 'ca' };
const MARK = 'TOP-SECRET';
const BRISK: CertificatePace = { quiet: 5, firstRest: 20, longestRest: 200, retry: 50, longestRetry: 200, grace: 50 };
const entry = (path = PATH, more: Partial<NodeCertificate> = {}): NodeCertificate => ({
  secret: SECRET,
  key: 'ca.crt',
  path,
  ...more,
});
const rule = (group: string, resource: string, name: string) => ({
  apiGroups: [group],
  resources: [resource],
  resourceNames: [name],
  verbs: ['get', 'list', 'watch'],
});

/** A node that may read what `syncCertificateAccess` and `syncNodeAccess` let it read, and nothing else. */
async function nodeWithKeeper(certificates: NodeCertificate[] | undefined, ignition: object = {}) {
  const node = await driftingNode(ignition);
  const { cluster, fake, deps, logger } = node;
  const subjects = [{ kind: 'User', name: 'system:node:n1' }];
  const grant = (kind: 'role' | 'clusterRole', metadata: { name: string; namespace?: string }, rules: object[]) => {
    cluster.add(KINDS[kind], { metadata, rules } as KubernetesObject);
    cluster.add(KINDS[`${kind}Binding`], { metadata, roleRef: { name: metadata.name }, subjects } as KubernetesObject);
  };
  const { group, controllerConfig } = flavour;
  grant('clusterRole', { name: 'pool' }, [rule(group, controllerConfig.plural, CONTROLLER_CONFIG_NAME)]);
  const mayRead = () =>
    grant('role', { name: certificateRoleName(flavour), namespace: 'drydock' }, [
      rule('', 'secrets', 'ca'),
      rule('', 'configmaps', 'ca'),
    ]);
  const metadata = { name: CONTROLLER_CONFIG_NAME };
  if (certificates !== undefined)
    cluster.add(controllerConfig, { metadata, spec: { certificates } } as KubernetesObject);
  const problems: number[] = [];
  Object.assign(deps.metrics ?? {}, { certificateProblems: (count: number) => void problems.push(count) });
  const test = {
    ...node,
    problems,
    mayRead,
    setSecret: async (text: string | undefined) => {
      const data = text === undefined ? {} : { 'ca.crt': Buffer.from(text).toString('base64') };
      if (cluster.peek(KINDS.secret, SECRET) === undefined)
        cluster.add(KINDS.secret, { metadata: SECRET, data } as KubernetesObject);
      else await cluster.patch(KINDS.secret, SECRET, { data: { 'ca.crt': data['ca.crt'] ?? null } });
    },
    name: (next: NodeCertificate[]) => cluster.patch(controllerConfig, metadata, { spec: { certificates: next } }),
    start(pace: Partial<CertificatePace> = {}) {
      const keeper = startCertificateKeeper(deps, { logger, pace: { ...BRISK, ...pace } });
      onTestFinished(() => keeper.stop());
      return keeper;
    },
    onDisk: (path = PATH) => readFile(fake.path(path), 'utf8').catch(() => undefined),
    holds: (text: string | undefined, path = PATH) =>
      vi.waitFor(async () => expect(await test.onDisk(path)).toBe(text), { ...PATIENCE, interval: 5 }),
    told: (reason: string) =>
      vi.waitFor(
        async () => {
          const events = (await test.events()).filter((event) => event.reason === reason);
          expect(events).not.toEqual([]);
          return events;
        },
        { ...PATIENCE, interval: 10 },
      ),
  };
  return test;
}

/** On a busy machine. */
const soon = <T>(condition: () => T | Promise<T>) => vi.waitFor(condition, { ...PATIENCE, interval: 5 });

/** Takes the host's lock as soon as it is free; the answer gives it back. */
const held = (host: Host): Promise<() => Promise<void>> =>
  vi.waitFor(
    () =>
      new Promise<() => Promise<void>>((resolve, reject) => {
        const working = withHostLock(
          host,
          'a test',
          () => new Promise<void>((free) => resolve(() => (free(), working))),
        );
        working.catch(reject);
      }),
    { ...PATIENCE, interval: 5 },
  );

it('writes a file from its Secret, and again when that changes, while nothing else is done to the node', async () => {
  const node = await nodeWithKeeper([entry()]);
  node.mayRead();
  await node.setSecret('one');
  const before = node.cluster.peek(KINDS.node, 'n1');
  node.start();
  await node.holds('one');
  await node.setSecret('two');
  await node.holds('two');
  await node.name([entry(PATH, { mode: 0o644 }), entry('/etc/pki/drydock/copy.pem')]);
  await node.holds('two', '/etc/pki/drydock/copy.pem');
  expect(node.cluster.peek(KINDS.node, 'n1')).toEqual(before);
  expect(node.fake.reboots).toEqual([]);
  expect(await node.events()).toEqual([]);
});

it('reads a ConfigMap, its text and its bytes', async () => {
  const configMap = { configMap: SECRET };
  const node = await nodeWithKeeper([
    { ...configMap, key: 'text', path: '/etc/pki/text' },
    { ...configMap, key: 'bytes', path: '/etc/pki/bytes' },
  ]);
  node.mayRead();
  const binaryData = { bytes: Buffer.from([0, 255]).toString('base64') };
  node.cluster.add(KINDS.configMap, { metadata: SECRET, data: { text: 'é' }, binaryData } as KubernetesObject);
  node.start();
  await node.holds('é', '/etc/pki/text');
  await soon(async () => expect(await readFile(node.fake.path('/etc/pki/bytes'))).toEqual(Buffer.from([0, 255])));
});

it('writes again what somebody else made of a file, and tells it without what is in it', async () => {
  const node = await nodeWithKeeper([entry()]);
  node.mayRead();
  await node.setSecret(MARK);
  node.start();
  await node.holds(MARK);
  await writeFile(node.fake.path(PATH), `${MARK} spoilt`);
  await node.holds(MARK);
  const [event] = await node.told('CertificateRestored');
  expect(event?.message).toMatch(/^\/etc\/pki\/drydock\/ca\.pem was not as ca\.crt of Secret drydock\/ca says/);
  await rm(dirname(node.fake.path(PATH)), { recursive: true });
  await node.holds(MARK);
  const logged = JSON.stringify([node.logger.info.mock.calls, node.logger.warn.mock.calls, await node.events()]);
  expect(logged).toContain(PATH);
  expect(logged).not.toContain(MARK);
  expect(logged).not.toContain(Buffer.from(MARK).toString('base64'));
});

it('fights for a file ever more seldom, and still follows news at once', async () => {
  const node = await nodeWithKeeper([entry()]);
  node.mayRead();
  await node.setSecret('one');
  node.start({ firstRest: 10, longestRest: 60_000 });
  await node.holds('one');
  const peace = new AbortController();
  const fighting = (async () => {
    while (!peace.signal.aborted) {
      await writeFile(node.fake.path(PATH), 'theirs');
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
  })();
  await new Promise((resolve) => setTimeout(resolve, 600));
  const restored = node.logger.warn.mock.calls.length;
  expect(restored).toBeGreaterThan(1);
  // 10 ms and doubled each time: no more than seven fit.
  expect(restored).toBeLessThan(9);
  peace.abort();
  await fighting;
  await node.setSecret('two');
  await node.holds('two');
});

it('waits while an update is open or the host is held, and then does what is due', async () => {
  const node = await nodeWithKeeper([entry()]);
  node.mayRead();
  await node.setSecret('one');
  node.start({ retry: 60_000 });
  await node.holds('one');
  // Applied, and not yet confirmed.
  await node.bring(rendered('rendered-worker-2', { storage: { files: [file('/etc/next', 'x')] } }));
  const release = await held(node.fake.host);
  await node.setSecret('two');
  await new Promise((resolve) => setTimeout(resolve, 100));
  expect(await node.onDisk()).toBe('one');
  await node.fake.store.removeJournal();
  await new Promise((resolve) => setTimeout(resolve, 100));
  expect(await node.onDisk()).toBe('one');
  await release();
  await node.holds('two');
});

it('keeps a file whose Secret is gone, empty or without the key, tells each reason once, and goes on', async () => {
  const node = await nodeWithKeeper([entry(), entry('/etc/pki/other', { key: 'other' })]);
  node.mayRead();
  await node.setSecret('one');
  node.start();
  await node.holds('one');
  expect(await node.told('CertificateProblem')).toMatchObject([{ type: 'Warning', count: 1 }]);
  await soon(() => expect(node.problems.at(-1)).toBe(1));
  await node.setSecret(undefined);
  await soon(() => expect(node.problems.at(-1)).toBe(2));
  await node.cluster.delete(KINDS.secret, SECRET);
  await soon(async () =>
    expect((await node.events()).map(({ message }) => message).join()).toContain('there is no Secret drydock/ca'),
  );
  expect(await node.onDisk()).toBe('one');
  for (const { count } of await node.events()) expect(count).toBe(1);
  await node.name([entry()]);
  await node.setSecret('two');
  await node.holds('two');
  await soon(() => expect(node.problems.at(-1)).toBe(0));
});

it('tells of a Secret that it may not read, if that lasts', async () => {
  const node = await nodeWithKeeper([entry()]);
  await node.setSecret('one');
  node.start();
  const [event] = await node.told('CertificateProblem');
  expect(event?.message).toMatch(/may not read Secret drydock\/ca .*; see the status of the ControllerConfig/);
  expect(await node.onDisk()).toBeUndefined();
});

it('tells what is in the way on the disk, and goes on once that is gone', async () => {
  const node = await nodeWithKeeper([entry(), entry('/etc/pki/other')]);
  node.mayRead();
  await node.setSecret('one');
  await mkdir(node.fake.path(PATH), { recursive: true });
  node.start();
  const [event] = await node.told('CertificateProblem');
  expect(event?.message).toBe(`${PATH}: is a directory on this host; move it away, or choose another path`);
  await node.holds('one', '/etc/pki/other');
  await rm(node.fake.path(PATH), { recursive: true });
  await node.holds('one');
  await soon(() => expect(node.problems.at(-1)).toBe(0));
});

it('puts back what was there when the entry goes, and when the ControllerConfig goes', async () => {
  const node = await nodeWithKeeper([entry(), entry('/etc/motd')]);
  node.mayRead();
  await node.setSecret('one');
  node.start();
  await node.holds('one', '/etc/motd');
  await node.name([entry()]);
  await node.holds('A machine of the lab.\n', '/etc/motd');
  expect(await node.onDisk()).toBe('one');
  await node.cluster.delete(flavour.controllerConfig, { name: CONTROLLER_CONFIG_NAME });
  await node.holds(undefined);
  await soon(async () => expect(await readdir(node.fake.path('/etc'))).not.toContain('pki'));
});

it('puts nothing back because it cannot read the ControllerConfig', async () => {
  const node = await nodeWithKeeper([entry()]);
  node.mayRead();
  await node.setSecret('one');
  const keeper = node.start();
  await node.holds('one');
  await keeper.stop();
  await node.cluster.delete(KINDS.clusterRoleBinding, { name: 'pool' });
  node.start();
  await new Promise((resolve) => setTimeout(resolve, 150));
  expect(await node.onDisk()).toBe('one');
});

it('leaves to the config what that manages, and is no drift itself', async () => {
  const node = await nodeWithKeeper([entry('/etc/managed'), entry()], {
    storage: { files: [file('/etc/managed', 'of the config')] },
  });
  node.mayRead();
  await node.setSecret('one');
  const monitor = await node.monitor();
  node.start();
  await node.holds('one');
  const [event] = await node.told('CertificateProblem');
  expect(event?.message).toMatch(/^\/etc\/managed: the rendered config of this node manages it, which wins/);
  expect(await node.onDisk('/etc/managed')).toBe('of the config');
  await monitor.check();
  expect([...node.drifts.values()].filter((value) => value !== 0)).toEqual([]);
  expect(node.annotations()[KEYS.state]).toBe('Done');
});

it('does nothing to a host for which nothing is named', async () => {
  const node = await nodeWithKeeper(undefined);
  await mkdir(node.fake.path('/etc/pki'));
  const before = await readdir(node.fake.path('/var/lib/drydock'));
  node.start();
  await soon(() => expect(node.problems).toContain(0));
  expect(await readdir(node.fake.path('/var/lib/drydock'))).toEqual(before);
});
