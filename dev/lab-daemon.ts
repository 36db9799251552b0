import { rename, rm, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import type { DaemonMessage, LabState, LabUpOptions } from './background-lab.js';
import { startLab, type Lab } from './lab.js';
import { whyNoRealNodes } from './real-nodes/availability.js';
import { startRealNodes, type RealNode } from './real-nodes/real-node.js';
import { identifyProcess } from './processes/process-identity.js';

/** Opens a shell in a machine. */
const ENTER = fileURLToPath(new URL('real-nodes/enter-machine.mjs', import.meta.url));

/** The background process of `drydock lab up`: holds one lab until SIGTERM. argv: the state file, the options as JSON. */
async function main(): Promise<void> {
  const [stateFile = '', json = '{}'] = process.argv.slice(2);
  const options = JSON.parse(json) as LabUpOptions;
  const log = (line: string) => tell({ log: line });
  const lab = await startLab({ ...options, log });
  const realNodes = await startMachines(lab, options, log);
  const state = describe(lab, options, realNodes);
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

async function startMachines(lab: Lab, options: LabUpOptions, log: (line: string) => void): Promise<RealNode[]> {
  const { realNodes = 0, temporal, kubernetes } = options;
  if (realNodes === 0) return [];
  try {
    if (temporal === false || kubernetes === false) throw new Error('real nodes need Temporal and Kubernetes');
    const why = await whyNoRealNodes(log);
    if (why !== undefined) throw new Error(why);
    const labels = { 'node-role.kubernetes.io/worker': '' };
    const nodes = Array.from({ length: realNodes }, (_, index) => ({ name: `real-${index + 1}`, labels }));
    return await startRealNodes(lab, { nodes, log });
  } catch (error) {
    await lab.stop();
    throw new Error(`--real-nodes ${realNodes}: ${error instanceof Error ? error.message : String(error)}`, {
      cause: error,
    });
  }
}

function describe(
  lab: Lab,
  { name = '', temporal, kubernetes }: LabUpOptions,
  realNodes: readonly RealNode[],
): LabState {
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
    realNodes: realNodes.map((node) => ({
      name: node.name,
      address: node.address,
      root: node.root,
      enter: `${process.execPath} ${ENTER} ${lab.directory} ${node.name}`,
    })),
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
