import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { RunProgram } from '../../../activities/host/run-program.js';
import { findNodeKubeconfig } from '../../../workers/credentials.js';

let root: string;
const run: RunProgram = () => Promise.resolve({ code: 1, stdout: '', stderr: '' });
const find = () => findNodeKubeconfig({ root, run });

async function put(path: string, text = '{}'): Promise<void> {
  await mkdir(dirname(join(root, path)), { recursive: true });
  await writeFile(join(root, path), text);
}

beforeEach(async () => (root = await mkdtemp(join(tmpdir(), 'drydock-credentials-'))));
afterEach(() => rm(root, { recursive: true, force: true }));

test.each([
  ['kubeadm', '/etc/kubernetes/kubelet.conf'],
  ['K3s', '/var/lib/rancher/k3s/agent/kubelet.kubeconfig'],
  ['RKE2', '/var/lib/rancher/rke2/agent/kubelet.kubeconfig'],
  ['OpenShift', '/var/lib/kubelet/kubeconfig'],
])("the kubelet's kubeconfig of %s is found", async (_, path) => {
  await put(path);
  expect(await find()).toBe(path);
});

test('what the running kubelet is told comes before the usual places', async () => {
  await put('/etc/kubernetes/kubelet.conf');
  await put('/srv/own.conf');
  await put('proc/5/cmdline', ['/usr/local/bin/kubelet', '--kubeconfig', '/srv/own.conf', ''].join('\0'));
  expect(await find()).toBe('/srv/own.conf');
});

test('where the kubelet is told of a file that is not there, the usual places count', async () => {
  await put('/etc/kubernetes/kubelet.conf');
  await put('proc/5/cmdline', ['/usr/local/bin/kubelet', '--kubeconfig=/srv/gone.conf', ''].join('\0'));
  expect(await find()).toBe('/etc/kubernetes/kubelet.conf');
});

test('where there is none, one line says where was looked and what to set', async () => {
  const error = await find().catch((thrown: unknown) => thrown);
  expect(String(error)).toMatch(
    /^Error: no kubeconfig of a kubelet on this host: looked for \/etc\/kubernetes\/kubelet\.conf, .*set DRYDOCK_KUBECONFIG/,
  );
  expect(String(error)).not.toContain('\n');
});
