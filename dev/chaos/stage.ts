import { join } from 'node:path';
import { createKubernetesClient, type ClosableKubernetesClient } from '../../activities/kubernetes/rest.js';
import { install } from '../../client/install.js';
import { apiFlavour } from '../../machine-config/api/flavour.js';
import { createWorkloads } from '../demo/workloads.js';
import { startDrydock, type DrydockProcesses } from '../drydock-processes.js';
import { CertificateAuthority } from '../kubernetes/certificates.js';
import { startLab, type Lab } from '../lab.js';
import { ApiProxy } from './api-proxy.js';
import { labNodes } from './cast.js';
import { converge } from './converge.js';
import type { ProcessName } from './fault.js';
import { watchEtcd, type EtcdWatch } from './etcd-watch.js';
import { Hand } from './hand.js';
import type { Stage } from './inflict.js';
import { Keeper, type MortalProcess } from './keeper.js';
import { Observer } from './observer/observer.js';
import type { Cast } from './plan.js';
import { Random } from './random.js';
import { startTemporalLink } from './temporal-link.js';

export interface ChaosStageOptions {
  readonly cast: Cast;
  readonly seed: number;
  /** The program of the control workers, instead of the product's. */
  readonly controlProgram?: string;
  /** Where data and logs are kept. Default: nowhere. */
  readonly directory?: string;
  readonly say: (line: string) => void;
}

/** A lab with everything in it that goes wrong, and the observer who watches it. */
export interface ChaosStage extends Stage {
  readonly lab: Lab;
  readonly observer: Observer;
  readonly watch: EtcdWatch;
  readonly rootOf: (node: string) => string;
  stop(): Promise<void>;
}

export const flavour = apiFlavour('openshift');
/** What every pool begins with. */
const MAX_UNAVAILABLE = 2;
const AWAY_MS = 1_000;
/** An API server that is killed for seconds must not make all nodes NotReady. */
const NODE_GRACE_SECONDS = 40;
/** Nodes that join on a busy machine. */
const JOIN_TIMEOUT_MS = 300_000;
/** Short, so that much happens in little time. */
const REGISTRATION_EVERY_MS = 5_000;
const TUNING = { debounceSeconds: 1, tickSeconds: 10, restSeconds: 10, settleSeconds: 3 };
const WORKLOADS = [
  { name: 'cart', replicas: 6, minAvailable: 5 },
  { name: 'web', replicas: 12, minAvailable: 9 },
];

/** Starts everything, and waits until all nodes have joined their pools. */
export async function setStage(options: ChaosStageOptions): Promise<ChaosStage> {
  const { say, directory } = options;
  say('Starting Temporal and a Kubernetes control plane');
  const lab = await startLab({
    log: say,
    storesJson: true,
    nodeGraceSeconds: NODE_GRACE_SECONDS,
    ...(directory === undefined ? {} : { directory }),
  });
  const closing: (() => Promise<void>)[] = [];
  const stop = async () => {
    await Promise.allSettled(closing.splice(0).map((close) => close()));
    await lab.stop();
  };
  try {
    return await furnish(lab, options, { closing, stop });
  } catch (error) {
    await stop();
    throw error;
  }
}

interface Ends {
  readonly closing: (() => Promise<void>)[];
  readonly stop: () => Promise<void>;
}

