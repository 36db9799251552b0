import { randomBytes } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { renewBootstrapToken } from '../../activities/cluster/bootstrap-token.js';
import { KINDS, type KubernetesObject } from '../../activities/kubernetes/client.js';
import { createKubernetesClient, type ClosableKubernetesClient } from '../../activities/kubernetes/rest.js';
import { install } from '../../client/install.js';
import { IGNITION_USER } from '../../client/install/first-boot.js';
import { CONTROL_USER } from '../../client/install/rbac.js';
import { startIgnitionServer, type LabIgnitionServer } from '../../dev/ignition/ignition-server.js';
import { startLab, type Lab } from '../../dev/lab.js';
import { waitUntil } from '../../dev/processes/wait-until.js';
import { apiFlavour } from '../../machine-config/api/flavour.js';
import type { IgnitionConfig } from '../../machine-config/ignition/config.js';
import { fileContents } from '../../machine-config/ignition/contents.js';
import { renderedConfig } from '../support/served-first-boot.js';

const flavour = apiFlavour('openshift');
const ACCEPT = { accept: 'application/vnd.coreos.ignition+json;version=3.5.0' };
const WAIT_MS = 60_000;
const forbidden = expect.objectContaining({ type: 'Forbidden' }) as Error;

describe('the Ignition server over a real API server', () => {
  let lab: Lab;
  let admin: ClosableKubernetesClient;
  let control: ClosableKubernetesClient;
  let server: LabIgnitionServer;
  let cluster: string;

  const motd = (text: string) =>
    renderedConfig(flavour, 'worker', {
      storage: { files: [{ path: '/etc/motd', contents: { source: `data:,${text}` } }] },
    });
  async function give(text: string): Promise<void> {
    const config = motd(text);
    await admin.create(flavour.machineConfig, config);
    const { name } = config.metadata;
    await admin.patch(flavour.machineConfigPool, { name: 'worker' }, { spec: { configuration: { name } } });
  }
  const served = async (path: string): Promise<string> => {
    const { status, body } = await server.get('/config/worker', ACCEPT);
    if (status !== 200) throw new Error(`${status}: ${body.toString()}`);
    const { storage } = JSON.parse(body.toString()) as IgnitionConfig;
    const found = storage?.files?.find((file) => file.path === path);
    return found === undefined ? '' : Buffer.from(fileContents(found)).toString();
  };
  const isServed = (text: string) =>
    waitUntil(async () => (await served('/etc/motd')) === text, {
      what: `${text} to be given out`,
      timeoutMs: WAIT_MS,
    });
  const readyz = async () => {
    const { status, body } = await server.get('/readyz');
    return { status, ...(JSON.parse(body.toString()) as { stale: boolean; reason: string }) };
  };

  beforeAll(async () => {
    lab = await startLab({ temporal: false });
    const { kubernetes } = lab;
    admin = createKubernetesClient({ kubeconfigPath: kubernetes.kubeconfigPath });
    await install({ client: admin, flavour, nodeExistsPolicy: 'run', ignitionUser: IGNITION_USER });
    control = createKubernetesClient({ kubeconfigPath: await kubernetes.userKubeconfig(CONTROL_USER) });
    cluster = (await admin.get(KINDS.namespace, { name: 'kube-system' })).metadata.uid ?? '';
    const nodePackage = join(lab.directory, 'node.tar.gz');
    await writeFile(nodePackage, randomBytes(1000));
    server = await startIgnitionServer(lab, { nodePackage, nodeEnvironment: { TEMPORAL_ADDRESS: 'temporal:7233' } });
    await give('first');
  });
  afterAll(async () => {
    await Promise.all([admin.close(), control.close()]);
    await lab.stop();
  });
  const renew = () => renewBootstrapToken({ client: control, cluster, now: Date.now }, { cluster });

  it('waits for a token, which the control worker writes with its own rights, and a machine can sign in with', async () => {
    await waitUntil(async () => (await readyz()).reason.includes('no pool yet'), {
      what: 'the server to wait',
      timeoutMs: WAIT_MS,
    });
    expect((await server.get('/config/worker', ACCEPT)).status).toBe(503);
    expect(await renew()).toMatchObject({ outcome: 'renewed' });
    await isServed('first');
    expect(await readyz()).toMatchObject({ status: 200, stale: false, reason: 'ok' });
    expect(await renew()).toMatchObject({ outcome: 'kept' });

    const kubeconfigPath = join(lab.directory, 'bootstrap.kubeconfig');
    await writeFile(kubeconfigPath, await served('/etc/kubernetes/bootstrap-kubelet.conf'));
    const machine = createKubernetesClient({ kubeconfigPath });
    const review = { metadata: { name: '' } } as KubernetesObject;
    const { status } = (await machine.create(KINDS.selfSubjectReview, review)) as KubernetesObject & {
      status?: { userInfo: { username: string; groups: string[] } };
    };
    expect(status?.userInfo.username).toMatch(/^system:bootstrap:drydk[ab]$/);
    expect(status?.userInfo.groups).toContain('system:bootstrappers:kubeadm:default-node-token');
    await machine.close();
  });

  it('may read what it gives out, and neither other Secrets nor change anything', async () => {
    const kubeconfigPath = await lab.kubernetes.userKubeconfig(IGNITION_USER);
    const own = createKubernetesClient({ kubeconfigPath });
    const token = { namespace: 'kube-system', name: 'bootstrap-token-drydka' };
    expect((await own.get(KINDS.secret, token)).metadata.name).toBe(token.name);
    await expect(own.list(KINDS.secret, { namespace: 'kube-system' })).rejects.toEqual(forbidden);
    await expect(own.patch(KINDS.secret, token, { data: { x: '' } })).rejects.toEqual(forbidden);
    await expect(own.list(KINDS.node)).rejects.toEqual(forbidden);
    await expect(own.patch(flavour.machineConfigPool, { name: 'worker' }, { spec: { paused: true } })).rejects.toEqual(
      forbidden,
    );
    await own.close();
    // The control worker renews tokens and reads no other Secret, and makes none.
    await expect(control.list(KINDS.secret, { namespace: 'kube-system' })).rejects.toEqual(forbidden);
    const secret = { metadata: { namespace: 'kube-system', name: 'another' } };
    await expect(control.create(KINDS.secret, secret)).rejects.toEqual(forbidden);
  });

  it('gives out what it knew while the API server is away, says so, and goes on when it is back', async () => {
    const { apiServer } = lab.kubernetes.processes;
    await apiServer!.kill('SIGKILL');
    await waitUntil(async () => (await readyz()).stale, { what: 'the outage to be seen', timeoutMs: WAIT_MS });
    const away = await readyz();
    expect(away.status).toBe(200);
    expect(away.reason).toMatch(/^the API server is away \(.*\); the last known configs are given out$/);
    expect(await served('/etc/motd')).toBe('first');
    expect((await server.get('/metrics')).body.toString()).toContain('drydock_ignition_stale 1');

    await apiServer!.restart();
    await lab.kubernetes.waitUntilReady();
    await give('second');
    await isServed('second');
    await waitUntil(async () => !(await readyz()).stale, { what: 'the end of the outage', timeoutMs: WAIT_MS });
  });

  it('ends in order, and at once', async () => {
    const began = Date.now();
    await server.process.stop(20_000);
    expect(Date.now() - began).toBeLessThan(10_000);
    await expect(server.get('/healthz')).rejects.toThrow();
  });
});
