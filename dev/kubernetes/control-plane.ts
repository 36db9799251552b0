import { mkdir, writeFile } from 'node:fs/promises';
import { request } from 'node:http';
import { join } from 'node:path';
import { findFreePorts } from '../processes/free-ports.js';
import type { LabProcess, Supervisor } from '../processes/supervisor.js';
import { waitUntil } from '../processes/wait-until.js';
import type { KubernetesTools } from '../tools/kubernetes-tools.js';
import { LabApi } from './api.js';
import { auditArguments } from './audit.js';
import { CertificateAuthority, ensureServiceAccountKey, type ClientIdentity } from './certificates.js';
import { formatKubeconfig, type Credentials } from './kubeconfig.js';
import { formatKwokConfig, kwokArguments, type KubeletTiming } from './kubelets.js';

export interface ControlPlane {
  readonly server: string;
  readonly etcdUrl: string;
  readonly authority: CertificateAuthority;
  /** As an administrator (system:masters). */
  readonly api: LabApi;
  readonly processes: ControlPlaneProcesses;
  /** Issues a certificate and writes a kubeconfig with it. @returns the file. */
  kubeconfigFor(identity: ClientIdentity, file: string): Promise<string>;
  waitUntilReady(): Promise<void>;
}

export interface ControlPlaneProcesses {
  readonly etcd: LabProcess;
  readonly apiServer: LabProcess;
  readonly controllerManager: LabProcess;
  readonly scheduler: LabProcess;
  readonly kwok: LabProcess;
}

export interface ControlPlaneStart {
  readonly supervisor: Supervisor;
  readonly tools: KubernetesTools;
  readonly timing: KubeletTiming;
  /** Every kind is stored as JSON, so that etcd can be read without the API server. */
  readonly storesJson?: boolean;
  /** Every request is logged; see audit.ts. */
  readonly audits?: boolean;
}

const SERVICE_RANGE = '10.96.0.0/16';
/** The first address of the range: what Pods would reach the API server by. */
const SERVICE_ADDRESS = '10.96.0.1';
const SERVER_NAMES = ['localhost', 'kubernetes', 'kubernetes.default', 'kubernetes.default.svc'];
/** On a busy machine; 4 s on an idle one. */
const READY_TIMEOUT_MS = 90_000;
/** Of the controller manager itself: a Node that has never been Ready is given this time. */
const STARTUP_GRACE_SECONDS = 60;
const ADMIN = { user: 'drydock-lab-admin', group: 'system:masters' };

interface Places {
  /** For keys, certificates, kubeconfigs and data. */
  readonly directory: string;
  readonly etcdPort: number;
  readonly etcdPeerPort: number;
  readonly apiPort: number;
  readonly controllerManagerPort: number;
  readonly schedulerPort: number;
}

