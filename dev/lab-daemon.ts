import { rename, rm, writeFile } from 'node:fs/promises';
import type { DaemonMessage, LabState, LabUpOptions } from './background-lab.js';
import { startLab, type Lab } from './lab.js';
import { identifyProcess } from './processes/process-identity.js';

/** The background process of `drydock lab up`: holds one lab until SIGTERM. argv: the state file, the options as JSON. */
async function main(): Promise<void> {
  const [stateFile = '', json = '{}'] = process.argv.slice(2);
  const options = JSON.parse(json) as LabUpOptions;
  const lab = await startLab({ ...options, log: (line) => tell({ log: line }) });
  const state = describe(lab, options);
  await writeFile(`${stateFile}.new`, JSON.stringify(state, null, 2));
  await rename(`${stateFile}.new`, stateFile);
  let stopping = false;
  const stop = () => {
    if (stopping) return;
    stopping = true;
    void lab
      .stop()
      .then(() => rm(stateFile, { force: true }))
      .finally(() => process.exit(0));
  };
  process.on('SIGTERM', stop);
  process.on('SIGINT', stop);
  tell({ ready: state });
  // The channel goes when `lab up` ends; something must keep this process here.
  setInterval(() => undefined, 2 ** 30);
}

function describe(lab: Lab, { name = '', temporal, kubernetes }: LabUpOptions): LabState {
  return {
    name,
    daemon: identifyProcess(process.pid),
    startedAt: new Date().toISOString(),
    directory: lab.directory,
    temporal:
      temporal === false
        ? null
        : { address: lab.temporal.address, uiUrl: lab.temporal.uiUrl ?? null, namespace: lab.temporal.namespace },
    kubernetes:
      kubernetes === false
        ? null
        : {
            server: lab.kubernetes.server,
            kubeconfig: lab.kubernetes.kubeconfigPath,
            kubectl: lab.kubernetes.kubectl,
          },
  };
}

function tell(message: DaemonMessage): void {
  if (process.connected) process.send?.(message, () => undefined);
}

try {
  await main();
} catch (error) {
  const why = error instanceof Error ? error.message : String(error);
  console.error(why);
  // Sent before the end: the callback is called once the message has left.
  process.send?.({ error: why } satisfies DaemonMessage, () => process.exit(1));
}
