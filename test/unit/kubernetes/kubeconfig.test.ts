import { mkdirSync, mkdtempSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { ConnectionReader } from '../../../activities/kubernetes/kubeconfig.js';

let folder: string;
const file = (name: string, text: string): string => {
  writeFileSync(join(folder, name), text);
  return join(folder, name);
};

beforeEach(() => (folder = mkdtempSync(join(tmpdir(), 'drydock-kubeconfig-'))));
afterEach(() => rmSync(folder, { recursive: true }));

const base64 = (text: string): string => Buffer.from(text).toString('base64');

test('certificates come from data and from files beside the kubeconfig', async () => {
  file('client.crt', 'CERT');
  file('client.key', 'KEY');
  const path = file(
    'config',
    `
current-context: lab
clusters:
- name: c
  cluster: {server: 'https://10.0.0.1:6443/', certificate-authority-data: ${base64('CA')}, tls-server-name: api}
users:
- name: u
  user: {client-certificate: client.crt, client-key: client.key}
contexts:
- name: lab
  context: {cluster: c, user: u}
`,
  );
  expect(await new ConnectionReader({ kubeconfigPath: path }).read()).toEqual({
    server: 'https://10.0.0.1:6443',
    tls: { ca: 'CA', cert: 'CERT', key: 'KEY', servername: 'api' },
  });
});

const context = (name: string, server: string, user = 'u'): string =>
  JSON.stringify({
    'current-context': name,
    clusters: [{ name: `c-${name}`, cluster: { server } }],
    users: [{ name: user, user: { username: 'me', password: 'secret' } }],
    contexts: [{ name, context: { cluster: `c-${name}`, user } }],
  });

test('of several files the first current-context counts, and a context may be named', async () => {
  const kubeconfigPath = [file('one', context('one', 'https://one')), file('two', context('two', 'https://two', 'v'))];
  const first = await new ConnectionReader({ kubeconfigPath }).read();
  expect(first).toEqual({ server: 'https://one', tls: {}, authorization: `Basic ${base64('me:secret')}` });
  const second = await new ConnectionReader({ kubeconfigPath, context: 'two' }).read();
  expect(second.server).toBe('https://two');
});

test.each([
  [
    'what a context names and is not there',
    context('one', 'https://one'),
    'three',
    'contexts has no entry named "three"',
  ],
  ['no context at all', JSON.stringify({ clusters: [] }), undefined, 'no current-context'],
  ['a file that is no mapping', 'hello', undefined, 'not a kubeconfig'],
])('%s is said with the file', async (_, text, wanted, message) => {
  const kubeconfigPath = file('config', text);
  const reader = new ConnectionReader({ kubeconfigPath, ...(wanted === undefined ? {} : { context: wanted }) });
  await expect(reader.read()).rejects.toThrow(message);
  await expect(reader.read()).rejects.toThrow(kubeconfigPath);
});

test('the service account of a pod, rotated through its symbolic link', async () => {
  for (const [version, token] of Object.entries({ one: 'first\n', two: 'second\n' })) {
    mkdirSync(join(folder, version));
    file(`${version}/token`, token);
    file(`${version}/ca.crt`, 'CA');
  }
  const mount = join(folder, 'mount');
  symlinkSync(join(folder, 'one'), mount);
  const reader = new ConnectionReader({ inCluster: true, host: 'fd00::1', port: '443', mount });
  expect(await reader.read()).toEqual({
    server: 'https://[fd00::1]:443',
    tls: { ca: 'CA' },
    authorization: 'Bearer first',
  });
  expect(reader.isStale()).toBe(false);
  unlinkSync(mount);
  symlinkSync(join(folder, 'two'), mount);
  expect(reader.isStale()).toBe(true);
  expect((await reader.read()).authorization).toBe('Bearer second');
  expect(reader.isStale()).toBe(false);
});
