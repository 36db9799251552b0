import { fork } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { Logger } from 'pino';
import { z } from 'zod';
import { createSimulatedHost } from '../activities/host/simulated-host.js';
import { createKubernetesClient } from '../activities/kubernetes/rest.js';
import { apiFlavour, FLAVOUR_NAMES } from '../machine-config/api/flavour.js';
import { FLEET_SETTINGS, LOG_SETTINGS, parseEnvironment } from './config.js';
import { connectTemporal, temporalConfig, type TemporalConnection } from './connection.js';
import { startNodeWorker } from './node-worker.js';
import { createLogger, installRuntime } from './runtime.js';
import { playAll } from './simulated-fleet-start.js';
import { playNode, type PoweredNode } from './simulated-node.js';
import { Power } from './simulated-power.js';

/** What the file named by DRYDOCK_FLEET_FILE says. */
const fleetSchema = z.strictObject({
  /** uid of the namespace kube-system. */
  clusterUid: z.string().min(1),
  flavour: z.enum(FLAVOUR_NAMES).default('openshift'),
  /** How long a machine is away when it reboots. */
  awayMs: z.int().nonnegative().default(3_000),
  /**
   * `inProcess`: all workers in this process; a machine that goes down freezes (see Power) and its poll stays open.
   * `processes`: one process a machine, which is stopped by SIGSTOP, so that its connections stay open and silent, and
   * killed when the machine boots again; about 110 MB each.
   */
  mode: z.enum(['inProcess', 'processes']).default('inProcess'),
  /**
   * How long the server still hands tasks to the poll of a machine that froze, at most one: until its keep-alive notices,
   * or the machine boots.
   * 0: machines shut down in order and close their poll.
   */
  pollOutlivesMs: z.int().nonnegative().default(15_000),
  /**
   * All machines of the process share one connection to Temporal, and a boot begins when the worker of the last one has
   * closed its poll: for fleets of thousands. For machines that shut down in order, in `inProcess` alone.
   */
  sharesConnection: z.boolean().default(false),
  /**
   * How many machines are on their way up at one time when the fleet starts. Default: all. Machines have a processor of
   * their own; hundreds on one would all be late, be told by their clients that nobody answered, and begin again.
   */
  startsAtOnce: z.int().positive().exactOptional(),
  /** How often a worker looks whether its Node still knows it. Default: as on a real node. */
  registrationEveryMs: z.int().positive().exactOptional(),
  temporal: z.strictObject({ address: z.string().optional(), namespace: z.string().optional() }).default({}),
  nodes: z
    .array(z.strictObject({ name: z.string().min(1), kubeconfig: z.string().min(1), root: z.string().startsWith('/') }))
    .min(1),
});
type Fleet = z.output<typeof fleetSchema>;
/** For those who write the file. */
export type FleetFile = z.input<typeof fleetSchema>;
type Down = Awaited<PoweredNode['down']>;
type FleetNode = Fleet['nodes'][number];

/** The end of the lab waits this long for running steps. */
const GRACE_SECONDS = 2;
const RESTART_DELAY_MS = 1_000;
/** A worker without running steps has closed its poll by then. */
const LAST_BOOT_MS = 3_000;

async function main(): Promise<void> {
  const settings = parseEnvironment({ ...LOG_SETTINGS, ...FLEET_SETTINGS });
  const logger = createLogger('drydock-fleet', settings.logLevel);
  const fleet = await readFleet(settings.fleetFile);
  const stopping = new AbortController();
  // Not the SDK's own signals: the workers of frozen machines would never finish shutting down.
  installRuntime({ logger, shutdownSignals: [] });
  for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => stopping.abort());

  const shared = fleet.sharesConnection ? await connect(fleet, logger, stopping.signal) : undefined;
  const play = async (node: FleetNode, onUp: () => void) => {
    // What the kubelet says is nothing of Drydock's, and is told apart by whoever counts requests.
    const client = createKubernetesClient({ kubeconfigPath: node.kubeconfig }, { userAgent: 'drydock-lab-kubelet' });
    const { signal } = stopping;
    const here = new PlayedMachine({ node, fleet, logger, signal, shared });
    const powerOn = async () => {
      const powered = fleet.mode === 'processes' ? forkNode(node, fleet) : await here.powerOn();
      onUp();
      return powered;
    };
    await playNode({ name: node.name, root: node.root, client, awayMs: fleet.awayMs, logger, powerOn, signal });
  };
  logger.info({ nodes: fleet.nodes.length, mode: fleet.mode, awayMs: fleet.awayMs }, 'fleet started');
  await playAll(fleet.nodes, play, { startsAtOnce: fleet.startsAtOnce, signal: stopping.signal });
  process.exit(0);
}

async function readFleet(path: string): Promise<Fleet> {
  const parsed = fleetSchema.safeParse(JSON.parse(await readFile(path, 'utf8')));
  if (!parsed.success) throw new Error(`${path}: ${z.prettifyError(parsed.error).replace(/\s+/g, ' ')}`);
  return parsed.data;
}