/** etcd, kube-apiserver, kube-controller-manager, kube-scheduler and kwok, ready for use. */
export async function startControlPlane(start: ControlPlaneStart): Promise<ControlPlane> {
  const { supervisor, tools, timing } = start;
  const directory = join(supervisor.directory, 'kubernetes');
  await mkdir(directory, { recursive: true });
  const authority = await CertificateAuthority.open(directory);
  const places = await choosePlaces(directory);
  const server = `https://127.0.0.1:${places.apiPort}`;
  const credentialsOf = (identity: ClientIdentity): Credentials => ({
    server,
    authority: authority.certificate,
    client: authority.issueClient(identity),
  });
  const kubeconfigFor = async (identity: ClientIdentity, file: string) => {
    await mkdir(join(file, '..'), { recursive: true });
    await writeFile(file, formatKubeconfig(identity.user, credentialsOf(identity)), { mode: 0o600 });
    return file;
  };
  const componentConfig = (name: string, identity: ClientIdentity) =>
    kubeconfigFor(identity, join(directory, `${name}.kubeconfig`));

  const etcdUrl = `http://127.0.0.1:${places.etcdPort}`;
  const etcd = await supervisor.run({ id: 'etcd', command: tools.etcd, args: etcdArguments(places) });
  const api = new LabApi(credentialsOf(ADMIN));
  const [apiServerArgs] = await Promise.all([
    apiServerArguments(places, authority, etcdUrl),
    waitForEtcd(etcd, etcdUrl),
  ]);
  const storage = start.storesJson === true ? ['--storage-media-type=application/json'] : [];
  const audit = start.audits === true ? await auditArguments(supervisor.directory) : [];
  const apiServer = await supervisor.run({
    id: 'kube-apiserver',
    command: tools.kubeApiServer,
    args: [...apiServerArgs, ...storage, ...audit],
  });
  const [forManager, forScheduler, forKwok] = await Promise.all([
    componentConfig('controller-manager', { user: 'system:kube-controller-manager' }),
    componentConfig('scheduler', { user: 'system:kube-scheduler' }),
    componentConfig('kwok', { user: 'drydock-lab-kwok', group: 'system:masters' }),
    writeFile(join(directory, 'kwok.yaml'), formatKwokConfig()),
  ]);
  const waitUntilReady = () => waitForApi(apiServer, api);
  await waitUntilReady();
  // After the API server is ready: each of them would otherwise fail and wait first.
  const [controllerManager, scheduler, kwok] = await Promise.all([
    supervisor.run({
      id: 'kube-controller-manager',
      command: tools.kubeControllerManager,
      args: controllerManagerArguments(places, forManager, timing),
    }),
    supervisor.run({
      id: 'kube-scheduler',
      command: tools.kubeScheduler,
      args: schedulerArguments(places, forScheduler),
    }),
    supervisor.run({
      id: 'kwok',
      command: tools.kwok,
      args: kwokArguments(forKwok, join(directory, 'kwok.yaml'), timing),
    }),
  ]);
  await waitForControllers(controllerManager, api);
  const processes = { etcd, apiServer, controllerManager, scheduler, kwok };
  return { server, etcdUrl, authority, api, processes, kubeconfigFor, waitUntilReady };
}

async function choosePlaces(directory: string): Promise<Places> {
  const [etcdPort = 0, etcdPeerPort = 0, apiPort = 0, controllerManagerPort = 0, schedulerPort = 0] =
    await findFreePorts(5);
  return { directory, etcdPort, etcdPeerPort, apiPort, controllerManagerPort, schedulerPort };
}

function etcdArguments({ directory, etcdPort, etcdPeerPort }: Places): string[] {
  const url = `http://127.0.0.1:${etcdPort}`;
  const peerUrl = `http://127.0.0.1:${etcdPeerPort}`;
  return [
    `--data-dir=${join(directory, 'etcd')}`,
    '--name=lab',
    `--listen-client-urls=${url}`,
    `--advertise-client-urls=${url}`,
    `--listen-peer-urls=${peerUrl}`,
    `--initial-advertise-peer-urls=${peerUrl}`,
    `--initial-cluster=lab=${peerUrl}`,
    // A lab may be lost with the machine; killed processes lose nothing.
    '--unsafe-no-fsync',
    '--log-level=warn',
  ];
}

async function apiServerArguments(places: Places, authority: CertificateAuthority, etcdUrl: string): Promise<string[]> {
  const { directory, apiPort } = places;
  const serving = { key: join(directory, 'apiserver.key'), certificate: join(directory, 'apiserver.crt') };
  const issued = authority.issueServer('kube-apiserver', {
    dns: SERVER_NAMES,
    ip: ['127.0.0.1', SERVICE_ADDRESS],
  });
  await writeFile(serving.key, issued.key, { mode: 0o600 });
  await writeFile(serving.certificate, issued.certificate);
  const serviceAccountKey = await ensureServiceAccountKey(directory);
  return [
    `--etcd-servers=${etcdUrl}`,
    '--bind-address=127.0.0.1',
    '--advertise-address=127.0.0.1',
    '--endpoint-reconciler-type=none',
    `--secure-port=${apiPort}`,
    `--tls-cert-file=${serving.certificate}`,
    `--tls-private-key-file=${serving.key}`,
    `--client-ca-file=${join(directory, 'ca.crt')}`,
    '--authorization-mode=Node,RBAC',
    '--enable-admission-plugins=NodeRestriction',
    '--anonymous-auth=false',
    // With which machines join that have no certificate yet.
    '--enable-bootstrap-token-auth=true',
    '--allow-privileged=true',
    `--service-cluster-ip-range=${SERVICE_RANGE}`,
    '--service-account-issuer=https://kubernetes.default.svc',
    `--service-account-key-file=${serviceAccountKey}`,
    `--service-account-signing-key-file=${serviceAccountKey}`,
    '--profiling=false',
  ];
}

