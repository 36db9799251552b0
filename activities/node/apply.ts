import { heartbeat } from '@temporalio/activity';
import { DRYDOCK_ANNOTATIONS } from '../../machine-config/api/flavour.js';
import type { ApplyResult, TargetStep } from '../../workflows/contract/activities.js';
import { applyPlan, ApplyFailedError } from '../host/apply.js';
import { removeForceFile } from '../host/force.js';
import type { Journal } from '../host/journal.js';
import type { UpdatePlan } from '../host/plan.js';
import { UndoFailedError } from '../host/undo.js';
import { degradingOnFailure } from './degraded.js';
import type { NodeDependencies } from './dependencies.js';
import { exclusively } from './exclusively.js';
import { failure } from './failures.js';
import { grantedNode, onFreshNode, swapNode, type OwnNode } from './own-node.js';
import { planFor } from './update-plan.js';

const HEARTBEAT_MS = 5_000;

/**
 * Brings the disk to the target, all or nothing. From the mark on the Node on, which is written only while the Node is
 * still granted this target, nothing retargets the update. Once applied, it answers again and does nothing.
 */
export async function apply(input: TargetStep, deps: NodeDependencies): Promise<ApplyResult> {
  const own = await grantedNode(input, deps);
  return degradingOnFailure(input, deps, () =>
    exclusively(`apply ${input.target}`, deps, async () => {
      const journal = await deps.store.journal();
      if (journal?.target === input.target) {
        await markApplying(input, deps);
        if (own.facts.force !== undefined) await removeForceFile(deps.host);
        return answer(journal, deps);
      }
      const plan = await planFor(input.target, own, deps);
      refuseUndrained(plan, own, deps);
      const marked = await markApplying(input, deps);
      const applied = await carryOut(plan, marked, deps);
      deps.events?.normal('UpdateApplied', `${input.target} is on the disk`);
      if (own.facts.force !== undefined) await removeForceFile(deps.host);
      return answer(applied, deps);
    }),
  );
}

/** The disk has changed since `prepare`, or `prepare` planned another config: pods are not to be surprised by a reboot. */
function refuseUndrained({ cost, target }: UpdatePlan, { facts }: OwnNode, { node }: NodeDependencies): void {
  if (facts.unschedulable || (cost !== 'drain' && cost !== 'reboot')) return;
  throw failure(
    'NotDrained',
    `${target.metadata.name} costs ${node} a ${cost}, but it is not cordoned: the update plans again, and drains`,
  );
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
  const { host, store } = deps;
  // From here on it is another attempt that counts.
  await store.removeRollback();
  try {
    const now = deps.now().toISOString();
    return await heartbeating((onStep) => applyPlan({ host, store, plan, from: own.current, now, onStep }));
  } catch (error) {
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
  return onFreshNode(async () => {
    const own = await grantedNode(input, deps);
    if (own.facts.applying !== input.target) {
      await swapNode(own, { annotations: { [DRYDOCK_ANNOTATIONS.applying]: input.target } }, deps);
    }
    return own;
  });
}
