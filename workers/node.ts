import { createSimulatedHost, seedSimulatedHost } from '../activities/host/simulated-host.js';
import { createKubernetesClient } from '../activities/kubernetes/rest.js';
import { apiFlavour } from '../machine-config/api/flavour.js';
import { CLUSTER_SETTINGS, LOG_SETTINGS, NODE_SETTINGS, parseEnvironment, redacted } from './config.js';
import { connectTemporal } from './connection.js';
import { startNodeWorker } from './node-worker.js';
import { createLogger, installRuntime } from './runtime.js';

const SETTINGS = { ...LOG_SETTINGS, flavour: CLUSTER_SETTINGS.flavour, ...NODE_SETTINGS };

/**
 * The worker of one node, against a root folder; Temporal by its usual environment. The host is a simulated one in this
 * release, so the root must not be `/`. A reboot ends the process: whatever started it boots the folder and starts it
 * again.
 */
async function main(): Promise<void> {
  const settings = parseEnvironment(SETTINGS);
  // Played by a fleet: without it nobody would boot this machine again.
  if (process.send !== undefined) process.once('disconnect', () => process.exit(1));
  if (settings.root === '/') {
    throw new Error('DRYDOCK_ROOT: real hosts are not served by this release; name a folder that plays the host');
  }
  const logger = createLogger('drydock-node', settings.logLevel);
  installRuntime({ logger });
  logger.info(redacted(SETTINGS, settings), 'node worker starts');
  await seedSimulatedHost(settings.root);
  const { connection, namespace } = await connectTemporal(
    {},
    { onRetry: (err) => logger.warn({ err }, 'Temporal does not answer; trying again') },
  );
  const client = createKubernetesClient({ kubeconfigPath: settings.nodeKubeconfig });
  const host = createSimulatedHost({ root: settings.root, onDown: goDown });
  const worker = await startNodeWorker({
    node: settings.node,
    clusterUid: settings.clusterUid,
    flavour: apiFlavour(settings.flavour),
    client,
    host,
    connection,
    namespace,
    logger,
  });
  try {
    await worker.finished;
  } finally {
    await client.close();
    await connection.close();
  }
}

/** A machine without power closes no connection and says goodbye to nobody. The parent, if any, hears why. */
function goDown(why: string): void {
  const stop = (signal: NodeJS.Signals) => process.kill(process.pid, signal);
  if (process.send === undefined) stop('SIGKILL');
  else process.send({ down: why }, undefined, {}, () => stop('SIGSTOP'));
}

await main();
