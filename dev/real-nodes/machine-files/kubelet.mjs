/**
 * Plays the kubelet on a machine of the lab, with the node's own identity: keeps its Node Ready and its Lease fresh, runs
 * and ends the Pods that are bound to it, answers health checks. Node built-ins only: it runs where nothing is installed.
 *
 * argv: --kubeconfig=FILE and --bootstrap-kubeconfig=FILE, as the kubelet of kubeadm takes them: where the first is not
 * there it joins with the second, and makes its Node. Other options are ignored. FAIL in the environment breaks
 * it, for tests in which a config breaks the kubelet.
 */
import { existsSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { Agent, request } from 'node:https';
import { hostname, networkInterfaces, release } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { bootstrap } from './kubelet-bootstrap.mjs';

const HEALTH_PORT = 10248;
/** The lab calls a Node dead after five seconds without a sign. */
const LEASE_EVERY_MS = 1000;
const STATUS_EVERY_MS = 5000;
const PODS_EVERY_MS = 400;
const RETRY_MS = 500;
const LEASE_SECONDS = 4;
const CALL_TIMEOUT_MS = 5000;

/** The lab's labels and annotations for Pods; see dev/kubernetes/kubelets.ts. */
const NEVER_READY_LABEL = 'drydock.dev/lab-never-ready';
const TERMINATION_ANNOTATION = 'drydock.dev/lab-termination';

if (process.env.FAIL) {
  console.error(`failed: FAIL=${process.env.FAIL} is set`);
  process.exit(1);
}

const node = hostname();
const option = (name) => process.argv.find((argument) => argument.startsWith(name))?.slice(name.length);
const kubeconfig = option('--kubeconfig=');
const bootstrapKubeconfig = option('--bootstrap-kubeconfig=');
const joins = !existsSync(kubeconfig) && existsSync(bootstrapKubeconfig ?? '');
if (joins) await bootstrap({ node, from: bootstrapKubeconfig, kubeconfig });
const api = connectTo(readKubeconfig(kubeconfig));
const bootID = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
const machineID = readFileSync('/etc/machine-id', 'utf8').trim();
const osImage = /^PRETTY_NAME="?([^"\n]*)/m.exec(readFileSync('/etc/os-release', 'utf8'))?.[1] ?? '';

/** Of the form that the lab writes, which is that of kubeadm: one cluster, one user, files for the client's keys. */
function readKubeconfig(file) {
  const text = readFileSync(file, 'utf8');
  const value = (key) => new RegExp(`^\\s*${key}: *"?([^"\\n]+)"?$`, 'm').exec(text)?.[1];
  return {
    server: value('server'),
    servername: value('tls-server-name'),
    ca: Buffer.from(value('certificate-authority-data'), 'base64'),
    cert: readFileSync(value('client-certificate')),
    key: readFileSync(value('client-key')),
  };
}

function connectTo({ server, ...tls }) {
  const agent = new Agent({ ...tls, keepAlive: true, maxSockets: 4 });
  return (method, path, body, type = 'application/json') =>
    new Promise((resolve, reject) => {
      const payload = body === undefined ? undefined : JSON.stringify(body);
      // Node.js sends the body of a DELETE without a length.
      const headers =
        payload === undefined ? {} : { 'content-type': type, 'content-length': Buffer.byteLength(payload) };
      const call = request(new URL(path, server), { method, agent, headers, timeout: CALL_TIMEOUT_MS }, (response) => {
        let text = '';
        response.setEncoding('utf8');
        response.on('data', (chunk) => (text += chunk));
        response.once('error', reject);
        response.once('end', () => {
          if (response.statusCode < 300) return resolve(JSON.parse(text));
          const error = new Error(`${method} ${path}: ${response.statusCode} ${text.slice(0, 300)}`);
          reject(Object.assign(error, { status: response.statusCode }));
        });
      });
      call.once('timeout', () => call.destroy(new Error(`${method} ${path}: no answer`)));
      call.once('error', reject);
      call.end(payload);
    });
}

const merge = (path, body) => api('PATCH', path, body, 'application/merge-patch+json');
const strategic = (path, body) => api('PATCH', path, body, 'application/strategic-merge-patch+json');

async function renewLease() {
  const path = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases';
  const renewTime = `${new Date().toISOString().slice(0, -1)}000Z`;
  const spec = { holderIdentity: node, leaseDurationSeconds: LEASE_SECONDS, renewTime };
  try {
    await merge(`${path}/${node}`, { spec });
  } catch (error) {
    if (error.status !== 404) throw error;
    const { metadata } = await api('GET', `/api/v1/nodes/${node}`);
    const ownerReferences = [{ apiVersion: 'v1', kind: 'Node', name: node, uid: metadata.uid }];
    const kind = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease' };
    await api('POST', path, { ...kind, metadata: { name: node, namespace: 'kube-node-lease', ownerReferences }, spec });
  }
}

