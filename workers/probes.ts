import { get } from 'node:http';
import type { NativeConnection } from '@temporalio/worker';
import { KINDS, type KubernetesClient } from '../activities/kubernetes/client.js';
import { failedWith } from '../activities/kubernetes/failures.js';
import type { Probes } from '../activities/node/guard.js';

/** Where the kubelet tells its health by default. */
export const KUBELET_HEALTHZ = 'http://127.0.0.1:10248/healthz';
const PROBE_TIMEOUT_MS = 5_000;

export interface ProbeTargets {
  readonly client: KubernetesClient;
  readonly node: string;
  /** Undefined: no connection has been made yet. */
  readonly temporal: () => NativeConnection | undefined;
  readonly kubeletHealthz?: string;
}

/** What the guard looks at, on a real host. */
export function hostProbes({ client, node, temporal, kubeletHealthz = KUBELET_HEALTHZ }: ProbeTargets): Probes {
  const apiServer = () => answers(() => client.get(KINDS.node, { name: node }));
  const temporalAnswers = async () => {
    const connection = temporal();
    if (connection === undefined) return false;
    try {
      await connection.withDeadline(Date.now() + PROBE_TIMEOUT_MS, () => connection.workflowService.getSystemInfo({}));
      return true;
    } catch {
      return false;
    }
  };
  return {
    kubelet: () => isWell(kubeletHealthz),
    apiServer,
    network: async () => (await temporalAnswers()) || (await apiServerRefuses(client, node)),
    temporal: temporalAnswers,
  };
}

/** True for every answer of the API server, also one that says no. */
async function answers(call: () => Promise<unknown>): Promise<boolean> {
  try {
    await call();
    return true;
  } catch (error) {
    return !failedWith(error, 'ApiUnavailable');
  }
}

/** The machine of the API server answers, only nobody listens there: the network is well. */
async function apiServerRefuses(client: KubernetesClient, node: string): Promise<boolean> {
  try {
    await client.get(KINDS.node, { name: node });
    return true;
  } catch (error) {
    return isAnswer(error);
  }
}

const ANSWERS = new Set(['ECONNREFUSED', 'ECONNRESET', 'UND_ERR_SOCKET']);

function isAnswer(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  if ('code' in error && ANSWERS.has(String(error.code))) return true;
  if (error instanceof AggregateError && error.errors.some(isAnswer)) return true;
  return isAnswer(error.cause);
}

function isWell(url: string): Promise<boolean> {
  return new Promise((resolve) => {
    const request = get(url, { timeout: PROBE_TIMEOUT_MS }, (response) => {
      response.resume();
      resolve(response.statusCode === 200);
    });
    request.once('timeout', () => request.destroy(new Error('no answer')));
    request.once('error', () => resolve(false));
  });
}
