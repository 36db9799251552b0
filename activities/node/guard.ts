import { KINDS } from '../kubernetes/client.js';
import type { Journal } from '../host/journal.js';
import { nodeFacts } from '../../machine-config/pool/facts.js';
import type { TargetStep } from '../../workflows/contract/activities.js';
import type { NodeDependencies } from './dependencies.js';
import type { Node } from './own-node.js';
import { confirm } from './reboot.js';
import { finishRollBack, rollBack } from './roll-back.js';
import { release, uncordon } from './uncordon.js';

/** How the guard finds out what still works. None of them throws, and each answers within seconds. */
export interface Probes {
  /** The kubelet says that it is well. */
  kubelet(): Promise<boolean>;
  /** The API server answers, whatever it answers. */
  apiServer(): Promise<boolean>;
  /**
   * Something beyond this host answers all the same: Temporal, or the API server's machine by refusing the connection.
   * Then an API server that does not answer is not the fault of this host. (A gateway that answers proves nothing: with
   * a wrong route or name server it answers, too.)
   */
  network(): Promise<boolean>;
  temporal(): Promise<boolean>;
}

/** Seconds; 0 turns the guard in question off. */
export interface GuardTimes {
  /** For so long after a reboot a node may be without kubelet or API server before the update is taken back. */
  readonly probationSeconds: number;
  /** Without Temporal for so long, a node whose update is complete lifts its own cordon. */
  readonly selfUncordonSeconds: number;
  /** Without Temporal for so long, a node that was cordoned and to which nothing was applied lifts its own cordon. */
  readonly idleCordonSeconds: number;
  /** How often it looks. */
  readonly checkSeconds: number;
}

export const DEFAULT_GUARD_TIMES: GuardTimes = {
  probationSeconds: 20 * 60,
  selfUncordonSeconds: 5 * 60,
  idleCordonSeconds: 15 * 60,
  checkSeconds: 10,
};

/** What the guard did in one look. */
export type GuardAct = 'nothing' | 'rolledBack' | 'uncordoned' | 'released';

/** Since when something has been so, in seconds of a clock that survives restarts of the worker but no reboot. */
export interface Stopwatch {
  /** Seconds for which `what` has been so by now; 0 when it is not, or only now. */
  seconds(what: string, isSo: boolean): Promise<number>;
}

export interface GuardInput {
  readonly deps: NodeDependencies;
  readonly probes: Probes;
  readonly times: GuardTimes;
  readonly stopwatch: Stopwatch;
}

/**
 * One look at whether the node can be left to the engine. What it does, it does without Temporal, because it is there
 * for the time in which Temporal, or the network on the way to it, is away:
 *
 * - After a reboot into an update with which the kubelet does not come up, or with which the API server cannot be reached
 *   though the update may be to blame, the old state is restored and booted.
 * - A node that is done, or that nothing was done to, lifts its own cordon.
 */
export async function guardOnce(input: GuardInput): Promise<GuardAct> {
  const { deps } = input;
  if ((await deps.store.rollback()) !== undefined) {
    await finishRollBack(deps);
    return 'nothing';
  }
  const journal = await deps.store.journal();
  if (journal === undefined) return liftIdleCordon(input);
  const isRebooted = journal.needsReboot && journal.bootId !== (await deps.host.bootId());
  if (journal.phase !== 'applied' || (journal.needsReboot && !isRebooted)) return 'nothing';
  const onProbation = isRebooted ? await probation(input, journal) : 'passed';
  return onProbation === 'passed' ? liftCordonWhenDone(input, journal.target) : onProbation;
}

/** `passed`: nothing is wrong at this moment. */
async function probation(input: GuardInput, journal: Journal): Promise<GuardAct | 'passed'> {
  const { deps, stopwatch, times } = input;
  const why = await whyCutOff(input, journal.touchesNetwork === true);
  const seconds = await stopwatch.seconds(`cut off by ${journal.target}`, why !== undefined);
  if (why === undefined) return 'passed';
  if (times.probationSeconds === 0 || seconds < times.probationSeconds) return 'nothing';
  const reason = `${why} for ${inWords(seconds)} after the reboot into it; the state before it was restored and booted`;
  return (await rollBack(deps, journal.target, reason)) ? 'rolledBack' : 'nothing';
}

function inWords(seconds: number): string {
  return seconds < 120 ? `${Math.round(seconds)} seconds` : `${Math.round(seconds / 60)} minutes`;
}

/** What the update on probation may have broken, in words; undefined: nothing. */
async function whyCutOff({ probes }: GuardInput, touchesNetwork: boolean): Promise<string | undefined> {
  if (!(await probes.kubelet())) return 'the kubelet was not healthy';
  if (!touchesNetwork || (await probes.apiServer()) || (await probes.network())) return undefined;
  return 'neither the API server nor Temporal could be reached';
}

/** The engine has been away for longer than the limit. */
async function isEngineAway({ probes, stopwatch }: GuardInput, limitSeconds: number): Promise<boolean> {
  const isAway = !(await probes.temporal());
  const seconds = await stopwatch.seconds('Temporal away', isAway);
  return isAway && limitSeconds > 0 && seconds >= limitSeconds;
}

async function liftCordonWhenDone(input: GuardInput, target: string): Promise<GuardAct> {
  const { deps, probes, times } = input;
  if (!(await isEngineAway(input, times.selfUncordonSeconds)) || !(await probes.kubelet())) return 'nothing';
  const step = await ownStep(deps, target);
  await confirm(step, deps);
  await uncordon(step, deps);
  return 'uncordoned';
}

async function liftIdleCordon(input: GuardInput): Promise<GuardAct> {
  const { deps, times } = input;
  if (!(await isEngineAway(input, times.idleCordonSeconds))) return 'nothing';
  const { cordonedFor } = await ownFacts(deps);
  if (cordonedFor === undefined) return 'nothing';
  await release(await ownStep(deps, cordonedFor), deps);
  return 'released';
}

async function ownFacts({ client, node, flavour }: NodeDependencies) {
  return nodeFacts(await client.get<Node>(KINDS.node, { name: node }), flavour);
}

async function ownStep(deps: NodeDependencies, target: string): Promise<TargetStep> {
  const { uid } = await ownFacts(deps);
  return { cluster: deps.clusterUid, pool: '', node: deps.node, nodeUid: uid, target };
}
