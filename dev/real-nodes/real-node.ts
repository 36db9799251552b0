import { join } from 'node:path';
import type { FlavourName } from '../../machine-config/api/flavour.js';
import { apiOf } from '../kubernetes/own-cluster.js';
import type { LabApi } from '../kubernetes/api.js';
import type { Lab, LabNode } from '../lab.js';
import { ensureNodeRuntime } from '../package/node-runtime.js';
import { waitUntil } from '../processes/wait-until.js';
import { readLabSettings } from '../settings.js';
import type { Log } from '../tools/cache.js';
import { ensureBaseRoot } from './base-root.js';
import { KUBELET_KUBECONFIG, writeIdentity } from './cluster-identity.js';
import { makeMachine, type Machine } from './machine.js';
import { COMMAND_LINE_IN_MACHINE, NODE_IN_MACHINE, writeMachineFiles } from './machine-files.js';
import { installNodeWorker, unpackNodePackage } from './worker-package.js';

export type { Machine, CommandOptions } from './machine.js';

/** The unit of the node worker. */
export const WORKER_UNIT = 'drydock-node.service';

export interface BareMachineSpec {
  readonly name: string;
  /** Gives `/` an ext4 file system of its own of this size; at least 250 are needed, 500 with the node worker. */
  readonly diskMebibytes?: number;
  /** Ports of 127.0.0.1 of this host that it reaches at its gateway, besides those of the lab's servers. */
  readonly forwards?: readonly number[];
}

export interface RealNodeSpec
  extends BareMachineSpec, Pick<LabNode, 'labels' | 'annotations' | 'taints' | 'createdAt'> {
  /** More settings of its node worker. */
  readonly environment?: Readonly<Record<string, string>>;
  /** The account that gets the SSH keys of a config. Default `core`. */
  readonly sshUser?: string;
}

export interface RealNodesOptions {
  readonly nodes: readonly RealNodeSpec[];
  readonly flavour?: FlavourName;
  /** Without the node worker: a kubelet's machine, and nothing of Drydock on it. Default true. */
  readonly worker?: boolean;
  /** Another package of the node worker than that of this source tree. */
  readonly tarball?: string;
  /** Gets a line for each step that takes long. */
  readonly log?: Log;
}

/** A machine whose Node is in the lab's cluster. */
export interface RealNode extends Machine {
  /** Resolves when its Node is Ready, or is not, in the boot that runs now. */
  waitUntilReady(ready?: boolean): Promise<void>;
  /** Sends the signal to every process of its node worker. systemd starts it again. */
  killWorker(signal: NodeJS.Signals): Promise<void>;
}

const READY_TIMEOUT_MS = 60_000;

/** Real systemd machines that are nothing but that, booted. They end with the lab. */
export async function startMachines(
  lab: Lab,
  specs: readonly BareMachineSpec[],
  log: Log = () => undefined,
): Promise<Machine[]> {
  const make = await machineMaker(lab, [], log);
  return Promise.all(
    specs.map(async (spec) => {
      const machine = await make(spec);
      await writeMachineFiles({ root: machine.root, hostname: spec.name, kubelet: false });
      await machine.powerOn();
      await machine.waitUntilUp();
      return machine;
    }),
  );
}

/**
 * Real systemd machines as nodes of the lab's cluster: each with a stand-in for the kubelet, and with the node worker
 * installed from its package as on a real node. Resolves when they are booted and Ready. They end with the lab.
 */
