import { randomBytes } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import { request, type RequestOptions } from 'node:https';
import { join } from 'node:path';
import { KINDS, type KubernetesObject } from '../../../activities/kubernetes/client.js';
import { createKubernetesClient } from '../../../activities/kubernetes/rest.js';
import { install } from '../../../client/install.js';
import { IGNITION_USER } from '../../../client/install/first-boot.js';
import { apiFlavour, apiVersionOf } from '../../../machine-config/api/flavour.js';
import {
  BOOTSTRAP_TOKEN_NAMESPACE,
  bootstrapTokenSecretName,
  TOKEN_TIMES,
  tokenFields,
} from '../../../machine-config/first-boot/bootstrap-token.js';
import { renderedName } from '../../../machine-config/render/name.js';
import { startIgnitionServer, type LabIgnitionServer } from '../../ignition/ignition-server.js';
import { startLab, type Lab } from '../../lab.js';
import { waitUntil } from '../../processes/wait-until.js';
import type { Log } from '../../tools/cache.js';
import { watchProcesses } from '../rollout/process-use.js';
import type { IgnitionBenchOptions } from './options.js';

const flavour = apiFlavour('openshift');
const ACCEPT = { accept: 'application/vnd.coreos.ignition+json;version=3.5.0' };
const PREPARED_TIMEOUT_MS = 60_000;

export interface IgnitionMeasured {
  readonly clients: number;
  readonly requests: number;
  /** Of one answer. */
  readonly servedBytes: number;
  readonly requestsPerSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly failed: number;
  /** Of the server, in MB. */
  readonly idleMemory: number;
  readonly peakMemory: number;
  readonly cpuSeconds: number;
}

/**
 * The real server over a real API server; every request is a connection of its own, with its handshake, as machines make
 * them. The clients run on the same processors, so the server alone could do more.
 */
export async function measureIgnition(options: IgnitionBenchOptions, log: Log): Promise<IgnitionMeasured> {
  const lab = await startLab({ temporal: false, log });
  try {
    const server = await startServer(lab, options, log);
    const memory = await (await watchProcesses([server.process.pid]))();
    const { size: servedBytes } = await fetchOnce(server);
    log(`${options.clients} machines fetch ${servedBytes} bytes, ${options.rounds} times`);
    const used = await watchProcesses([server.process.pid]);
    const began = performance.now();
    const all = await Promise.all(Array.from({ length: options.clients }, () => machine(server, options.rounds)));
    const seconds = (performance.now() - began) / 1000;
    const { cpuSeconds, peakResident } = await used();
    const answers = all.flat();
    const times = answers.map(({ milliseconds }) => milliseconds).sort((one, other) => one - other);
    const at = (share: number) => Math.round(times[Math.min(times.length - 1, Math.floor(times.length * share))] ?? 0);
    return {
      clients: options.clients,
      requests: answers.length,
      servedBytes,
      requestsPerSecond: Math.round((answers.length / seconds) * 10) / 10,
      p50Ms: at(0.5),
      p99Ms: at(0.99),
      failed: answers.filter(({ size }) => size !== servedBytes).length,
      idleMemory: memory.peakResident,
      peakMemory: peakResident,
      cpuSeconds: Math.round(cpuSeconds * 10) / 10,
    };
  } finally {
    await lab.stop();
  }
}

export function describeIgnition(measured: IgnitionMeasured): string {
  const { clients, requests, servedBytes, requestsPerSecond, p50Ms, p99Ms, failed } = measured;
  const { idleMemory, peakMemory, cpuSeconds } = measured;
  return [
    `${clients} machines at once, ${requests} requests of ${(servedBytes / 1024 / 1024).toFixed(2)} MiB over TLS, a connection each`,
    `requests per second  ${requestsPerSecond}`,
    `p50                  ${p50Ms} ms`,
    `p99                  ${p99Ms} ms`,
    `failed               ${failed}`,
    `memory               ${Math.round(peakMemory)} MB at most, ${Math.round(idleMemory)} MB before`,
    `processor            ${cpuSeconds} s`,
  ].join('\n');
}

