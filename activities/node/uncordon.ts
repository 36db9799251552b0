import { DRYDOCK_ANNOTATIONS } from '../../machine-config/api/flavour.js';
import { isLifted, liftChange } from '../../machine-config/drain/cordon-change.js';
import { lastUpdateText } from '../../machine-config/drain/last-update.js';
import type { NodeFacts } from '../../machine-config/pool/facts.js';
import type { NodeStep, TargetStep, UncordonResult } from '../../workflows/contract/activities.js';
import type { Journal } from '../host/journal.js';
import { verifyHost } from '../host/verify.js';
import type { NodeDependencies } from './dependencies.js';
import { exclusively } from './exclusively.js';
import { failure } from './failures.js';
import { changeOwnNode, onFreshNode, ownNode, swapNode, type NodePatch, type OwnNode } from './own-node.js';

/**
 * The last step: our cordon goes, unless somebody holds the node, and in the same write the target becomes current and
 * the state Done; then the journal is closed. Only if the update has really arrived on this host. Answers again and
 * changes nothing when done already.
 */
export async function uncordon(input: TargetStep, deps: NodeDependencies): Promise<UncordonResult> {
  return exclusively(`uncordon after ${input.target}`, deps, async () => {
    const record = await hostRecord(deps);
    const { own, result } = await changeOwnNode(input, deps, (seen) => {
      refuseUnlessArrived(input, { own: seen, record }, deps);
      if (isDone(seen, input)) return { result: { uncordoned: !seen.facts.unschedulable, isNew: false } };
      const patch = donePatch(input, { own: seen, record }, deps);
      return { patch, result: { uncordoned: isLifted(seen.facts), isNew: true } };
    });
    checkWritten(input, own, deps);
    if (result.isNew) deps.events?.normal('NodeDone', doneWords(input, own));
    await deps.store.removeJournal();
    await deps.store.collectGarbage();
    endDrain(deps);
    return { uncordoned: result.uncordoned };
  });
}

function isDone({ facts, current }: OwnNode, { target }: TargetStep): boolean {
  return current === target && facts.state === 'Done' && !isMarked(facts) && facts.applying === undefined;
}

/** Our cordon, or something else of a drain, is still on it. */
function isMarked(facts: NodeFacts): boolean {
  return facts.cordonedFor !== undefined || facts.drainSince !== undefined;
}

/** What the host itself knows of its update. */
interface HostRecord {
  readonly journal: Journal | undefined;
  readonly onDisk: string | undefined;
  readonly bootId: string;
}

interface Arrival {
  readonly own: OwnNode;
  readonly record: HostRecord;
}

async function hostRecord({ store, host }: NodeDependencies): Promise<HostRecord> {
  const onDisk = (await store.currentConfig())?.metadata.name;
  return { onDisk, journal: await store.journal(), bootId: await host.bootId() };
}

function donePatch({ target }: TargetStep, { own, record }: Arrival, deps: NodeDependencies): NodePatch {
  const { facts } = own;
  const { journal } = record;
  const lift = liftChange(facts);
  const { release } = facts;
  const lastUpdate = lastUpdateText({
    target,
    now: deps.now(),
    drainSince: facts.drainSince,
    applyAt: journal?.at,
    appliedAt: journal?.appliedAt,
    rebooted: journal?.needsReboot === true,
  });
  return {
    ...lift,
    annotations: {
      ...lift.annotations,
      [deps.flavour.annotations.currentConfig]: target,
      [DRYDOCK_ANNOTATIONS.lastUpdate]: lastUpdate,
      ...(release === target ? { [DRYDOCK_ANNOTATIONS.release]: null } : {}),
      ...(facts.retryAt === undefined ? {} : { [DRYDOCK_ANNOTATIONS.retry]: null }),
      ...(facts.noDrain === undefined ? {} : { [DRYDOCK_ANNOTATIONS.noDrain]: null }),
      ...doneAnnotations(deps),
    },
  };
}

function doneWords({ target }: TargetStep, { facts }: OwnNode): string {
  return facts.heldCordon ? `runs ${target}; stays cordoned, held: ${facts.hold ?? ''}` : `runs ${target}`;
}

/** A task alone does not make an update: the host's own record must say that the target is applied and booted. */
function refuseUnlessArrived({ target }: TargetStep, { own, record }: Arrival, { node }: NodeDependencies): void {
  const { journal, onDisk, bootId } = record;
  if (onDisk !== target) throw failure('NotGranted', `${node} has ${onDisk ?? 'nothing'} on its disk, not ${target}`);
  if (journal?.needsReboot === true && journal.bootId === bootId) {
    throw failure('NotGranted', `${node} has not rebooted since ${target} was applied`);
  }
  const { facts, current } = own;
  const isUpdated = facts.desired !== undefined && facts.desired !== current;
  if (journal === undefined && isUpdated && current === target) {
    throw failure('NotGranted', `${node} runs ${current} and is being updated to ${facts.desired ?? ''}`);
  }
}

/** "Done" counts only when the API server shows it. */
function checkWritten(input: TargetStep, { facts, current }: OwnNode, deps: NodeDependencies): void {
  if (current !== input.target || facts.cordonedFor !== undefined) {
    throw failure('Conflict', `${deps.node} does not show what was written to it; trying again`);
  }
}

/**
 * Gives the node back without the update: our cordon goes, unless somebody holds the node; where nothing is wanted any
 * more, Working becomes Done, and so does the failure of an update that is not wanted any more, if the disk is as the
 * current config says. Otherwise Degraded stays. An update that is on the disk is not given back, it is finished by the
 * next one.
 */
export async function release(input: NodeStep, deps: NodeDependencies): Promise<UncordonResult> {
  return exclusively('release', deps, () =>
    onFreshNode(async () => {
      const own = await ownNode(input, deps);
      if ((await deps.store.journal()) !== undefined) return { uncordoned: false };
      const lift = liftChange(own.facts);
      const annotations = { ...lift.annotations, ...((await isWell(own, deps)) ? doneAnnotations(deps) : {}) };
      if (Object.keys(annotations).length > 0) await swapNode(own, { ...lift, annotations }, deps);
      endDrain(deps);
      return { uncordoned: isLifted(own.facts) };
    }),
  );
}

/** Nothing else is wanted of it than what it runs, and it does run that. */
async function isWell({ facts, current }: OwnNode, deps: NodeDependencies): Promise<boolean> {
  if (facts.state === 'Done' || (facts.desired ?? current) !== current) return false;
  if (facts.state === 'Working') return true;
  if (facts.failure === undefined || facts.failure.target === current) return false;
  const { host, store, flavour } = deps;
  const config = await store.currentConfig();
  if (config === undefined) return true;
  return (await verifyHost(config, { host, sshUser: flavour.sshUser, booted: true })).length === 0;
}

function doneAnnotations({ flavour }: NodeDependencies): Record<string, string | null> {
  const { state, reason } = flavour.annotations;
  return {
    [state]: 'Done',
    [reason]: '',
    [DRYDOCK_ANNOTATIONS.applying]: null,
    [DRYDOCK_ANNOTATIONS.failure]: null,
    [DRYDOCK_ANNOTATIONS.force]: null,
    [DRYDOCK_ANNOTATIONS.forceGranted]: null,
  };
}

/** Nothing of the update is needed any more. */
function endDrain({ memory, metrics }: NodeDependencies): void {
  memory?.clear();
  metrics?.drain({ blocked: 0, seconds: 0 });
}