function controllerManagerArguments(places: Places, kubeconfig: string, { graceSeconds }: KubeletTiming): string[] {
  const { directory, controllerManagerPort } = places;
  // As in production a small part of the grace period; each look is at all Nodes.
  const monitorSeconds = Math.max(1, Math.floor(graceSeconds / 10));
  return [
    `--kubeconfig=${kubeconfig}`,
    '--authentication-skip-lookup=true',
    '--bind-address=127.0.0.1',
    `--secure-port=${controllerManagerPort}`,
    `--cert-dir=${join(directory, 'controller-manager')}`,
    '--leader-elect=false',
    `--root-ca-file=${join(directory, 'ca.crt')}`,
    `--cluster-signing-cert-file=${join(directory, 'ca.crt')}`,
    `--cluster-signing-key-file=${join(directory, 'ca.key')}`,
    `--service-account-private-key-file=${join(directory, 'service-account.key')}`,
    // As in production: each controller has the rights of its own service account.
    '--use-service-account-credentials=true',
    `--node-monitor-period=${monitorSeconds}s`,
    `--node-monitor-grace-period=${graceSeconds}s`,
    `--node-startup-grace-period=${Math.max(STARTUP_GRACE_SECONDS, graceSeconds)}s`,
    // The default of 20 requests a second holds up Deployments and evictions of many nodes at once.
    '--kube-api-qps=200',
    '--kube-api-burst=400',
    '--profiling=false',
  ];
}

function schedulerArguments({ directory, schedulerPort }: Places, kubeconfig: string): string[] {
  return [
    `--kubeconfig=${kubeconfig}`,
    '--authentication-skip-lookup=true',
    '--bind-address=127.0.0.1',
    `--secure-port=${schedulerPort}`,
    `--cert-dir=${join(directory, 'scheduler')}`,
    '--leader-elect=false',
    '--profiling=false',
  ];
}

async function waitForEtcd(etcd: LabProcess, url: string): Promise<void> {
  await waitUntil(() => isHealthy(`${url}/health`), {
    what: 'etcd to be ready',
    timeoutMs: READY_TIMEOUT_MS,
    check: () => etcd.assertRunning(),
  });
}

function isHealthy(url: string): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const call = request(url, { timeout: 2_000 }, (response) => {
      response.resume();
      response.once('end', () => resolve(response.statusCode === 200));
    });
    call.once('timeout', () => call.destroy(new Error('no answer')));
    call.once('error', reject);
    call.end();
  });
}

async function waitForApi(apiServer: LabProcess, api: LabApi): Promise<void> {
  await waitUntil(async () => (await api.call('GET', '/readyz')) === 'ok', {
    what: 'kube-apiserver to be ready',
    timeoutMs: READY_TIMEOUT_MS,
    check: () => apiServer.assertRunning(),
  });
}

/** Its service account is what Pods in a namespace wait for: once it is there, the controllers are at work. */
async function waitForControllers(controllerManager: LabProcess, api: LabApi): Promise<void> {
  await waitUntil(async () => (await api.call('GET', '/api/v1/namespaces/default/serviceaccounts/default')) !== '', {
    what: 'kube-controller-manager to be ready',
    timeoutMs: READY_TIMEOUT_MS,
    check: () => controllerManager.assertRunning(),
  });
}