/** Conditions are merged by their type, so that those of others stay. */
async function reportStatus() {
  const { status } = await api('GET', `/api/v1/nodes/${node}`);
  const now = new Date().toISOString();
  const conditions = [
    ['Ready', 'True', 'KubeletReady', 'kubelet is posting ready status'],
    ['MemoryPressure', 'False', 'KubeletHasSufficientMemory', 'kubelet has sufficient memory available'],
    ['DiskPressure', 'False', 'KubeletHasNoDiskPressure', 'kubelet has no disk pressure'],
    ['PIDPressure', 'False', 'KubeletHasSufficientPID', 'kubelet has sufficient PID available'],
  ].map(([type, value, reason, message]) => {
    const before = status?.conditions?.find((condition) => condition.type === type);
    const lastTransitionTime = before?.status === value ? before.lastTransitionTime : now;
    return { type, status: value, reason, message, lastHeartbeatTime: now, lastTransitionTime };
  });
  const address = networkInterfaces().host0?.find(({ family }) => family === 'IPv4')?.address;
  await strategic(`/api/v1/nodes/${node}/status`, {
    status: {
      conditions,
      addresses: [
        ...(address === undefined ? [] : [{ type: 'InternalIP', address }]),
        { type: 'Hostname', address: node },
      ],
      nodeInfo: { bootID, machineID, osImage, kernelVersion: release() },
    },
  });
}

async function playPods() {
  const { items } = await api('GET', `/api/v1/pods?fieldSelector=spec.nodeName%3D${node}&resourceVersion=0`);
  await Promise.all(items.map(playPod));
}

async function playPod(pod) {
  const { metadata, spec, status } = pod;
  const path = `/api/v1/namespaces/${metadata.namespace}/pods/${metadata.name}`;
  try {
    if (metadata.deletionTimestamp !== undefined) {
      if (!hasEnded(metadata)) return;
      await api('DELETE', path, { gracePeriodSeconds: 0, preconditions: { uid: metadata.uid } });
    } else if (['Succeeded', 'Failed'].includes(status.phase)) {
      return;
    } else if (metadata.ownerReferences?.some(({ kind }) => kind === 'Job') && status.phase === 'Running') {
      await strategic(`${path}/status`, { status: { phase: 'Succeeded' } });
    } else if (NEVER_READY_LABEL in (metadata.labels ?? {})) {
      if (status.phase === 'Pending') await strategic(`${path}/status`, { status: { phase: 'Running' } });
    } else if (!status.conditions?.some(({ type, status: value }) => type === 'Ready' && value === 'True')) {
      await strategic(`${path}/status`, { status: runningStatus(spec, status) });
    }
  } catch (error) {
    // Deleted or changed meanwhile: the next look at the list sees it.
    if (![404, 409].includes(error.status)) throw error;
  }
}

/** It takes as long as its annotation says (a Go duration in seconds), counted from when it was deleted. */
function hasEnded({ annotations, deletionTimestamp, deletionGracePeriodSeconds }) {
  const seconds = Number(/^(\d+)s$/.exec(annotations?.[TERMINATION_ANNOTATION] ?? '0s')?.[1] ?? 0);
  const deletedAt = Date.parse(deletionTimestamp) - (deletionGracePeriodSeconds ?? 0) * 1000;
  return Date.now() >= deletedAt + seconds * 1000;
}

function runningStatus({ containers }, { startTime }) {
  const now = new Date().toISOString();
  const types = ['PodReadyToStartContainers', 'Initialized', 'ContainersReady', 'Ready'];
  return {
    phase: 'Running',
    startTime: startTime ?? now,
    conditions: types.map((type) => ({ type, status: 'True', lastTransitionTime: now })),
    containerStatuses: containers.map(({ name, image }) => ({
      ...{ name, image, imageID: '', ready: true, started: true, restartCount: 0 },
      state: { running: { startedAt: now } },
    })),
  };
}

/** For ever: an API server that is away is tried again. */
async function keep(action, everyMs) {
  let said = '';
  for (;;) {
    try {
      await action();
      said = '';
      await sleep(everyMs);
    } catch (error) {
      if (error.message !== said) console.error(error.message);
      said = error.message;
      await sleep(RETRY_MS);
    }
  }
}

async function makeNode() {
  const labels = { 'kubernetes.io/hostname': node, 'kubernetes.io/os': 'linux' };
  await api('POST', '/api/v1/nodes', { apiVersion: 'v1', kind: 'Node', metadata: { name: node, labels } });
}

process.on('SIGTERM', () => process.exit(0));
createServer((_, response) => response.end('ok')).listen(HEALTH_PORT, '127.0.0.1');
console.log(`kubelet of ${node} in boot ${bootID}`);
if (joins) await makeNode();
void keep(renewLease, LEASE_EVERY_MS);
void keep(reportStatus, STATUS_EVERY_MS);
void keep(playPods, PODS_EVERY_MS);
