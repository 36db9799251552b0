import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import closeWithGrace from 'close-with-grace';
import { pino, type Logger } from 'pino';
import { KINDS, type KubernetesClient } from '../activities/kubernetes/client.js';
import { createKubernetesClient } from '../activities/kubernetes/rest.js';
import { parseEnvironment, redacted } from '../activities/process/settings.js';
import { apiFlavour } from '../machine-config/api/flavour.js';
import packageJson from '../package.json' with { type: 'json' };
import { identityFromFiles, identityFromSecret, type IdentityWatch, type ServerIdentity } from './certificates.js';
import { IGNITION_SETTINGS } from './config.js';
import { nodeEnvironment } from './node-environment.js';
import { readNodePackage } from './node-package.js';
import { startIgnitionServer, type IgnitionServer } from './server.js';
import { parseHostAndPort } from '../activities/process/listen.js';
import { watchFiles } from '../activities/process/watched-files.js';

/** For answers that are under way. */
const GRACE_MS = 20_000;
const RETRY_MS = 5_000;

type Settings = ReturnType<typeof parseEnvironment<typeof IGNITION_SETTINGS>>;

/** The Ignition server's process: configs for first boots. */
async function main(): Promise<void> {
  if (process.argv.includes('--version')) {
    process.stdout.write(`${packageJson.version}\n`);
    return;
  }
  const settings = parseEnvironment(IGNITION_SETTINGS);
  const logger = pino({ name: 'drydock-ignition', level: settings.logLevel });
  logger.info(redacted(IGNITION_SETTINGS, settings), 'The Ignition server starts');
  const stopping = new AbortController();
  const kubernetes = createKubernetesClient(
    settings.kubeconfig === undefined ? { inCluster: true } : { kubeconfigPath: settings.kubeconfig },
  );
  const running: { server?: IgnitionServer } = {};
  closeWithGrace({ delay: GRACE_MS, logger: false }, async ({ err, signal }) => {
    if (err !== undefined) logger.error({ err }, 'The Ignition server fails');
    logger.info({ signal }, 'The Ignition server ends');
    stopping.abort();
    await running.server?.close();
    await kubernetes.close();
  });
  running.server = await serve(settings, {
    kubernetes,
    logger,
    signal: stopping.signal,
    running: () => running.server,
  });
  logger.info({ url: running.server.url }, 'The Ignition server runs');
}

interface Process {
  readonly kubernetes: KubernetesClient;
  readonly logger: Logger;
  readonly signal: AbortSignal;
  readonly running: () => IgnitionServer | undefined;
}

async function serve(settings: Settings, process: Process): Promise<IgnitionServer> {
  const { kubernetes, logger, signal } = process;
  const { flavour: flavourName, kubelet, url, requestsPerMinute } = settings;
  const onError = (err: Error) => logger.warn({ err }, 'what was read before stays in use');
  const [identity, nodePackage, environment, certificateAuthority] = await Promise.all([
    readIdentity(settings, kubernetes, {
      signal,
      onError,
      onChange: (next) => {
        process.running()?.useIdentity(next);
        logger.info({ expiresAt: new Date(next.expiresAt).toISOString() }, 'another certificate is in use');
      },
    }),
    readNodePackage(settings.nodePackage),
    readFile(settings.nodeEnvironmentFile, 'utf8'),
    readFile(settings.apiServerAuthorityFile, 'utf8'),
  ]);
  let [token] = settings.tokenFile === undefined ? [] : await tokenFrom(settings.tokenFile);
  async function tokenFrom(file: string): Promise<readonly string[]> {
    const text = (contents: readonly Buffer[]) => contents.map((content) => content.toString().trim());
    return text(await watchFiles([file], { signal, onError, onChange: (contents) => ([token] = text(contents)) }));
  }
  const clusterUid = await readClusterUid(kubernetes, logger);
  return startIgnitionServer({
    kubernetes,
    flavour: apiFlavour(flavourName),
    identity,
    nodePackage,
    requestsPerMinute,
    logger,
    access: { networks: settings.allowedNetworks, token: () => token },
    clientAuthority:
      settings.clientAuthorityFile === undefined ? undefined : await readFile(settings.clientAuthorityFile, 'utf8'),
    firstBoot: {
      server: url,
      kubelet,
      nodeEnvironment: nodeEnvironment(environment, { clusterUid, flavour: flavourName }),
    },
    apiServer: { url: settings.apiServer, certificateAuthority },
    listen: listenAt(settings.address),
  });
}

async function readIdentity(
  settings: Settings,
  kubernetes: KubernetesClient,
  watch: IdentityWatch,
): Promise<ServerIdentity> {
  const { tlsSecret, certificateFile, keyFile, authorityFile } = settings;
  if (tlsSecret !== undefined) return identityFromSecret(kubernetes, tlsSecret, watch);
  if (certificateFile === undefined || keyFile === undefined) {
    throw new Error(
      'there is no certificate: set DRYDOCK_TLS_CERTIFICATE_FILE and DRYDOCK_TLS_KEY_FILE, or DRYDOCK_TLS_SECRET',
    );
  }
  return identityFromFiles({ certificateFile, keyFile, authorityFile: authorityFile ?? certificateFile }, watch);
}

/** The API server may come later than this. */
async function readClusterUid(kubernetes: KubernetesClient, logger: Logger): Promise<string> {
  for (;;) {
    try {
      const { metadata } = await kubernetes.get(KINDS.namespace, { name: 'kube-system' });
      if (metadata.uid !== undefined) return metadata.uid;
      throw new Error('the namespace kube-system has no uid: is this a Kubernetes API server?');
    } catch (err) {
      logger.warn({ err }, 'The API server does not answer yet');
      await sleep(RETRY_MS);
    }
  }
}

function listenAt(address: string): { host: string; port: number } {
  const at = parseHostAndPort(address);
  if (at !== undefined) return { host: at.host ?? '0.0.0.0', port: at.port };
  throw new Error(`${address} is no address to listen at: write host:port in DRYDOCK_IGNITION_ADDRESS`);
}

try {
  await main();
} catch (error) {
  process.stderr.write(`drydock-ignition: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exit(1);
}