async function startServer(lab: Lab, { size }: IgnitionBenchOptions, log: Log): Promise<LabIgnitionServer> {
  const client = createKubernetesClient({ kubeconfigPath: lab.kubernetes.kubeconfigPath });
  try {
    await install({ client, flavour, nodeExistsPolicy: 'run', ignitionUser: IGNITION_USER });
    // The contents of files cannot be packed, as keys and archives cannot.
    const contents = randomBytes(Math.floor((size * 3) / 4)).toString('base64');
    const files = [{ path: '/srv/contents', contents: { source: `data:;base64,${contents}` }, overwrite: true }];
    const spec = { config: { ignition: { version: '3.4.0' }, storage: { files } } };
    const name = renderedName('worker', spec);
    const pool = await client.get(flavour.machineConfigPool, { name: 'worker' });
    const owner = { apiVersion: apiVersionOf(flavour.machineConfigPool), kind: 'MachineConfigPool', name: 'worker' };
    const ownerReferences = [{ ...owner, uid: pool.metadata.uid ?? '', controller: true }];
    await client.create(flavour.machineConfig, { metadata: { name, ownerReferences }, spec } as KubernetesObject);
    await client.patch(flavour.machineConfigPool, { name: 'worker' }, { spec: { configuration: { name } } });
    const fields = Object.entries(tokenFields('drydka', '0123456789abcdef', Date.now() + TOKEN_TIMES.lastsMs));
    const data = Object.fromEntries(fields.map(([key, value]) => [key, Buffer.from(value).toString('base64')]));
    const secret = { namespace: BOOTSTRAP_TOKEN_NAMESPACE, name: bootstrapTokenSecretName('drydka') };
    await client.patch(KINDS.secret, secret, { data });
  } finally {
    await client.close();
  }
  const folder = join(lab.directory, 'packages');
  await mkdir(folder);
  await writeFile(join(folder, 'node.tar.gz'), 'not what is measured');
  const server = await startIgnitionServer(lab, {
    nodePackage: join(folder, 'node.tar.gz'),
    nodeEnvironment: { TEMPORAL_ADDRESS: '127.0.0.1:7233' },
    environment: { DRYDOCK_REQUESTS_PER_MINUTE: '0', DRYDOCK_LOG_LEVEL: 'warn' },
  });
  log('the config is being prepared');
  await waitUntil(async () => (await server.get('/config/worker', ACCEPT)).status === 200, {
    what: 'the config to be given out',
    timeoutMs: PREPARED_TIMEOUT_MS,
    check: () => server.process.assertRunning(),
  });
  return server;
}

/** The length of the answer, which is thrown away: the clients shall take as little of the processor as they can. */
function countBytes(url: string, options: RequestOptions): Promise<number> {
  return new Promise((resolve, reject) => {
    const call = request(url, { agent: false, ...options }, (response) => {
      let size = 0;
      response.on('data', (piece: Buffer) => (size += piece.length));
      response.once('error', reject);
      response.once('end', () => resolve(response.statusCode === 200 ? size : 0));
    });
    call.once('error', reject);
    call.end();
  });
}

interface Fetched {
  readonly milliseconds: number;
  /** Zero where there was no answer, or another than the config. */
  readonly size: number;
}

async function machine(server: LabIgnitionServer, rounds: number): Promise<Fetched[]> {
  const fetched: Fetched[] = [];
  for (let round = 0; round < rounds; round += 1) fetched.push(await fetchOnce(server));
  return fetched;
}

async function fetchOnce(server: LabIgnitionServer): Promise<Fetched> {
  const began = performance.now();
  const size = await countBytes(`${server.url}/config/worker`, { ca: server.authority, headers: ACCEPT }).catch(
    () => 0,
  );
  return { milliseconds: performance.now() - began, size };
}
