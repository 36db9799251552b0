import { Client, Connection } from '@temporalio/client';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { createKubernetesClient } from '../activities/kubernetes/rest.js';
import { apiFlavour } from '../machine-config/api/flavour.js';
import { DEFAULT_TUNING } from '../workflows/contract/inputs.js';
import {
  CLUSTER_SETTINGS,
  CONTROL_SETTINGS,
  EnvironmentError,
  LOG_SETTINGS,
  parseEnvironment,
  redacted,
} from './config.js';
import { connectTemporal, temporalConfig } from './connection.js';
import { startControlWorker, type ControlWorkerOptions } from './control-worker.js';
import { createLogger, installRuntime } from './runtime.js';
import { VERSION } from './version.js';

/** The bundle that a package carries; a clone bundles its workflows as it starts. */
const BUNDLE = fileURLToPath(new URL('workflow-bundle.js', import.meta.url));
const WORKFLOWS = fileURLToPath(new URL('../workflows/index.ts', import.meta.url));

/** The control worker's process: watches, workflows and the activities that need the cluster. */
async function main(): Promise<void> {
  if (process.argv.includes('--version')) {
    process.stdout.write(`${VERSION}\n`);
    return;
  }
  const settings = { ...LOG_SETTINGS, ...CLUSTER_SETTINGS, ...CONTROL_SETTINGS };
  const values = parseEnvironment(settings);
  const logger = createLogger('drydock-control', values.logLevel);
  const { metricsAddress, temporalMetricsAddress } = values;
  installRuntime({
    logger,
    ...(temporalMetricsAddress === undefined ? {} : { metricsAddress: temporalMetricsAddress }),
  });
  logger.info(redacted(settings, values), 'The control worker starts');

  const webhook = webhookSettings(values);
  const kubernetes = createKubernetesClient(
    values.kubeconfig === undefined ? { inCluster: true } : { kubeconfigPath: values.kubeconfig },
  );
  const { connection, namespace } = await connectTemporal(
    {},
    {
      onRetry: (err, delayMs) => logger.warn({ err, delayMs }, 'Temporal does not answer yet'),
    },
  );
  const clientConnection = await Connection.connect(temporalConfig().connectionOptions);
  try {
    const control = await startControlWorker({
      kubernetes,
      flavour: apiFlavour(values.flavour),
      connection,
      temporal: new Client({ connection: clientConnection, namespace }),
      workflows: existsSync(BUNDLE) ? { workflowBundle: { codePath: BUNDLE } } : { workflowsPath: WORKFLOWS },
      tuning: { ...DEFAULT_TUNING, ...values.tuning },
      logger,
      ...(values.ownNode === undefined ? {} : { ownNode: values.ownNode }),
      ...(metricsAddress === undefined ? {} : { metricsAddress }),
      ...(webhook === undefined ? {} : { webhook }),
      watchDelayMs: values.watchDelayMs,
      startupTaint: values.startupTaint,
    });
    logger.info('The control worker runs');
    await control.finished;
  } finally {
    await clientConnection.close();
    await connection.close();
    await kubernetes.close();
  }
}

function webhookSettings(values: {
  webhookAddress: string | undefined;
  webhookKeyFile: string | undefined;
  webhookCertificateFile: string | undefined;
}): ControlWorkerOptions['webhook'] {
  const { webhookAddress: address, webhookKeyFile: keyFile, webhookCertificateFile: certificateFile } = values;
  if (address === undefined && keyFile === undefined && certificateFile === undefined) return undefined;
  if (address === undefined || keyFile === undefined || certificateFile === undefined) {
    throw new EnvironmentError(
      'a webhook needs DRYDOCK_WEBHOOK_ADDRESS, DRYDOCK_WEBHOOK_KEY_FILE and DRYDOCK_WEBHOOK_CERTIFICATE_FILE: set all three or none',
    );
  }
  return { address, keyFile, certificateFile };
}

/** One line for what is wrong; the stack goes to whoever asks for debug. */
function explain(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

try {
  await main();
} catch (error) {
  process.stderr.write(`drydock-control: ${explain(error)}\n`);
  process.exitCode = 1;
}
