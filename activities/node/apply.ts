import { heartbeat } from '@temporalio/activity';
import { DRYDOCK_ANNOTATIONS } from '../../machine-config/api/flavour.js';
import { isTerminating, podName } from '../../machine-config/drain/drain-pods.js';
import type { ApplyResult, TargetStep } from '../../workflows/contract/activities.js';
import { applyPlan, ApplyFailedError } from '../host/apply.js';
import { removeForceFile } from '../host/force.js';
import { ApplyInterruptedError } from '../host/interruption.js';
import type { Journal } from '../host/journal.js';
import type { UpdatePlan } from '../host/plan.js';
import { UndoFailedError } from '../host/undo.js';
import { degradingOnFailure } from './degraded.js';
import type { NodeDependencies } from './dependencies.js';
import { exclusively } from './exclusively.js';
import { failure, notYet } from './failures.js';
import { changeOwnNode, checkGranted, recentlyGrantedNode, type OwnNode } from './own-node.js';
import { podsToMove } from './pods.js';
import { planFor } from './update-plan.js';
import { sayWorking } from './working.js';

const HEARTBEAT_MS = 5_000;

/**
 * Brings the disk to the target, all or nothing. From the mark on the Node on, which is written only while the Node is
 * still granted this target, nothing retargets the update. Once applied, it answers again and does nothing.
 */
export async function apply(input: TargetStep, deps: NodeDependencies): Promise<ApplyResult> {
  const own = await recentlyGrantedNode(input, deps);
  return degradingOnFailure(input, deps, () =>
    exclusively(`apply ${input.target}`, deps, async () => {
      const journal = await deps.store.journal();
      if (journal?.target === input.target) {
        await markApplying(input, deps);
        if (own.facts.force !== undefined) await removeForceFile(deps.host);
        return answer(journal, deps);
      }
      const plan = await planFor(input.target, own, deps);
      await refuseUndrained(plan, own, deps);
      const marked = await markApplying(input, deps);
      const applied = await carryOut(plan, marked, deps);
      // Where a reboot follows, its own Event says as much.
      if (!applied.needsReboot) deps.events?.normal('UpdateApplied', `${input.target} is on the disk`);
      if (own.facts.force !== undefined) await removeForceFile(deps.host);
      return answer(applied, deps);
    }),
  );
}

/**
 * The disk has changed since `prepare`, or `prepare` planned another config: pods are not to be surprised by a reboot.
 * Nor by somebody who only says that they have been evicted: what this worker has not drained itself it looks at.
 */
async function refuseUndrained(plan: UpdatePlan, own: OwnNode, deps: NodeDependencies): Promise<void> {
  const { cost } = plan;
  const target = plan.target.metadata.name;
  if (cost !== 'drain' && cost !== 'reboot') return;
  const refuse = (why: string) =>
    failure('NotDrained', `${target} costs ${deps.node} a ${cost}, but ${why}: the update plans again, and drains`);
  const { facts } = own;
  if (!facts.unschedulable) throw refuse('it is not cordoned');
  const isDrained = facts.drainSince !== undefined && deps.memory?.drain(facts.drainSince).isDone === true;
  if (isDrained || facts.noDrain === target) return;
  const left = (await podsToMove(deps)).filter((pod) => !isTerminating(pod));
  const [first] = left;
  if (first !== undefined) throw refuse(`${left.length} pods are left on it, ${podName(first)} among them`);
}

/** A service may take minutes to start, in which no step begins: the worker is there all the same. */
async function heartbeating<T>(work: (onStep: (step: string) => void) => Promise<T>): Promise<T> {
  let step = '';
  const beat = () => heartbeat({ step });
  const timer = setInterval(beat, HEARTBEAT_MS);
  try {
    return await work((next) => {
      step = next;
      beat();
    });
  } finally {
    clearInterval(timer);
  }
}

async function carryOut(plan: UpdatePlan, own: OwnNode, deps: NodeDependencies) {
  const { host, store, stopping: signal } = deps;
  // From here on it is another attempt that counts.
  await store.removeRollback();
  try {
    const now = deps.now().toISOString();
    const input = {
      host,
      store,
      plan,
      from: own.current,
      now,
      clock: deps.now,
      ...(signal === undefined ? {} : { signal }),
    };
    return await heartbeating((onStep) => applyPlan({ ...input, onStep }));
  } catch (error) {
    // Says nothing about the config: the next worker of this node applies it.
    if (error instanceof ApplyInterruptedError) throw notYet('HostBusy', error.message);
    if (error instanceof ApplyFailedError) {
      throw failure('ApplyFailed', error.message, error);
    }
    if (error instanceof UndoFailedError) {
      throw failure('UndoFailed', `${error.message}; mend the cause and the next attempt puts it back`, error);
    }
    throw error;
  }
}

async function answer(journal: Journal, { host }: NodeDependencies): Promise<ApplyResult> {
  return {
    reboot: journal.needsReboot && journal.bootId === (await host.bootId()),
    bootId: journal.bootId,
    filesWritten: journal.filesWritten,
    unitsChanged: journal.unitsChanged,
  };
}

/** The compare-and-swap against `assign`: whoever writes the Node first decides whether it is retargeted. */
async function markApplying(input: TargetStep, deps: NodeDependencies): Promise<OwnNode> {
  // Kubernetes answers a cordon with a taint: what is remembered from before that cannot be written back.
  if (deps.memory?.recall(input.nodeUid)?.facts.unschedulable === true) deps.memory.forget();
  const { own } = await changeOwnNode(input, deps, (seen) => {
    checkGranted(seen, input, deps);
    if (seen.facts.applying === input.target) return { result: undefined };
    const annotations = { [DRYDOCK_ANNOTATIONS.applying]: input.target, ...sayWorking(seen.facts, deps) };
    return { patch: { annotations }, result: undefined };
  });
  return own;
}