async function furnish(lab: Lab, options: ChaosStageOptions, { closing, stop }: Ends): Promise<ChaosStage> {
  const { cast, seed, say } = options;
  const { etcdUrl = '' } = lab.kubernetes;
  // Before anything is there, so that nothing was before it.
  const observer = new Observer(flavour, Date.now());
  const watch = await watchEtcd(etcdUrl, (change) => observer.see(change, Date.now()));
  closing.push(() => watch.stop());
  const client = createKubernetesClient({ kubeconfigPath: lab.kubernetes.kubeconfigPath });
  closing.push(() => client.close());
  const rootOf = (node: string) => join(lab.directory, 'nodes', node);
  const hand = new Hand({ client, flavour, rootOf });
  say('Installing the API, and creating pools and nodes');
  await createCluster({ lab, client, hand, cast });

  const authority = await CertificateAuthority.open(join(lab.directory, 'kubernetes'));
  const random = new Random(seed, 'calls');
  const apiProxy = await ApiProxy.start({ upstream: lab.kubernetes.server, authority, random });
  closing.push(() => apiProxy.close());
  const temporalLink = await startTemporalLink(lab.temporal.address);
  closing.push(() => temporalLink.close());
  say(`Starting two control workers and ${Object.keys(cast.nodes).length} node workers`);
  const seen = await behindProxies(lab, apiProxy, temporalLink.address);
  const { controlProgram } = options;
  const drydock = await startDrydock(seen, {
    nodes: Object.keys(cast.nodes),
    nodesPerFleet: Math.ceil(Object.keys(cast.nodes).length / 2),
    awayMs: AWAY_MS,
    registrationEveryMs: REGISTRATION_EVERY_MS,
    tuning: TUNING,
    ...(controlProgram === undefined ? {} : { controlProgram }),
  });
  const processes = await mortalProcesses(lab, drydock);
  const { scheduler, controllerManager, kwok } = lab.kubernetes.processes;
  const others = [scheduler, controllerManager, kwok].filter((process) => process !== undefined);
  const keeper = new Keeper([...Object.values(processes), ...others]);
  closing.unshift(() => keeper.stop());
  await createWorkloads(client, WORKLOADS);
  const nodes = Object.keys(cast.nodes);
  await converge({ observer, nodes, revisions: new Map(), rootOf }, JOIN_TIMEOUT_MS);
  for (const node of cast.cordoned) await hand.cordon(node);
  for (const node of cast.held) await hand.hold(node);
  const renewKubelets = async () => {
    await lab.kubernetes.waitUntilReady().catch(() => undefined);
    if (kwok === undefined) return;
    await keeper.takeAway(kwok);
    await keeper.bringBack(kwok);
  };
  return { lab, observer, watch, rootOf, stop, processes, keeper, apiProxy, temporalLink, hand, renewKubelets };
}

interface ClusterToCreate {
  readonly lab: Lab;
  readonly client: ClosableKubernetesClient;
  readonly hand: Hand;
  readonly cast: Cast;
}

async function createCluster({ lab, client, hand, cast }: ClusterToCreate): Promise<void> {
  await install({ client, flavour });
  for (const pool of cast.pools) {
    if (pool === 'worker') await hand.setPool(pool, { maxUnavailable: MAX_UNAVAILABLE });
    else await hand.createPool(pool, MAX_UNAVAILABLE);
  }
  await lab.kubernetes.createNodes(labNodes(cast));
}

/** The lab as Drydock's processes see it: whatever they do goes through what can be cut. */
async function behindProxies(lab: Lab, apiProxy: ApiProxy, temporalAddress: string): Promise<Lab> {
  const { kubernetes, temporal } = lab;
  return {
    ...lab,
    temporal: { ...temporal, address: temporalAddress },
    kubernetes: {
      ...kubernetes,
      kubeconfigPath: await apiProxy.redirect(kubernetes.kubeconfigPath),
      nodeKubeconfig: async (name) => apiProxy.redirect(await kubernetes.nodeKubeconfig(name)),
      userKubeconfig: async (...user) => apiProxy.redirect(await kubernetes.userKubeconfig(...user)),
    },
  };
}

async function mortalProcesses(lab: Lab, drydock: DrydockProcesses): Promise<Record<ProcessName, MortalProcess>> {
  const { temporal, kubernetes } = lab;
  const { apiServer, etcd } = kubernetes.processes;
  const [fleet, otherFleet] = drydock.fleets;
  if (apiServer === undefined || etcd === undefined || fleet === undefined || otherFleet === undefined) {
    throw new Error('the lab has no control plane of its own, or too few nodes for two fleets');
  }
  return {
    temporal: {
      id: 'temporal',
      get pid() {
        return temporal.pid;
      },
      kill: (signal) => temporal.kill(signal),
      restart: () => temporal.restart(),
    },
    apiServer,
    etcd,
    'control-1': drydock.control,
    'control-2': await drydock.startControl('drydock-control-2'),
    'fleet-1': fleet,
    'fleet-2': otherFleet,
  };
}
