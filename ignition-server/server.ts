import type { AddressInfo } from 'node:net';
import { KINDS, type KubernetesClient, type KubernetesObject } from '../activities/kubernetes/client.js';
import { WatchCache } from '../activities/kubernetes/watch-cache.js';
import type { ApiFlavour, ResourceKind } from '../machine-config/api/flavour.js';
import {
  BOOTSTRAP_TOKEN_IDS,
  BOOTSTRAP_TOKEN_NAMESPACE,
  bootstrapTokenSecretName,
  newestToken,
  type BootstrapTokenSecret,
} from '../machine-config/first-boot/bootstrap-token.js';
import type { FirstBootInputs } from '../machine-config/first-boot/compose.js';
import { makeApp, type IgnitionAppOptions, type Readiness } from './app.js';
import type { ServerIdentity } from './certificates.js';
import { serverMetrics } from './metrics.js';
import { ServedConfigs, type ConfigResource, type PoolResource } from './served-configs.js';

/** A watch tells of itself at least once a minute, be it with a bookmark. */
const SILENCE_MS = 180_000;

export interface IgnitionServerOptions extends Pick<
  IgnitionAppOptions,
  'access' | 'clientAuthority' | 'nodePackage' | 'requestsPerMinute' | 'logger'
> {
  readonly kubernetes: KubernetesClient;
  readonly flavour: ApiFlavour;
  readonly identity: ServerIdentity;
  /** What goes into every config, but for what is read by watch or may change. */
  readonly firstBoot: Omit<FirstBootInputs, 'artifact' | 'bootstrap' | 'flavour' | 'serverAuthority'>;
  /** How kubelets reach the API server, and by which authorities (PEM). */
  readonly apiServer: { readonly url: string; readonly certificateAuthority: string };
  readonly listen: { readonly host: string; readonly port: number };
}

export interface IgnitionServer {
  /** `https://host:port` at which it listens. */
  readonly url: string;
  /** Shows another certificate from the next connection on, and tells machines its authority. */
  useIdentity(identity: ServerIdentity): void;
  /** Resolves when all that changed until now is prepared. */
  settled(): Promise<void>;
  /** Answers what it was asked, and ends. */
  close(): Promise<void>;
}

/** Resolves once it listens; what it has not read yet it answers with 503. */
export async function startIgnitionServer(options: IgnitionServerOptions): Promise<IgnitionServer> {
  const { flavour, logger } = options;
  const watching = new AbortController();
  const watches = openWatches(options, watching.signal);
  let { identity } = options;
  const token = () => newestToken(watches.secrets.flatMap((secret) => secret.list()));
  const configs = new ServedConfigs({
    flavour,
    pools: watches.pools,
    configs: watches.configs,
    inputs: () => firstBootInputs(options, identity.authority, token()?.token),
    onNote: ({ message, ...which }) => logger.info(which, message),
  });
  for (const secret of watches.secrets) secret.onChange(() => configs.prepareAll());
  const metrics = serverMetrics({
    pools: () => configs.ready(),
    certificateExpiresAt: () => identity.expiresAt,
    tokenExpiresAt: () => token()?.expiresAt,
    isStale: () => watches.silence() !== undefined,
  });
  try {
    const app = await makeApp({ ...options, configs, metrics, readiness: () => readinessOf(watches, configs) });
    await app.listen(options.listen);
    return {
      url: urlOf(app.server.address()),
      useIdentity(next) {
        identity = next;
        app.server.setSecureContext({
          cert: next.certificate,
          key: next.key,
          minVersion: 'TLSv1.2',
          ...(options.clientAuthority === undefined ? {} : { ca: options.clientAuthority }),
        });
        configs.prepareAll();
      },
      settled: () => configs.settled(),
      async close() {
        await app.close();
        watching.abort();
      },
    };
  } catch (error) {
    watching.abort();
    throw error;
  }
}

function urlOf(address: AddressInfo | string | null): string {
  if (address === null || typeof address === 'string') return '';
  return `https://${address.family === 'IPv6' ? `[${address.address}]` : address.address}:${address.port}`;
}

type TokenSecret = KubernetesObject & BootstrapTokenSecret;

interface Watches {
  readonly pools: WatchCache<PoolResource>;
  readonly configs: WatchCache<ConfigResource>;
  readonly secrets: readonly WatchCache<TokenSecret>[];
  /** Why the API server is taken to be away; undefined: it is heard of. */
  silence(): string | undefined;
}

function openWatches({ kubernetes, flavour, logger }: IgnitionServerOptions, signal: AbortSignal): Watches {
  /** What each watch that is broken said last. */
  const broken = new Map<string, string>();
  function cache<T extends KubernetesObject>(resource: ResourceKind, key: string = resource.plural, scope = {}) {
    return new WatchCache<T>(kubernetes, resource, {
      signal,
      scope,
      onError: (err) => {
        broken.set(key, err instanceof Error ? err.message : String(err));
        logger.warn({ err, watch: key }, 'a watch broke and is begun again');
      },
      onProgress: () => broken.delete(key),
    });
  }
  const pools = cache<PoolResource>(flavour.machineConfigPool);
  const configs = cache<ConfigResource>(flavour.machineConfig);
  const secrets = BOOTSTRAP_TOKEN_IDS.map((id) => {
    const name = bootstrapTokenSecretName(id);
    return cache<TokenSecret>(KINDS.secret, name, {
      namespace: BOOTSTRAP_TOKEN_NAMESPACE,
      fieldSelector: `metadata.name=${name}`,
    });
  });
  return {
    pools,
    configs,
    secrets,
    silence() {
      const [first] = broken;
      if (first !== undefined) return `${first[0]}: ${first[1]}`;
      const heardAt = Math.min(...[pools, configs].map((one) => one.freshness()?.heardAt ?? Number.POSITIVE_INFINITY));
      const silentMs = Date.now() - heardAt;
      return silentMs > SILENCE_MS ? `nothing was heard for ${Math.round(silentMs / 1000)} s` : undefined;
    },
  };
}

function readinessOf(watches: Watches, configs: ServedConfigs): Readiness {
  const silence = watches.silence();
  const isStale = silence !== undefined;
  const away = isStale ? `the API server is away (${silence})` : '';
  if (!watches.pools.hasSynced() || !watches.configs.hasSynced()) {
    return { isReady: false, isStale, says: away || 'the pools have not been read from the API server yet' };
  }
  if (configs.ready().length === 0) {
    return { isReady: false, isStale, says: 'there is no pool yet whose config could be given out; the log says why' };
  }
  return { isReady: true, isStale, says: isStale ? `${away}; the last known configs are given out` : 'ok' };
}

function firstBootInputs(
  { firstBoot, apiServer, nodePackage, flavour }: IgnitionServerOptions,
  serverAuthority: string,
  token: string | undefined,
): FirstBootInputs | string {
  if (token === undefined) {
    return 'there is no bootstrap token yet; a control worker writes it into the Secrets bootstrap-token-drydk… of kube-system';
  }
  const { sha256, sha512 } = nodePackage;
  const bootstrap = { server: apiServer.url, certificateAuthority: apiServer.certificateAuthority, token };
  return { ...firstBoot, flavour, serverAuthority, artifact: { sha256, sha512 }, bootstrap };
}
