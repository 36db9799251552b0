import { fork } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { mkdir, readFile, rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Connection } from '@temporalio/client';
import { z } from 'zod';
import { apiOf } from './kubernetes/own-cluster.js';
import { readProcesses } from './lab.js';
import { isAlive, killForGood } from './processes/process-identity.js';
import { waitUntil } from './processes/wait-until.js';
import { readLabSettings } from './settings.js';
import type { Log } from './tools/cache.js';

/** Options of `drydock lab up`; they travel to the background process as JSON. */
export interface LabUpOptions {
  /** Several labs can be up beside each other under different names. Default `default`. */
  readonly name?: string;
  readonly temporal?: boolean;
  readonly kubernetes?: boolean;
  readonly kubeconfig?: string;
  readonly directory?: string;
  readonly nodeGraceSeconds?: number;
  /** So many real systemd machines with the packaged node worker, `real-1` and so on. Default 0. */
  readonly realNodes?: number;
}

/** What a lab in the background is reached by. */
export const labStateSchema = z.object({
  name: z.string(),
  /** The process that `lab down` ends. */
  daemon: z.object({ pid: z.int().positive(), startTime: z.string() }),
  startedAt: z.string(),
  directory: z.string(),
  temporal: z.object({ address: z.string(), uiUrl: z.string().nullable(), namespace: z.string() }).nullable(),
  kubernetes: z.object({ server: z.string(), kubeconfig: z.string(), kubectl: z.string() }).nullable(),
  /** `enter` is a command that opens a shell in the machine. */
  realNodes: z.array(z.object({ name: z.string(), address: z.string(), root: z.string(), enter: z.string() })),
});
export type LabState = z.infer<typeof labStateSchema>;

export interface LabStatus {
  readonly name: string;
  readonly state: 'running' | 'stopped';
  /** Undefined when it is stopped. */
  readonly lab?: LabState;
  readonly processes: readonly { name: string; pid: number; running: boolean }[];
  /** One line for each part that does not answer; empty when all is well. */
  readonly problems: readonly string[];
}

/** What the background process tells the one that started it. */
export type DaemonMessage = { log: string } | { ready: LabState } | { error: string };

const DEFAULT_NAME = 'default';
const STOP_TIMEOUT_MS = 20_000;

export function labStateFile(name = DEFAULT_NAME): string {
  if (!/^[a-z0-9][a-z0-9-]{0,40}$/.test(name)) {
    throw new Error(`the name of a lab is up to 41 small letters, digits and -; "${name}" is not`);
  }
  return join(readLabSettings().stateDirectory, 'lab', `${name}.json`);
}

/** Starts a lab that stays when this process ends. One that is up already is left as it is. */
export async function labUp(options: LabUpOptions, log: Log): Promise<{ lab: LabState; alreadyUp: boolean }> {
  const file = labStateFile(options.name);
  const running = await readState(file);
  if (running !== undefined && isAlive(running.daemon)) return { lab: running, alreadyUp: true };
  await mkdir(join(file, '..'), { recursive: true });
  const lab = await startDaemon(file, absolute(options), log);
  return { lab, alreadyUp: false };
}

/** The background process has another working directory. */
function absolute(options: LabUpOptions): LabUpOptions {
  const { directory, kubeconfig } = options;
  return {
    ...options,
    ...(directory === undefined ? {} : { directory: resolve(directory) }),
    ...(kubeconfig === undefined ? {} : { kubeconfig: resolve(kubeconfig) }),
  };
}

async function startDaemon(stateFile: string, options: LabUpOptions, log: Log): Promise<LabState> {
  const output = openSync(`${stateFile}.log`, 'w');
  const daemon = fork(
    fileURLToPath(new URL('lab-daemon.ts', import.meta.url)),
    [stateFile, JSON.stringify({ ...options, name: options.name ?? DEFAULT_NAME })],
    { detached: true, execArgv: ['--import', import.meta.resolve('tsx')], stdio: ['ignore', output, output, 'ipc'] },
  );
  closeSync(output);
  try {
    return await new Promise<LabState>((started, failed) => {
      daemon.on('message', (message) => {
        const said = message as DaemonMessage;
        if ('log' in said) log(said.log);
        else if ('ready' in said) started(said.ready);
        else failed(new Error(said.error));
      });
      daemon.once('exit', () => failed(new Error(`the lab did not start; see ${stateFile}.log`)));
    });
  } finally {
    if (daemon.connected) daemon.disconnect();
    daemon.unref();
  }
}

/** Ends a lab and everything in it. @returns false if there was none. */
export async function labDown(name = DEFAULT_NAME): Promise<boolean> {
  const file = labStateFile(name);
  const state = await readState(file);
  if (state === undefined) return false;
  const wasRunning = isAlive(state.daemon);
  const supervisor = (await readProcesses(state.directory))?.supervisor;
  if (wasRunning) process.kill(state.daemon.pid, 'SIGTERM');
  const ended = () => Promise.resolve(!isAlive(state.daemon) && (supervisor === undefined || !isAlive(supervisor)));
  await waitUntil(ended, { what: `lab ${name} to end`, timeoutMs: STOP_TIMEOUT_MS }).catch(() => {
    // Its supervisor ends the rest when this one is gone.
    killForGood(state.daemon);
  });
  await rm(file, { force: true });
  return wasRunning;
}

/** Where the lab is and how it is: asks its parts, nothing is taken from the state file alone. */
export async function labStatus(name = DEFAULT_NAME): Promise<LabStatus> {
  const lab = await readState(labStateFile(name));
  if (lab === undefined || !isAlive(lab.daemon)) return { name, state: 'stopped', processes: [], problems: [] };
  const recorded = (await readProcesses(lab.directory))?.processes ?? [];
  const processes = recorded.map((one) => ({ name: one.id, pid: one.pid, running: isAlive(one) }));
  const problems = await Promise.all([
    lab.temporal === null ? undefined : problemOf('Temporal', askTemporal(lab.temporal)),
    lab.kubernetes === null ? undefined : problemOf('Kubernetes', askKubernetes(lab.kubernetes.kubeconfig)),
  ]);
  return { name, state: 'running', lab, processes, problems: problems.filter((problem) => problem !== undefined) };
}

async function problemOf(part: string, answer: Promise<unknown>): Promise<string | undefined> {
  return answer.then(
    () => undefined,
    (error: unknown) => `${part} does not answer: ${error instanceof Error ? error.message : String(error)}`,
  );
}

async function askTemporal({ address, namespace }: { address: string; namespace: string }): Promise<void> {
  const connection = await Connection.connect({ address, connectTimeout: 3_000 });
  try {
    const ask = () => connection.workflowService.describeNamespace({ namespace });
    await connection.withDeadline(Date.now() + 3_000, ask);
  } finally {
    await connection.close();
  }
}

async function askKubernetes(kubeconfig: string): Promise<void> {
  const api = await apiOf(kubeconfig);
  try {
    await api.call('GET', '/readyz');
  } finally {
    api.close();
  }
}

async function readState(file: string): Promise<LabState | undefined> {
  try {
    return labStateSchema.parse(JSON.parse(await readFile(file, 'utf8')));
  } catch {
    return undefined;
  }
}
