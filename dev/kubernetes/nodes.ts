import { randomUUID } from 'node:crypto';
import { request } from 'node:http';
import { waitUntil } from '../processes/wait-until.js';
import type { LabApi } from './api.js';
import { KUBELET_LABEL, KUBELET_RUNNING } from './kubelets.js';

/** A Node to create. */
export interface LabNode {
  readonly name: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly taints?: readonly { key: string; value?: string; effect: 'NoSchedule' | 'PreferNoSchedule' | 'NoExecute' }[];
  /**
   * Its age. The API server sets creationTimestamp itself and whole seconds are all it has, so this one is written into
   * etcd afterwards: nodes of any age at once, also of the same.
   */
  readonly createdAt?: Date;
  /** The boot ID it starts with; a random one if it is not given. */
  readonly bootId?: string;
  /** Whether kwok plays its kubelet (the default). Without, it never becomes Ready by itself. */
  readonly kubelet?: boolean;
  readonly capacity?: { cpu?: string; memory?: string; pods?: string };
}

export interface NodeMaker {
  readonly api: LabApi;
  /** Undefined on a cluster of the user's own: `createdAt` cannot be honoured there. */
  readonly etcdUrl: string | undefined;
}

const READY_TIMEOUT_MS = 60_000;

/** Creates the Nodes, in this order, and waits until those with a kubelet are Ready. */
export async function createNodes(maker: NodeMaker, nodes: readonly LabNode[]): Promise<void> {
  const dated = nodes.find(({ createdAt }) => createdAt !== undefined);
  if (dated !== undefined && maker.etcdUrl === undefined) {
    throw new Error(`node ${dated.name}: createdAt needs the lab's own etcd; leave it out on a cluster of your own`);
  }
  for (const node of nodes) await createNode(maker, node);
  for (const { name, kubelet } of nodes) if (kubelet !== false) await waitUntilReady(maker.api, name);
}

async function createNode({ api, etcdUrl }: NodeMaker, node: LabNode): Promise<void> {
  const { name } = node;
  await api.call('POST', '/api/v1/nodes', {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: {
      name,
      labels: {
        'kubernetes.io/hostname': name,
        'kubernetes.io/os': 'linux',
        'kubernetes.io/arch': 'amd64',
        ...node.labels,
      },
      annotations: node.annotations ?? {},
    },
    spec: { taints: node.taints ?? [] },
  });
  await api.call('PATCH', `/api/v1/nodes/${name}/status`, { status: initialStatus(node) });
  // Before the kubelet starts, so that nothing else writes the object meanwhile.
  if (node.createdAt !== undefined && etcdUrl !== undefined) await setCreationTime(api, etcdUrl, name, node.createdAt);
  if (node.kubelet !== false) await switchKubelet(api, name, true);
}

function initialStatus({ name, bootId, capacity }: LabNode): object {
  const resources = { cpu: '8', memory: '32Gi', pods: '110', ...capacity };
  return {
    capacity: resources,
    allocatable: resources,
    addresses: [
      { type: 'InternalIP', address: '127.0.0.1' },
      { type: 'Hostname', address: name },
    ],
    nodeInfo: {
      architecture: 'amd64',
      bootID: bootId ?? randomUUID(),
      containerRuntimeVersion: 'containerd://2.1.0',
      kernelVersion: '6.1.0',
      kubeProxyVersion: '',
      kubeletVersion: 'v1.34.4',
      machineID: randomUUID().replaceAll('-', ''),
      operatingSystem: 'linux',
      osImage: 'Drydock lab (kwok)',
      systemUUID: randomUUID(),
    },
  };
}

/**
 * Starts or stops a node's kubelet, as an administrator. Stopped, its Node is NotReady after the lab's grace period.
 * What a node does itself when it goes down and comes up is described in docs/lab.md.
 */
export async function switchKubelet(api: LabApi, name: string, running: boolean): Promise<void> {
  await api.call('PATCH', `/api/v1/nodes/${name}`, {
    metadata: { labels: { [KUBELET_LABEL]: running ? KUBELET_RUNNING : null } },
  });
}

interface NodeObject {
  metadata?: { creationTimestamp?: string; resourceVersion?: string };
  status?: { conditions?: { type: string; status: string }[] };
}

async function waitUntilReady(api: LabApi, name: string): Promise<void> {
  await waitUntil(
    async () => {
      const node = (await api.call('GET', `/api/v1/nodes/${name}`)) as NodeObject;
      return node.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True');
    },
    { what: `node ${name} to be Ready`, timeoutMs: READY_TIMEOUT_MS },
  );
}

/**
 * Rewrites the stored object with another creationTimestamp: the API server reads JSON from etcd as well as its own
 * encoding. Repeated while somebody else changes the object in between (etcd compares the revision).
 */
async function setCreationTime(api: LabApi, etcdUrl: string, name: string, createdAt: Date): Promise<void> {
  const key = encode(`/registry/minions/${name}`);
  await waitUntil(
    async () => {
      const node = (await api.call('GET', `/api/v1/nodes/${name}`)) as NodeObject;
      const { resourceVersion, ...metadata } = node.metadata ?? {};
      // The stored form carries no resourceVersion: it is etcd's own revision.
      const creationTimestamp = `${createdAt.toISOString().slice(0, 19)}Z`;
      const stored = { ...node, metadata: { ...metadata, creationTimestamp } };
      const answer = await postEtcd(etcdUrl, '/v3/kv/txn', {
        compare: [{ key, target: 'MOD', result: 'EQUAL', mod_revision: resourceVersion ?? '0' }],
        success: [{ request_put: { key, value: encode(JSON.stringify(stored)) } }],
      });
      return answer.succeeded === true;
    },
    { what: `the creation time of node ${name} to be set`, timeoutMs: 10_000 },
  );
  await waitUntil(
    async () => {
      const node = (await api.call('GET', `/api/v1/nodes/${name}?resourceVersion=0`)) as NodeObject;
      return Date.parse(node.metadata?.creationTimestamp ?? '') === Math.floor(createdAt.getTime() / 1000) * 1000;
    },
    { what: `the API server to show the creation time of node ${name}`, timeoutMs: 10_000 },
  );
}

function encode(text: string): string {
  return Buffer.from(text).toString('base64');
}

function postEtcd(server: string, path: string, body: object): Promise<{ succeeded?: boolean }> {
  return new Promise((resolve, reject) => {
    const call = request(new URL(path, server), { method: 'POST', timeout: 5_000 }, (response) => {
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (chunk: string) => (text += chunk));
      response.once('end', () => {
        if (response.statusCode === 200) resolve(JSON.parse(text) as { succeeded?: boolean });
        else reject(new Error(`etcd ${path}: ${response.statusCode ?? 0} ${text.trim()}`));
      });
    });
    call.once('timeout', () => call.destroy(new Error(`etcd ${path}: no answer in 5 s`)));
    call.once('error', reject);
    call.end(JSON.stringify(body));
  });
}