export async function startRealNodes(lab: Lab, options: RealNodesOptions): Promise<RealNode[]> {
  const log = options.log ?? (() => undefined);
  const { kubernetes, temporal } = lab;
  const withWorker = options.worker !== false;
  const packageFolder = withWorker ? await unpackNodePackage(lab, log, options.tarball) : undefined;
  const temporalPort = new URL(`http://${temporal.address}`).port;
  const make = await machineMaker(lab, [Number(new URL(kubernetes.server).port), Number(temporalPort)], log);
  const api = await apiOf(kubernetes.kubeconfigPath);
  lab.atStop(() => {
    api.close();
    return Promise.resolve();
  });
  const system = (await api.call('GET', '/api/v1/namespaces/kube-system')) as { metadata: { uid: string } };
  // In the order that was asked for, as their age may come of it.
  await kubernetes.createNodes(options.nodes.map((node) => ({ ...nodeOf(node), kubelet: false })));
  return Promise.all(
    options.nodes.map(async (spec) => {
      const machine = await make(spec);
      const { root, gateway } = machine;
      await writeMachineFiles({ root, hostname: spec.name, kubelet: true });
      await writeIdentity({ root, gateway, kubeconfig: await kubernetes.nodeKubeconfig(spec.name) });
      if (packageFolder !== undefined) {
        const environment = {
          DRYDOCK_NODE_NAME: spec.name,
          DRYDOCK_KUBECONFIG: KUBELET_KUBECONFIG,
          DRYDOCK_CLUSTER_UID: system.metadata.uid,
          DRYDOCK_FLAVOUR: options.flavour ?? 'openshift',
          DRYDOCK_SSH_USER: spec.sshUser ?? 'core',
          TEMPORAL_ADDRESS: `${gateway}:${temporalPort}`,
          TEMPORAL_NAMESPACE: temporal.namespace,
          ...spec.environment,
        };
        await installNodeWorker({ root, packageFolder, environment });
      }
      const node = asRealNode(machine, api);
      await node.powerOn();
      await node.waitUntilUp();
      await node.waitUntilReady();
      return node;
    }),
  );
}

function nodeOf({ name, labels, annotations, taints, createdAt }: RealNodeSpec): LabNode {
  return {
    name,
    ...(labels === undefined ? {} : { labels }),
    ...(annotations === undefined ? {} : { annotations }),
    ...(taints === undefined ? {} : { taints }),
    ...(createdAt === undefined ? {} : { createdAt }),
  };
}

/** Makes machines that are off and have nothing of their own yet. */
export async function machineMaker(lab: Lab, forwards: readonly number[], log: Log) {
  const settings = readLabSettings();
  const base = await ensureBaseRoot(settings, log);
  const runtime = await ensureNodeRuntime(process.arch === 'arm64' ? 'arm64' : 'x64', settings.cacheDirectory, log);
  return (spec: BareMachineSpec): Promise<Machine> =>
    makeMachine(lab, {
      name: spec.name,
      base,
      diskMebibytes: spec.diskMebibytes,
      forwards: [...forwards, ...(spec.forwards ?? [])],
      node: { from: join(runtime, 'node'), to: NODE_IN_MACHINE },
      commandLine: COMMAND_LINE_IN_MACHINE,
    });
}

interface NodeObject {
  readonly status?: {
    readonly conditions?: readonly { type: string; status: string }[];
    readonly nodeInfo?: { bootID?: string };
  };
}

function asRealNode(machine: Machine, api: LabApi): RealNode {
  const { name } = machine;
  // Not spread: methods of a class are not its own properties.
  return Object.assign(machine, {
    async waitUntilReady(ready = true) {
      await waitUntil(
        async () => {
          const { status } = (await api.call('GET', `/api/v1/nodes/${name}`)) as NodeObject;
          const isReady = status?.conditions?.some((one) => one.type === 'Ready' && one.status === 'True') === true;
          if (!ready) return !isReady;
          return isReady && status.nodeInfo?.bootID === (await machine.bootId());
        },
        { what: `node ${name} to be ${ready ? 'Ready' : 'NotReady'}`, timeoutMs: READY_TIMEOUT_MS },
      );
    },
    async killWorker(signal: NodeJS.Signals) {
      await machine.succeed(['systemctl', 'kill', `--signal=${signal}`, WORKER_UNIT]);
    },
  });
}
