import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { apiOf } from '../../dev/kubernetes/own-cluster.js';
import { ApiStatusError, type Method } from '../../dev/kubernetes/api.js';

const run = promisify(execFile);

/** One call as the user of a kubeconfig: the status, and the object or the reason. */
export async function call(
  kubeconfig: string,
  method: Method,
  path: string,
  body?: object,
): Promise<{ status: number; body: unknown }> {
  const api = await apiOf(kubeconfig);
  try {
    return { status: 200, body: await api.call(method, path, body) };
  } catch (error) {
    if (error instanceof ApiStatusError) return { status: error.status, body: error.message };
    throw error;
  } finally {
    api.close();
  }
}

export interface NodeView {
  metadata: { creationTimestamp: string; annotations?: Record<string, string>; labels: Record<string, string> };
  spec: { unschedulable?: boolean };
  status: { nodeInfo: { bootID: string }; conditions?: { type: string; status: string }[] };
}

export async function getNode(kubeconfig: string, name: string): Promise<NodeView> {
  return (await call(kubeconfig, 'GET', `/api/v1/nodes/${name}`)).body as NodeView;
}

export async function readyOf(kubeconfig: string, name: string): Promise<string | undefined> {
  return (await getNode(kubeconfig, name)).status.conditions?.find(({ type }) => type === 'Ready')?.status;
}

/** Pids of all processes whose command line names the text. */
export async function pidsNaming(text: string): Promise<number[]> {
  const { stdout } = await run('ps', ['-eo', 'pid=,args='], { maxBuffer: 16 * 1024 * 1024 });
  const lines = stdout.split('\n').filter((line) => line.includes(text));
  return lines.map((line) => Number.parseInt(line, 10));
}
