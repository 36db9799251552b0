import { DRYDOCK_ANNOTATIONS } from '../../machine-config/api/flavour.js';
import type { NodeStep, TargetStep, UncordonResult } from '../../workflows/contract/activities.js';
import { verifyHost } from '../host/verify.js';
import type { NodeDependencies } from './dependencies.js';
import { exclusively } from './exclusively.js';
import { failure } from './failures.js';
import { onFreshNode, ownNode, swapNode, type NodePatch, type OwnNode } from './own-node.js';

/**
 * The last step: our cordon goes, and in the same write the target becomes current and the state Done; then the journal
 * is closed. Only if the update has really arrived on this host. Answers again and changes nothing when done already.
 */
export async function uncordon(input: TargetStep, deps: NodeDependencies): Promise<UncordonResult> {
  return exclusively(`uncordon after ${input.target}`, deps, async () => {
    await checkArrived(input, deps);
    const { annotations } = deps.flavour;
    const uncordoned = await onFreshNode(async () => {
      const own = await ownNode(input, deps);
      const isDone = own.current === input.target && own.facts.state === 'Done' && own.facts.cordonedFor === undefined;
      if (isDone && own.facts.applying === undefined) return !own.facts.unschedulable;
      const lift = liftOurCordon(own);
      await swapNode(
        own,
        {
          ...lift,
          annotations: {
            ...lift.annotations,
            [annotations.currentConfig]: input.target,
            ...doneAnnotations(deps),
          },
        },
        deps,
      );
      deps.events?.normal('NodeDone', `runs ${input.target}`);
      return own.facts.cordonedFor !== undefined;
    });
    await checkWritten(input, deps);
    await deps.store.removeJournal();
    await deps.store.collectGarbage();
    return { uncordoned };
  });
}

/** A task alone does not make an update: the host's own record must say that the target is applied and booted. */
async function checkArrived(input: TargetStep, deps: NodeDependencies): Promise<void> {
  const { facts, current } = await ownNode(input, deps);
  const journal = await deps.store.journal();
  const onDisk = (await deps.store.currentConfig())?.metadata.name;
  if (onDisk !== input.target) {
    throw failure('NotGranted', `${deps.node} has ${onDisk ?? 'nothing'} on its disk, not ${input.target}`);
  }
  if (journal?.needsReboot === true && journal.bootId === (await deps.host.bootId())) {
    throw failure('NotGranted', `${deps.node} has not rebooted since ${input.target} was applied`);
  }
  if (journal !== undefined) return;
  if (facts.desired !== undefined && facts.desired !== current && current === input.target) {
    throw failure('NotGranted', `${deps.node} runs ${current} and is being updated to ${facts.desired}`);
  }
}

/** "Done" counts only when a fresh read shows it. */
async function checkWritten(input: TargetStep, deps: NodeDependencies): Promise<void> {
  const { facts, current } = await ownNode(input, deps);
  if (current !== input.target || facts.cordonedFor !== undefined) {
    throw failure('Conflict', `${deps.node} does not show what was written to it; trying again`);
  }
}

/**
 * Gives the node back without the update: our cordon goes; where nothing is wanted any more, Working becomes Done, and so
 * does the failure of an update that is not wanted any more, if the disk is as the current config says. Otherwise
 * Degraded stays. An update that is on the disk is not given back, it is finished by the next one.
 */
export async function release(input: NodeStep, deps: NodeDependencies): Promise<UncordonResult> {
  return exclusively('release', deps, () =>
    onFreshNode(async () => {
      const own = await ownNode(input, deps);
      if ((await deps.store.journal()) !== undefined) return { uncordoned: false };
      const lift = liftOurCordon(own);
      const annotations = { ...lift.annotations, ...((await isWell(own, deps)) ? doneAnnotations(deps) : {}) };
      if (Object.keys(annotations).length > 0) await swapNode(own, { ...lift, annotations }, deps);
      return { uncordoned: own.facts.cordonedFor !== undefined };
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

/** Only with our mark beside it is a cordon ours. */
function liftOurCordon({ facts }: OwnNode): NodePatch {
  if (facts.cordonedFor === undefined) return { annotations: {} };
  return { annotations: { [DRYDOCK_ANNOTATIONS.cordonedFor]: null }, unschedulable: null };
}