function connect(fleet: Fleet, logger: Logger, signal: AbortSignal): Promise<TemporalConnection> {
  const onRetry = (err: unknown) => logger.warn({ err }, 'Temporal does not answer; trying again');
  return connectTemporal(addressOf(fleet), { signal, onRetry });
}

function addressOf({ temporal: { address, namespace } }: Fleet) {
  return { ...(address === undefined ? {} : { address }), ...(namespace === undefined ? {} : { namespace }) };
}

interface HereOptions {
  readonly node: FleetNode;
  readonly fleet: Fleet;
  readonly logger: Logger;
  readonly signal: AbortSignal;
  /** Absent: each boot has a connection of its own. */
  readonly shared: TemporalConnection | undefined;
}

/** A machine whose worker runs in this process, one boot after the other. */
class PlayedMachine {
  readonly #options: HereOptions;
  /** Settles when the worker of the last boot has closed its poll. */
  #lastBoot: Promise<unknown> = Promise.resolve();

  constructor(options: HereOptions) {
    this.#options = options;
  }

  async powerOn(): Promise<PoweredNode> {
    const { node, fleet, logger, signal } = this.#options;
    const { temporal, hangUp } = await this.#connection();
    let goDown: (why: string) => void = () => undefined;
    let giveUpPoll: () => void = () => undefined;
    // The one poll that was open when the machine froze takes one task with it; more would be more than real.
    const power = new Power(() => giveUpPoll());
    const down = new Promise<Down>((resolve) => {
      goDown = (why) => {
        power.turnOff();
        setTimeout(() => giveUpPoll(), fleet.pollOutlivesMs).unref();
        resolve({ why, isReboot: true });
      };
    });
    const client = createKubernetesClient({ kubeconfigPath: node.kubeconfig });
    const worker = await startNodeWorker({
      node: node.name,
      clusterUid: fleet.clusterUid,
      flavour: apiFlavour(fleet.flavour),
      client: power.client(client),
      host: power.host(createSimulatedHost({ root: node.root, onDown: goDown })),
      ...temporal,
      logger,
      signal,
      graceSeconds: GRACE_SECONDS,
      ...(fleet.registrationEveryMs === undefined ? {} : { registrationEveryMs: fleet.registrationEveryMs }),
      wrap: (activities) => power.activities(activities),
    });
    giveUpPoll = () => worker.stop();
    // What still runs when the boot is over hangs for ever, and its end is not awaited.
    this.#lastBoot = worker.finished.then(hangUp, hangUp);
    return {
      down: Promise.race([down, worker.finished.then(() => down)]),
      // A machine that boots answers for its old connections with a reset, so the server forgets the old poll.
      discard: () => giveUpPoll(),
      async stop() {
        worker.stop();
        await worker.finished;
      },
    };
  }

  /**
   * A connection for each boot: the poll of the frozen boot stays open on its own, and the SDK refuses a second worker
   * for the same queue on one connection. So a shared one is of use only where the last boot has ended in order.
   */
  async #connection(): Promise<{ temporal: TemporalConnection; hangUp: () => Promise<void> }> {
    const { fleet, logger, signal, shared } = this.#options;
    const ended = this.#lastBoot.then(() => true);
    if (shared !== undefined && (await Promise.race([ended, sleep(LAST_BOOT_MS, false, { ref: false })]))) {
      return { temporal: shared, hangUp: () => Promise.resolve() };
    }
    const temporal = await connect(fleet, logger, signal);
    return { temporal, hangUp: () => temporal.connection.close() };
  }
}

/** The machine's worker in a process of its own. */
function forkNode(node: FleetNode, fleet: Fleet): PoweredNode {
  const { connectionOptions, namespace } = temporalConfig(addressOf(fleet));
  const child = fork(fileURLToPath(new URL('./node.ts', import.meta.url)), {
    env: {
      ...process.env,
      DRYDOCK_NODE_NAME: node.name,
      DRYDOCK_KUBECONFIG: node.kubeconfig,
      DRYDOCK_ROOT: node.root,
      DRYDOCK_CLUSTER_UID: fleet.clusterUid,
      DRYDOCK_FLAVOUR: fleet.flavour,
      TEMPORAL_NAMESPACE: namespace,
      ...(connectionOptions.address === undefined ? {} : { TEMPORAL_ADDRESS: connectionOptions.address }),
    },
  });
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const down = new Promise<Down>((resolve) => {
    child.once('message', (message: { down: string }) => resolve({ why: message.down, isReboot: true }));
    child.once('exit', (code, signal) =>
      setTimeout(() => resolve({ why: `exit ${signal ?? code}`, isReboot: false }), RESTART_DELAY_MS),
    );
  });
  return {
    down,
    discard: () => void child.kill('SIGKILL'),
    async stop() {
      child.kill('SIGTERM');
      await exited;
    },
  };
}

await main();
