import type { RequestOptions } from 'node:https';
import { dirname } from 'node:path';
import type { Connection } from './kubeconfig.js';

/** A user entry of a kubeconfig, with the file that it stands in. */
export interface PluginUser {
  readonly user: Record<string, unknown>;
  readonly path: string;
}

/**
 * Adds what an exec plugin or an auth provider of the kubeconfig hands out. Loaded only for such users: the official
 * client that runs the plugins costs 65 MB, which a node worker (it has a certificate) shall not pay.
 */
export async function withPluginCredentials(connection: Connection, { user, path }: PluginUser): Promise<Connection> {
  const { KubeConfig } = await import('@kubernetes/client-node');
  const config = new KubeConfig();
  config.loadFromString(
    JSON.stringify({
      'current-context': 'plugin',
      // The plugins do not look at it, but the official client builds an agent for it.
      clusters: [{ name: 'plugin', cluster: { server: 'https://plugin.invalid' } }],
      users: [{ name: 'plugin', user }],
      contexts: [{ name: 'plugin', context: { cluster: 'plugin', user: 'plugin' } }],
    }),
  );
  config.makePathsAbsolute(dirname(path));
  const options: RequestOptions = {};
  await config.applyToHTTPSOptions(options);
  const { cert, key } = options;
  const authorization = (options.headers as Record<string, unknown> | undefined)?.Authorization;
  return {
    ...connection,
    tls: { ...connection.tls, ...(cert && key ? { cert: pem(cert), key: pem(key) } : {}) },
    ...(typeof authorization === 'string' ? { authorization } : {}),
  };
}

function pem(value: NonNullable<RequestOptions['cert'] | RequestOptions['key']>): string {
  const one: unknown = Array.isArray(value) ? value[0] : value;
  return Buffer.isBuffer(one) ? one.toString('utf8') : String(one);
}
