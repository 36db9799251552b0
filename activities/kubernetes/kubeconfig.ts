import { readFileSync, statSync } from 'node:fs';
import { isIPv6 } from 'node:net';
import { dirname, resolve } from 'node:path';
import { parse } from 'yaml';

/** Where the API server and the credentials come from. Nothing is ever read from `~/.kube` unless it is named here. */
export type ClusterSource =
  | {
      /** One file, or several of which the first that has a name wins, as kubectl merges them. */
      readonly kubeconfigPath: string | readonly string[];
      /** Instead of the file's current-context. */
      readonly context?: string;
    }
  | {
      /** Finds the one file, each time that credentials are read: it may be there later, or elsewhere. */
      readonly findKubeconfig: () => Promise<string>;
    }
  | {
      /** The service account that Kubernetes mounts into a pod. */
      readonly inCluster: true;
      readonly host?: string;
      readonly port?: string;
      /** For tests: where the service account is mounted. */
      readonly mount?: string;
    };

export interface TlsSettings {
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
  readonly servername?: string;
  readonly rejectUnauthorized?: boolean;
}

/** All that is needed to call an API server. */
export interface Connection {
  /** Without a slash at the end. */
  readonly server: string;
  readonly tls: TlsSettings;
  readonly authorization?: string;
  readonly proxyUrl?: string;
}

interface NamedEntries {
  readonly cluster?: Record<string, unknown>;
  readonly user?: Record<string, unknown>;
  readonly context?: Record<string, unknown>;
}
type Entry = NamedEntries & { readonly name?: unknown };

interface KubeConfigFile {
  readonly path: string;
  readonly 'current-context'?: unknown;
  readonly clusters?: readonly Entry[];
  readonly users?: readonly Entry[];
  readonly contexts?: readonly Entry[];
}

/** Reads connections and remembers which files they were read from, so that a rotated credential is noticed. */
export class ConnectionReader {
  private readonly source: ClusterSource;
  private fingerprints = new Map<string, string>();

  constructor(source: ClusterSource) {
    this.source = source;
  }

  /** Rejects with an Error of one line that names the file and the missing entry. */
  async read(): Promise<Connection> {
    this.fingerprints = new Map();
    return 'inCluster' in this.source ? this.readServiceAccount(this.source) : this.readKubeConfig(this.source);
  }

  /** True if a file that the last read used has been replaced or rewritten since. */
  isStale(): boolean {
    return [...this.fingerprints].some(([path, before]) => fingerprint(path) !== before);
  }

  private file(path: string): string {
    this.fingerprints.set(path, fingerprint(path));
    return readFileSync(path, 'utf8');
  }

  private readServiceAccount(source: Extract<ClusterSource, { inCluster: true }>): Connection {
    const mount = source.mount ?? '/var/run/secrets/kubernetes.io/serviceaccount';
    const host = source.host ?? process.env.KUBERNETES_SERVICE_HOST;
    const port = source.port ?? process.env.KUBERNETES_SERVICE_PORT;
    if (!host || !port) {
      throw new Error('not in a cluster: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set');
    }
    return {
      server: `https://${isIPv6(host) ? `[${host}]` : host}:${port}`,
      tls: { ca: this.file(`${mount}/ca.crt`) },
      authorization: `Bearer ${this.file(`${mount}/token`).trim()}`,
    };
  }

  private async readKubeConfig(source: Exclude<ClusterSource, { inCluster: true }>): Promise<Connection> {
    const { kubeconfigPath, context: wanted } =
      'findKubeconfig' in source ? { kubeconfigPath: await source.findKubeconfig(), context: undefined } : source;
    const paths = typeof kubeconfigPath === 'string' ? [kubeconfigPath] : kubeconfigPath;
    const files = paths.map((path) => this.parseKubeConfig(path));
    const contextName = wanted ?? files.map((file) => text(file['current-context'])).find(Boolean);
    if (!contextName) throw new Error(`${paths.join(', ')}: no current-context; name one with --context`);
    const context = find(files, 'contexts', contextName);
    const cluster = find(files, 'clusters', text(context.entry.context?.cluster) ?? '');
    const user = find(files, 'users', text(context.entry.context?.user) ?? '');
    const userEntry = user.entry.user ?? {};
    const connection = this.connection(cluster.entry.cluster ?? {}, cluster.path, userEntry, user.path);
    if (userEntry.exec === undefined && userEntry['auth-provider'] === undefined) return connection;
    const { withPluginCredentials } = await import('./plugin-credentials.js');
    return withPluginCredentials(connection, { user: userEntry, path: user.path });
  }

  private parseKubeConfig(path: string): KubeConfigFile {
    const value: unknown = parse(this.file(path));
    if (typeof value !== 'object' || value === null) throw new Error(`${path}: not a kubeconfig: no mapping`);
    return { ...(value as Omit<KubeConfigFile, 'path'>), path };
  }

  private connection(
    cluster: Record<string, unknown>,
    clusterPath: string,
    user: Record<string, unknown>,
    userPath: string,
  ): Connection {
    const server = text(cluster.server);
    if (server === undefined) throw new Error(`${clusterPath}: the cluster of the context has no server`);
    const tls = {
      ca: this.dataOrFile(cluster, 'certificate-authority', clusterPath),
      cert: this.dataOrFile(user, 'client-certificate', userPath),
      key: this.dataOrFile(user, 'client-key', userPath),
      servername: text(cluster['tls-server-name']),
      rejectUnauthorized: cluster['insecure-skip-tls-verify'] === true ? false : undefined,
    };
    const authorization = this.authorization(user, userPath);
    const proxyUrl = text(cluster['proxy-url']);
    return {
      server: server.replace(/\/+$/, ''),
      tls: present(tls),
      ...present({ authorization, proxyUrl }),
    };
  }

  private authorization(user: Record<string, unknown>, path: string): string | undefined {
    const tokenFile = text(user.tokenFile);
    const token = tokenFile === undefined ? text(user.token) : this.file(resolve(dirname(path), tokenFile)).trim();
    if (token !== undefined) return `Bearer ${token}`;
    const username = text(user.username);
    if (username === undefined) return undefined;
    return `Basic ${Buffer.from(`${username}:${text(user.password) ?? ''}`).toString('base64')}`;
  }

  private dataOrFile(entry: Record<string, unknown>, key: string, path: string): string | undefined {
    const data = text(entry[`${key}-data`]);
    if (data !== undefined) return Buffer.from(data, 'base64').toString('utf8');
    const file = text(entry[key]);
    return file === undefined ? undefined : this.file(resolve(dirname(path), file));
  }
}

/** Follows symbolic links: kubelets and Kubernetes rotate credentials by switching one. */
function fingerprint(path: string): string {
  const stat = statSync(path, { throwIfNoEntry: false });
  return stat === undefined ? 'missing' : `${stat.ino}:${stat.size}:${stat.mtimeMs}`;
}

function text(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

type Present<T> = { [K in keyof T]?: NonNullable<T[K]> };

function present<T extends object>(value: T): Present<T> {
  return Object.fromEntries(Object.entries(value).filter(([, entry]) => entry !== undefined)) as Present<T>;
}

function find(
  files: readonly KubeConfigFile[],
  list: 'clusters' | 'users' | 'contexts',
  name: string,
): { entry: Entry; path: string } {
  for (const file of files) {
    const entry = file[list]?.find((candidate) => candidate.name === name);
    if (entry !== undefined) return { entry, path: file.path };
  }
  throw new Error(`${files.map((file) => file.path).join(', ')}: ${list} has no entry named "${name}"`);
}
