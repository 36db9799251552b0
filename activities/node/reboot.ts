import type { ConfirmResult, RebootResult, TargetStep } from '../../workflows/contract/activities.js';
import type { Journal } from '../host/journal.js';
import { verifyHost } from '../host/verify.js';
import { degradingOnFailure } from './degraded.js';
import type { NodeDependencies } from './dependencies.js';
import { exclusively } from './exclusively.js';
import { failure, notYet } from './failures.js';
import { grantedNode, ownNode } from './own-node.js';
import { inWords } from './update-plan.js';

/** Asks for one reboot, whoever asks how often: it is keyed by the boot in which the update was applied. */
export async function reboot(input: TargetStep, deps: NodeDependencies): Promise<RebootResult> {
  await grantedNode(input, deps);
  return exclusively(`reboot for ${input.target}`, deps, async () => {
    const { host } = deps;
    const journal = await appliedUpdate(input, deps);
    if (journal === undefined)
      throw failure('NotGranted', `${input.target} was not applied, so nothing needs a reboot`);
    const oldBootId = journal.bootId;
    if (!journal.needsReboot || (await host.bootId()) !== oldBootId) return { requested: false, oldBootId };
    await host.reboot({ bootId: oldBootId, reason: `Drydock: ${journal.from} → ${journal.target}` });
    return { requested: true, oldBootId };
  });
}

/**
 * Whether the update has arrived: rebooted if need be, the disk as the target says, the Node Ready in this boot. Until
 * then NotRebootedYet or NodeNotReady, both benign and retryable. Throws NotAsTarget (and the Node is Degraded) if the
 * disk differs.
 */
export async function confirm(input: TargetStep, deps: NodeDependencies): Promise<ConfirmResult> {
  const own = await ownNode(input, deps);
  const { host, store, flavour } = deps;
  return degradingOnFailure(input, deps, () =>
    exclusively(`confirm ${input.target}`, deps, async () => {
      const bootId = await host.bootId();
      const journal = await appliedUpdate(input, deps);
      const rebooted = journal?.needsReboot === true && journal.bootId !== bootId;
      if (journal?.needsReboot === true && !rebooted) {
        throw notYet(
          'NotRebootedYet',
          `${deps.node} is still in the boot ${bootId} in which ${input.target} was applied`,
        );
      }
      const config = await store.currentConfig();
      if (config?.metadata.name !== input.target) {
        throw failure(
          'NotGranted',
          `${deps.node} has ${config?.metadata.name ?? 'nothing'} on its disk, not ${input.target}`,
        );
      }
      const drift = await verifyHost(config, { host, sshUser: flavour.sshUser, booted: true });
      if (drift.length > 0) {
        throw failure('NotAsTarget', `after the update the disk is not as ${input.target} says: ${inWords(drift)}`);
      }
      if (own.facts.bootId !== bootId) {
        throw notYet('NodeNotReady', `the kubelet of ${deps.node} has not reported the boot ${bootId} yet`);
      }
      if (!own.facts.ready) {
        throw notYet(
          'NodeNotReady',
          `${deps.node} is not Ready yet: ${own.facts.notReadyBecause ?? 'no reason given'}`,
        );
      }
      return { bootId, rebooted };
    }),
  );
}

/** The journal, if it is of this target. */
async function appliedUpdate(input: TargetStep, { store }: NodeDependencies): Promise<Journal | undefined> {
  const journal = await store.journal();
  return journal?.target === input.target ? journal : undefined;
}
