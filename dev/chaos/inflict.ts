import { setTimeout as sleep } from 'node:timers/promises';
import type { ApiProxy } from './api-proxy.js';
import type { ClusterFault, Fault, NetworkFault, PlannedFault, ProcessFault, ProcessName } from './fault.js';
import type { Hand } from './hand.js';
import type { Keeper, MortalProcess } from './keeper.js';
import type { Kubelets } from './kubelets.js';
import type { TemporalLink } from './temporal-link.js';
import { within } from './within.js';

/** What faults are played on. */
export interface Stage {
  readonly processes: Readonly<Record<ProcessName, MortalProcess>>;
  readonly keeper: Keeper;
  readonly apiProxy: ApiProxy;
  readonly temporalLink: TemporalLink;
  readonly hand: Hand;
  readonly kubelets: Kubelets;
}

export interface InflictOptions {
  readonly stage: Stage;
  readonly plan: readonly PlannedFault[];
  readonly onFault: (fault: Fault) => void;
  /** The fault is over, and what it broke is mended. */
  readonly onMended?: (fault: Fault) => void;
  /** Ends before the plan does; what is under way is mended all the same. */
  readonly signal?: AbortSignal;
}

/** Longer than the API server, etcd and Temporal may need to be ready, and people to do what they were about to. */
const MENDING_LIMIT_MS = 300_000;

/** Plays the plan, each fault at its time. Resolves when the last one is over and mended; rejects if one cannot be. */
export async function inflict({ stage, plan, onFault, onMended, signal }: InflictOptions): Promise<void> {
  const startedAt = Date.now();
  const under: Promise<void>[] = [];
  for (const { atMs, fault } of plan) {
    await pause(Math.max(0, startedAt + atMs - Date.now()), signal);
    if (signal?.aborted === true) break;
    onFault(fault);
    const played = play(stage, fault, signal).then(() => onMended?.(fault));
    // Told at the end, when all the others are mended too.
    played.catch(() => undefined);
    under.push(played);
  }
  const all = await within(MENDING_LIMIT_MS, 'the last faults to be over and mended', Promise.allSettled(under));
  const failed = all.find((result) => result.status === 'rejected');
  if (failed !== undefined) throw failed.reason;
}

function play(stage: Stage, fault: Fault, signal?: AbortSignal): Promise<void> {
  switch (fault.kind) {
    case 'kill':
    case 'freeze':
      return playOnProcess(stage, fault, signal);
    case 'cutApi':
    case 'cutTemporal':
    case 'apiErrors':
    case 'lostAnswers':
      return playOnNetwork(stage, fault, signal);
    default:
      return playOnCluster(stage, fault, signal);
  }
}

async function playOnProcess(stage: Stage, fault: ProcessFault, signal?: AbortSignal): Promise<void> {
  const { processes, keeper, kubelets } = stage;
  const process = processes[fault.process];
  if (fault.kind === 'freeze') {
    await process.kill('SIGSTOP');
    await pause(fault.forMs, signal);
    await process.kill('SIGCONT');
    return;
  }
  await keeper.takeAway(process);
  await pause(fault.forMs, signal);
  await keeper.bringBack(process);
  if (fault.process === 'apiServer' || fault.process === 'etcd') await kubelets.renew();
}

/** Two faults of one sort may overlap: the later one decides. */
async function playOnNetwork(stage: Stage, fault: NetworkFault, signal?: AbortSignal): Promise<void> {
  const { apiProxy, temporalLink } = stage;
  switch (fault.kind) {
    case 'cutTemporal':
      temporalLink.cut();
      await pause(fault.forMs, signal);
      temporalLink.mend();
      return;
    case 'cutApi':
      apiProxy.set(fault.audience, { cut: true });
      await pause(fault.forMs, signal);
      apiProxy.set(fault.audience, { cut: false });
      return;
    case 'apiErrors':
      apiProxy.set(fault.audience, { errors: fault.share });
      await pause(fault.forMs, signal);
      apiProxy.set(fault.audience, { errors: 0 });
      return;
    case 'lostAnswers':
      apiProxy.set(fault.audience, { lostAnswers: fault.share });
      await pause(fault.forMs, signal);
      apiProxy.set(fault.audience, { lostAnswers: 0 });
  }
}

async function playOnCluster({ hand }: Stage, fault: ClusterFault, signal?: AbortSignal): Promise<void> {
  switch (fault.kind) {
    case 'config':
      return hand.setConfig(fault.pool, fault.revision);
    case 'maxUnavailable':
      return hand.setPool(fault.pool, { maxUnavailable: fault.value });
    case 'pause':
      await hand.setPool(fault.pool, { paused: true });
      await pause(fault.forMs, signal);
      return hand.setPool(fault.pool, { paused: false });
    case 'recreateNode': {
      const createAgain = await hand.deleteNode(fault.node);
      await pause(fault.forMs, signal);
      return createAgain();
    }
    case 'relabelNode':
      return hand.relabel(fault.node, fault.pool);
    case 'cordonNode':
      return hand.cordon(fault.node);
    case 'uncordonNode':
      return hand.uncordon(fault.node);
    case 'holdNode':
      return hand.hold(fault.node);
    case 'releaseNode':
      return hand.release(fault.node);
    case 'createPods':
      return hand.createPods(fault.app, fault.count);
  }
}

async function pause(ms: number, signal?: AbortSignal): Promise<void> {
  await sleep(ms, undefined, signal === undefined ? {} : { signal }).catch(() => undefined);
}
