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
import { Kubelets } from './kubelets.js';
import { Observer } from './observer/observer.js';
import type { Cast } from './plan.js';
import { Random } from './random.js';
import { withState, type Scenery } from './state.js';
import { startTemporalLink, type TemporalLink } from './temporal-link.js';
import { within } from './within.js';

export interface ChaosStageOptions {
  readonly cast: Cast;
  readonly seed: number;
  /** The program of the control workers, instead of the product's. */
  readonly controlProgram?: string;
  /** Epoch milliseconds: later than this nobody waits for the stage. */
  readonly deadline: number;
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
const INSTALL_LIMIT_MS = 180_000;
const STOP_LIMIT_MS = 30_000;
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
  const builder = new StageBuilder(lab, options);
  try {
    return await within(options.deadline - Date.now(), 'the stage to be set', builder.build());
  } catch (error) {
    const failure = await withState(error, builder.scenery);
    await builder.stop();
    throw failure;
  }
}

/** Sets the stage, and knows at every moment what there is of it. */
class StageBuilder {
  readonly #lab: Lab;
  readonly #options: ChaosStageOptions;
  readonly #stopping = new AbortController();
  readonly #closing: (() => Promise<void>)[] = [];
  scenery: Scenery;

  constructor(lab: Lab, options: ChaosStageOptions) {
    this.#lab = lab;
    this.#options = options;
    this.scenery = { lab };
  }

  readonly rootOf = (node: string): string => join(this.#lab.directory, 'nodes', node);

  async build(): Promise<ChaosStage> {
    const { cast } = this.#options;
    const lab = this.#lab;
    // Before anything is there, so that nothing was before it.
    const observer = new Observer(flavour, Date.now());
    this.scenery = { ...this.scenery, observer };
    const { etcdUrl = '' } = lab.kubernetes;
    const watch = this.#atEnd(await watchEtcd(etcdUrl, (change) => observer.see(change, Date.now())), (opened) =>
      opened.stop(),
    );
    const client = createKubernetesClient({ kubeconfigPath: lab.kubernetes.kubeconfigPath });
    this.#atEnd(client, (opened) => opened.close());
    const { hand, apiProxy, temporalLink } = await this.#openWays(client);
    const drydock = await this.#startWorkers(apiProxy, temporalLink);
    const processes = await mortalProcesses(lab, drydock);
    const { keeper, kubelets } = this.#watchOver(processes);
    await createWorkloads(client, WORKLOADS);
    const nodes = Object.keys(cast.nodes);
    await converge({ observer, nodes, revisions: new Map(), rootOf: this.rootOf }, JOIN_TIMEOUT_MS);
    for (const node of cast.cordoned) await hand.cordon(node);
    for (const node of cast.held) await hand.hold(node);
    const { rootOf } = this;
    const stop = () => this.stop();
    return { lab, observer, watch, rootOf, stop, processes, keeper, kubelets, apiProxy, temporalLink, hand };
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    this.scenery.keeper?.stop();
    // First whoever calls: nobody shall wait for the end of a connection whose other end goes on.
    await within(STOP_LIMIT_MS, 'the processes of the lab to end', this.#lab.stop());
    const closed = Promise.allSettled(this.#closing.splice(0).map((close) => close()));
    await within(STOP_LIMIT_MS, 'the proxies and clients of the test to close', closed);
  }

  /** The cluster, and what lies between it and whoever acts on it. */
  async #openWays(client: ClosableKubernetesClient): Promise<Pick<Stage, 'hand' | 'apiProxy' | 'temporalLink'>> {
    const { cast, seed, say } = this.#options;
    const lab = this.#lab;
    const hand = new Hand({ client, flavour, rootOf: this.rootOf });
    this.scenery = { ...this.scenery, hand };
    say('Installing the API, and creating pools and nodes');
    await within(INSTALL_LIMIT_MS, 'the API, pools and nodes', createCluster({ lab, client, hand, cast }));
    const authority = await CertificateAuthority.open(join(lab.directory, 'kubernetes'));
    const random = new Random(seed, 'calls');
    const apiProxy = await ApiProxy.start({ upstream: lab.kubernetes.server, authority, random });
    this.#atEnd(apiProxy, (opened) => opened.close());
    const temporalLink = await startTemporalLink(lab.temporal.address);
    this.#atEnd(temporalLink, (opened) => opened.close());
    this.scenery = { ...this.scenery, apiProxy, temporalLink };
    return { hand, apiProxy, temporalLink };
  }

  async #startWorkers(apiProxy: ApiProxy, temporalLink: TemporalLink): Promise<DrydockProcesses> {
    const { cast, controlProgram, say } = this.#options;
    const nodes = Object.keys(cast.nodes);
    say(`Starting two control workers and ${nodes.length} node workers`);
    return startDrydock(await behindProxies(this.#lab, apiProxy, temporalLink.address), {
      nodes,
      nodesPerFleet: Math.ceil(nodes.length / 2),
      awayMs: AWAY_MS,
      registrationEveryMs: REGISTRATION_EVERY_MS,
      tuning: TUNING,
      ...(controlProgram === undefined ? {} : { controlProgram }),
    });
  }

  #watchOver(processes: Stage['processes']): Pick<Stage, 'keeper' | 'kubelets'> {
    const { kubernetes } = this.#lab;
    const { scheduler, controllerManager, kwok } = kubernetes.processes;
    if (scheduler === undefined || controllerManager === undefined || kwok === undefined) throw new NoControlPlane();
    const all = [...Object.values(processes), scheduler, controllerManager, kwok];
    const keeper = new Keeper(all, {
      onReturn: ({ id }) => {
        // Whether it succeeds shows in the Nodes.
        if (id === processes.apiServer.id || id === processes.etcd.id) void kubelets.renew().catch(() => undefined);
      },
    });
    const apiReady = () => kubernetes.waitUntilReady();
    const kubelets = new Kubelets({ keeper, kwok, apiReady, signal: this.#stopping.signal });
    this.scenery = { ...this.scenery, keeper };
    return { keeper, kubelets };
  }

  #atEnd<T>(opened: T, close: (opened: T) => Promise<void>): T {
    this.#closing.push(() => close(opened));
    return opened;
  }
}

class NoControlPlane extends Error {
  override readonly name = 'NoControlPlane';
  constructor() {
    super('the lab has no control plane of its own, or too few nodes for two fleets');
  }
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
    throw new NoControlPlane();
  }
  return {
    temporal: {
      id: 'temporal',
      logFile: temporal.logFile,
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
