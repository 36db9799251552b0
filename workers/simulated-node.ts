import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import {
  bootSimulatedHost,
  isRebootPending,
  readFaults,
  seedSimulatedHost,
} from '../activities/host/simulated-host.js';
import type { KubernetesClient } from '../activities/kubernetes/client.js';
import { SimulatedKubelet } from './simulated-kubelet.js';

/** A booted machine with its worker. */
export interface PoweredNode {
  readonly down: Promise<{
    readonly why: string;
    /** False: only the worker's process ended, the machine is still in its boot. */
    readonly isReboot: boolean;
  }>;
  /** What is left of a boot that is over is thrown away, after the machine was away and before it boots again. */
  discard(): void;
  /** The end of the lab: graceful. */
  stop(): Promise<void>;
}

export interface SimulatedNodeOptions {
  readonly name: string;
  readonly root: string;
  readonly client: KubernetesClient;
  /** How long the machine is away when it reboots. */
  readonly awayMs: number;
  readonly logger: Logger;
  /** Starts the machine's worker in the present boot. */
  readonly powerOn: () => Promise<PoweredNode>;
  readonly signal: AbortSignal;
}

/** Plays one machine until the signal: boots it, and when it goes down lets it be away for a while and boots it again. */
export async function playNode(options: SimulatedNodeOptions): Promise<void> {
  const { name, root, logger, signal } = options;
  const kubelet = new SimulatedKubelet(options.client, name, (err) => logger.debug({ err, node: name }, 'kubelet'));
  await seedSimulatedHost(root);
  // The process was killed while the machine was on its way down.
  if (await isRebootPending(root)) await beAway(options, kubelet);
  while (!signal.aborted) {
    await kubelet.comeUp(await readBootId(root));
    const powered = await options.powerOn();
    const down = await Promise.race([powered.down, aborted(signal)]);
    if (down === undefined) {
      await powered.stop();
      return;
    }
    logger.info({ node: name, ...down }, down.isReboot ? 'machine goes down' : 'worker ended');
    if (down.isReboot) await beAway(options, kubelet, () => powered.discard());
  }
}

async function beAway(options: SimulatedNodeOptions, kubelet: SimulatedKubelet, discard?: () => void): Promise<void> {
  const { name, root, logger, awayMs } = options;
  const until = Date.now() + ((await readFaults(root)).awayMs ?? awayMs);
  await kubelet.goneDown();
  await sleep(Math.max(0, until - Date.now()));
  discard?.();
  const bootId = await bootSimulatedHost(root);
  logger.info({ node: name, bootId }, 'machine boots');
}

async function readBootId(root: string): Promise<string> {
  return (await readFile(join(root, 'proc/sys/kernel/random/boot_id'), 'utf8')).trim();
}

function aborted(signal: AbortSignal): Promise<undefined> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve(undefined);
    else signal.addEventListener('abort', () => resolve(undefined), { once: true });
  });
}
