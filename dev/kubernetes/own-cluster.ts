import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { parse, stringify } from 'yaml';
import { z } from 'zod';
import type { LabKubernetes } from '../kubernetes.js';
import type { Supervisor } from '../processes/supervisor.js';
import { waitUntil } from '../processes/wait-until.js';
import type { LabSettings } from '../settings.js';
import type { Log } from '../tools/cache.js';
import { ensureKwok, findOnPath } from '../tools/kubernetes-tools.js';
import { LabApi } from './api.js';
import { formatKwokConfig, kwokArguments, type KubeletTiming } from './kubelets.js';
import { createNodes, switchKubelet } from './nodes.js';

export interface OwnCluster {
  readonly supervisor: Supervisor;
  /** The user's file: read, never written. */
  readonly kubeconfig: string;
  readonly timing: KubeletTiming;
  readonly settings: LabSettings;
  readonly log: Log;
}

/**
 * A cluster of the user's own (kind, minikube) as the lab's Kubernetes: only kwok is started, for the Nodes that the lab
 * creates. Node identities are had by impersonation, so the user of the kubeconfig must be an administrator. How fast a
 * Node becomes NotReady is the cluster's own setting. Nodes that were created stay when the lab ends.
 */
export async function useCluster(cluster: OwnCluster): Promise<LabKubernetes> {
  const { supervisor, timing } = cluster;
  const config = await readKubeconfig(cluster.kubeconfig);
  const api = new LabApi(config.credentials);
  const ready = async () => (await api.call('GET', '/readyz')) === 'ok';
  const waitUntilReady = async () => {
    await waitUntil(ready, { what: `the cluster of ${cluster.kubeconfig}`, timeoutMs: 20_000 });
  };
  await waitUntilReady();
  const directory = join(supervisor.directory, 'kubeconfigs');
  await mkdir(directory, { recursive: true });
  const write = async (name: string, content: object) => {
    const file = join(directory, `${encodeURIComponent(name)}.kubeconfig`);
    await writeFile(file, stringify(content, { lineWidth: 0 }), { mode: 0o600 });
    return file;
  };
  const kubeconfigPath = await write('admin', config.content);
  const kwokConfig = join(directory, 'kwok.yaml');
  await writeFile(kwokConfig, formatKwokConfig());
  const kwok = await supervisor.run({
    id: 'kwok',
    command: await ensureKwok(cluster.settings, cluster.log),
    args: kwokArguments(kubeconfigPath, kwokConfig, timing),
  });
  const impersonate = (user: string, group?: string) => write(user, config.impersonating(user, group));
  return {
    server: config.credentials.server,
    kubeconfigPath,
    kubectl: (await findOnPath('kubectl')) ?? 'kubectl',
    processes: { kwok },
    nodeKubeconfig: (name) => impersonate(`system:node:${name}`, 'system:nodes'),
    userKubeconfig: impersonate,
    createNodes: (nodes) => createNodes({ api, etcdUrl: undefined }, nodes),
    stopKubelet: (node) => switchKubelet(api, node, false),
    startKubelet: (node) => switchKubelet(api, node, true),
    waitUntilReady,
  };
}

/** The API as the current user of a kubeconfig with certificates. */
export async function apiOf(kubeconfig: string): Promise<LabApi> {
  return new LabApi((await readKubeconfig(kubeconfig)).credentials);
}

const named = { name: z.string() };
const kubeconfigSchema = z.looseObject({
  'current-context': z.string(),
  contexts: z.array(z.looseObject({ ...named, context: z.looseObject({ cluster: z.string(), user: z.string() }) })),
  clusters: z.array(
    z.looseObject({
      ...named,
      cluster: z.looseObject({
        server: z.url(),
        'certificate-authority-data': z.string().optional(),
        'certificate-authority': z.string().optional(),
      }),
    }),
  ),
  users: z.array(
    z.looseObject({
      ...named,
      user: z.looseObject({
        'client-certificate-data': z.string().optional(),
        'client-certificate': z.string().optional(),
        'client-key-data': z.string().optional(),
        'client-key': z.string().optional(),
      }),
    }),
  ),
});

interface ReadKubeconfig {
  readonly credentials: ConstructorParameters<typeof LabApi>[0];
  /** The current context alone, with everything in it. */
  readonly content: object;
  impersonating(user: string, group?: string): object;
}

async function readKubeconfig(file: string): Promise<ReadKubeconfig> {
  const fail = (why: string): never => {
    throw new Error(`--kubeconfig ${file}: ${why}`);
  };
  const text = await readFile(file, 'utf8').catch(() => fail('cannot be read'));
  const parsed = kubeconfigSchema.safeParse(parse(text));
  if (!parsed.success) return fail(`is not a kubeconfig: ${z.prettifyError(parsed.error).replaceAll('\n', ' ')}`);
  const config = parsed.data;
  const current = config['current-context'];
  const context = config.contexts.find(({ name }) => name === current)?.context;
  const cluster = config.clusters.find(({ name }) => name === context?.cluster)?.cluster;
  const user = config.users.find(({ name }) => name === context?.user)?.user;
  if (cluster === undefined || user === undefined) return fail(`its current context ${current} is incomplete`);

  const load = async (data: string | undefined, path: string | undefined, what: string): Promise<string> => {
    if (data !== undefined) return data;
    if (path === undefined)
      return fail(`has no ${what}; the lab needs a client certificate, as kind and minikube give`);
    return readFile(resolve(dirname(file), path), 'base64');
  };
  const authority = await load(
    cluster['certificate-authority-data'],
    cluster['certificate-authority'],
    'certificate authority',
  );
  const certificate = await load(user['client-certificate-data'], user['client-certificate'], 'client certificate');
  const key = await load(user['client-key-data'], user['client-key'], 'client key');
  const decode = (data: string) => Buffer.from(data, 'base64').toString('utf8');
  const content = (as: object) => ({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'own', cluster: { server: cluster.server, 'certificate-authority-data': authority } }],
    users: [{ name: 'own', user: { 'client-certificate-data': certificate, 'client-key-data': key, ...as } }],
    contexts: [{ name: 'own', context: { cluster: 'own', user: 'own' } }],
    'current-context': 'own',
  });
  return {
    credentials: {
      server: cluster.server,
      authority: decode(authority),
      client: { certificate: decode(certificate), key: decode(key) },
    },
    content: content({}),
    impersonating: (name, group) =>
      content({ as: name, 'as-groups': [group ?? 'system:authenticated', 'system:authenticated'] }),
  };
}
