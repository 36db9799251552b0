import { mkdir, mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { z } from 'zod';
import { startKubernetes, type LabKubernetes } from './kubernetes.js';
import { useCluster } from './kubernetes/own-cluster.js';
import { isAlive, killForGood } from './processes/process-identity.js';
import { Supervisor, type LabProcess, type ProcessSpec } from './processes/supervisor.js';
import { readLabSettings, type LabSettings } from './settings.js';
import { readTemporalDevConfig } from './temporal-config.js';
import { startTemporal, type LabTemporal } from './temporal.js';
import type { Log } from './tools/cache.js';
import { ensureKubernetesTools } from './tools/kubernetes-tools.js';
import { ensureTemporalCli } from './tools/temporal-tools.js';

export type { LabProcess } from './processes/supervisor.js';
export type { LabTemporal } from './temporal.js';
export type { LabKubernetes, LabNode } from './kubernetes.js';

export interface LabOptions {
  /** Start a Temporal development server. Default true. */
  readonly temporal?: boolean;
  /** Start a Kubernetes control plane. Default true. */
  readonly kubernetes?: boolean;
  /** Use this cluster instead of starting one: a kubeconfig file of the user's, read and never written. */
  readonly kubeconfig?: string;
  /** Where data, logs, keys and kubeconfigs go, kept afterwards and used again. Default: a temporary one, removed at the end. */
  readonly directory?: string;
  /** Instead of temporal-dev.yaml at the root. */
  readonly temporalConfigFile?: string;
  /** Seconds without a sign of a kubelet after which its Node is NotReady. Default 5; set about 40 for hundreds of nodes. */
  readonly nodeGraceSeconds?: number;
  /** The API server stores every kind as JSON, for those who watch etcd itself. Default false: as in production. */
  readonly storesJson?: boolean;
  /** The API server logs every request, for those who count them; see dev/kubernetes/audit.ts. Default false. */
  readonly audits?: boolean;
  /** Gets a line for each step that takes long. Default: nothing is said. */
  readonly log?: Log;
}

/** A running lab. A part that was not asked for throws when it is used. */
export interface Lab {
  readonly temporal: LabTemporal;
  readonly kubernetes: LabKubernetes;
  readonly directory: string;
  /** Runs a program that ends with the lab; its log is `<id>.log` in the directory. */
  run(spec: ProcessSpec): Promise<LabProcess>;
  /** Runs the action first when the lab is stopped, for what ends better than by SIGKILL. It is not run in a crash. */
  atStop(action: () => Promise<void>): void;
  /** Ends everything at once; removes the directory if it is temporary. Called twice, it does nothing. */
  stop(): Promise<void>;
}

const DEFAULT_GRACE_SECONDS = 5;
const TEMPORARY_PREFIX = 'drydock-lab-';
/** A port that was free may be taken in the moment before it is used. */
const START_ATTEMPTS = 3;

/**
 * Starts real parts on this machine: Temporal, and etcd, kube-apiserver, kube-controller-manager, kube-scheduler and
 * kwok. Every port is a free one, so any number of labs run beside each other. Everything ends with this process, also if
 * it is killed. The user's own kubeconfig, KUBECONFIG and Temporal profile are never read or written.
 */
export async function startLab(options: LabOptions = {}): Promise<Lab> {
  const settings = readLabSettings();
  await sweepDeadLabs();
  for (let attempt = 1; ; attempt += 1) {
    const directory = await makeDirectory(options);
    const supervisor = Supervisor.start(directory, options.directory === undefined);
    try {
      const parts = await startParts(supervisor, options, settings);
      const lastActions: (() => Promise<void>)[] = [];
      // Not spread: a part that was not started throws when it is read.
      return Object.assign(parts, {
        directory,
        run: (spec: ProcessSpec) => supervisor.run(spec),
        atStop: (action: () => Promise<void>) => void lastActions.push(action),
        async stop() {
          await Promise.allSettled(lastActions.splice(0).map((action) => action()));
          await supervisor.end();
        },
      });
    } catch (error) {
      await supervisor.end();
      if (attempt === START_ATTEMPTS || !(error instanceof Error && /address already in use/i.test(error.message))) {
        throw error;
      }
    }
  }
}

async function startParts(
  supervisor: Supervisor,
  options: LabOptions,
  settings: LabSettings,
): Promise<Pick<Lab, 'temporal' | 'kubernetes'>> {
  // Tools first and one after the other: builds and downloads would only slow each other down.
  const log = options.log ?? (() => undefined);
  const temporalStart =
    options.temporal === false ? undefined : await prepareTemporal(supervisor, options, settings, log);
  const kubernetesStart =
    options.kubernetes === false ? undefined : await prepareKubernetes(supervisor, options, settings, log);
  const [temporal, kubernetes] = await Promise.all([temporalStart?.(), kubernetesStart?.()]);
  return {
    get temporal() {
      return temporal ?? notStarted('temporal');
    },
    get kubernetes() {
      return kubernetes ?? notStarted('kubernetes');
    },
  };
}

function notStarted(part: string): never {
  throw new Error(`this lab was started with ${part}: false`);
}

async function prepareTemporal(supervisor: Supervisor, options: LabOptions, settings: LabSettings, log: Log) {
  const config = await readTemporalDevConfig(options.temporalConfigFile);
  const program = await ensureTemporalCli(settings, log);
  return () => startTemporal({ supervisor, program, config });
}

async function prepareKubernetes(supervisor: Supervisor, options: LabOptions, settings: LabSettings, log: Log) {
  const timing = { graceSeconds: options.nodeGraceSeconds ?? DEFAULT_GRACE_SECONDS };
  const { kubeconfig } = options;
  if (kubeconfig !== undefined) return () => useCluster({ supervisor, kubeconfig, timing, settings, log });
  const tools = await ensureKubernetesTools(settings, log);
  return () =>
    startKubernetes({
      supervisor,
      tools,
      timing,
      storesJson: options.storesJson === true,
      audits: options.audits === true,
    });
}

async function makeDirectory({ directory }: LabOptions): Promise<string> {
  if (directory === undefined) return mkdtemp(join(tmpdir(), TEMPORARY_PREFIX));
  const path = resolve(directory);
  await mkdir(path, { recursive: true });
  const owner = await readProcesses(path);
  if (owner !== undefined && isAlive(owner.supervisor)) {
    throw new Error(
      `${path} belongs to a lab that is running (process ${owner.supervisor.pid}): stop it or choose another`,
    );
  }
  owner?.processes.forEach(killForGood);
  return path;
}

/** What a lab left running or lying about whose supervisor was killed together with its parent. */
async function sweepDeadLabs(): Promise<void> {
  const names = await readdir(tmpdir());
  for (const name of names.filter((candidate) => candidate.startsWith(TEMPORARY_PREFIX))) {
    const directory = join(tmpdir(), name);
    const found = await readProcesses(directory);
    if (found === undefined || isAlive(found.supervisor)) continue;
    found.processes.forEach(killForGood);
    // The processes of a machine end a moment after its keeper, and may still write.
    await rm(directory, { recursive: true, force: true, maxRetries: 10 });
  }
}

const identity = z.object({ pid: z.int().positive(), startTime: z.string() });
/** processes.json, as supervisor.mjs writes it. */
const processesFile = z.object({ supervisor: identity, processes: z.array(identity.extend({ id: z.string() })) });

/** What a lab in this directory runs, if there is one. */
export async function readProcesses(directory: string): Promise<z.infer<typeof processesFile> | undefined> {
  try {
    return processesFile.parse(JSON.parse(await readFile(join(directory, 'processes.json'), 'utf8')));
  } catch {
    return undefined;
  }
}
