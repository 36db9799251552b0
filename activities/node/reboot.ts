import { Context } from '@temporalio/activity';
import type { ApplicationFailure } from '@temporalio/common';
import type { ConfirmResult, RebootResult, TargetStep } from '../../workflows/contract/activities.js';
import { RebootInhibited } from '../host/host.js';
import type { Journal, Rollback } from '../host/journal.js';
import { verifyHost, type DriftItem } from '../host/verify.js';
import { degradingOnFailure, LONGEST_REASON } from './degraded.js';
import type { NodeDependencies } from './dependencies.js';
import { exclusively } from './exclusively.js';
import { failure, notYet } from './failures.js';
import { checkAddress, onFreshNode, ownNode, recentlyGrantedNode, swapNode, type OwnNode } from './own-node.js';
import { checkStaticPods } from './static-pods.js';
import { inWords } from './update-plan.js';

/** So shortly before its limit, a host that has not rebooted counts as one that will not: two more looks. */
const LAST_CALL_MS = 12_000;

/** Asks for one reboot, whoever asks how often: it is keyed by the boot in which the update was applied. */
export async function reboot(input: TargetStep, deps: NodeDependencies): Promise<RebootResult> {
  await recentlyGrantedNode(input, deps);
  return exclusively(`reboot for ${input.target}`, deps, async () => {
    const { host } = deps;
    const journal = await appliedUpdate(input, deps);
    if (journal === undefined)
      throw failure('NotGranted', `${input.target} was not applied, so nothing needs a reboot`);
    const oldBootId = journal.bootId;
    if (!journal.needsReboot || (await host.bootId()) !== oldBootId) return { requested: false, oldBootId };
    try {
      await host.reboot({ bootId: oldBootId, reason: `Drydock: ${journal.from} → ${journal.target}` });
    } catch (error) {
      if (error instanceof RebootInhibited) await sayWaiting(input, error.message, deps);
      throw error;
    }
    deps.events?.normal('Reboot', `reboots into ${input.target}`);
    return { requested: true, oldBootId };
  });
}

/** The Node says what its reboot waits for; the state is not touched. */
async function sayWaiting(input: TargetStep, why: string, deps: NodeDependencies): Promise<void> {
  const { reason } = deps.flavour.annotations;
  await onFreshNode(async () => {
    const own = await ownNode(input, deps);
    const words = `waiting to reboot: ${why}`.slice(0, LONGEST_REASON);
    if (own.facts.reason !== words) await swapNode(own, { annotations: { [reason]: words } }, deps);
  });
  deps.events?.warning('RebootInhibited', why);
}

/**
 * Whether the update has arrived: rebooted if need be, the disk as the target says, the Node Ready in this boot. Until
 * then NotRebootedYet or NodeNotReady, both benign and retryable. Throws, and the Node is Degraded: NotRebooted when the
 * limit is nearly over and the host is still in the old boot; WrongImage or NotAsTarget when it came back as something
 * else than the target; RolledBackAfterBoot when the host itself took the update back.
 */
export async function confirm(input: TargetStep, deps: NodeDependencies): Promise<ConfirmResult> {
  checkAddress(input, deps);
  const { host, store, flavour } = deps;
  return degradingOnFailure(input, deps, () =>
    exclusively(`confirm ${input.target}`, deps, async () => {
      const rollback = await store.rollback();
      if (rollback?.target === input.target) throw rolledBack(rollback);
      const bootId = await host.bootId();
      const journal = await appliedUpdate(input, deps);
      const hasToReboot = journal?.needsReboot === true;
      const rebooted = hasToReboot && journal.bootId !== bootId;
      if (hasToReboot && !rebooted) throw stillInOldBoot(input, bootId, deps);
      const own = recentlyReadyNode(input, bootId, deps) ?? (await ownNode(input, deps));
      const config = await store.currentConfig();
      if (config?.metadata.name !== input.target) {
        throw failure(
          'NotGranted',
          `${deps.node} has ${config?.metadata.name ?? 'nothing'} on its disk, not ${input.target}`,
        );
      }
      const drift = await verifyHost(config, { host, sshUser: flavour.sshUser, booted: true });
      if (drift.length > 0) throw notAsTarget(input.target, drift);
      checkReady(own, bootId, deps);
      if (rebooted) await checkStaticPods(own, deps);
      return { bootId, rebooted };
    }),
  );
}

/** The own Node as it was seen seconds ago, by the registration of this boot above all, if it was well by then. */
function recentlyReadyNode({ nodeUid }: TargetStep, bootId: string, deps: NodeDependencies): OwnNode | undefined {
  const own = deps.memory?.recallRecent(nodeUid, deps.now());
  return own?.facts.bootId === bootId && own.facts.ready ? own : undefined;
}

/** Throws NodeNotReady until the kubelet has reported this boot, and that it is well. */
function checkReady({ facts }: OwnNode, bootId: string, { node }: NodeDependencies): void {
  if (facts.bootId !== bootId) {
    throw notYet('NodeNotReady', `the kubelet of ${node} has not reported the boot ${bootId} yet`);
  }
  if (!facts.ready) {
    throw notYet('NodeNotReady', `${node} is not Ready yet: ${facts.notReadyBecause ?? 'no reason given'}`);
  }
}

/** Benign as long as there is time left for the reboot to come. */
function stillInOldBoot(input: TargetStep, bootId: string, deps: NodeDependencies): Error {
  const words = `${deps.node} is still in the boot ${bootId} in which ${input.target} was applied`;
  const { scheduledTimestampMs, scheduleToCloseTimeoutMs } = Context.current().info;
  const end = scheduledTimestampMs + scheduleToCloseTimeoutMs;
  const isLastCall = scheduleToCloseTimeoutMs > 0 && deps.now().getTime() > end - LAST_CALL_MS;
  if (!isLastCall) return notYet('NotRebootedYet', words);
  return failure(
    'NotRebooted',
    `${words}: the reboot that was asked for did not come; reboot it by hand, or see why not`,
  );
}

export function rolledBack({ target, reason }: Rollback): ApplicationFailure {
  return failure('RolledBackAfterBoot', `${target} was taken back: ${reason}; mend the config that cuts the node off`);
}

function notAsTarget(target: string, drift: readonly DriftItem[]): Error {
  const image = drift.find(({ kind }) => kind === 'osImage');
  if (image === undefined) {
    return failure('NotAsTarget', `after the update the disk is not as ${target} says: ${inWords(drift)}`);
  }
  return failure(
    'WrongImage',
    `after the update the host did not boot what ${target} says: ${image.words}; see why its boot loader fell back`,
  );
}

/** The journal, if it is of this target. */
async function appliedUpdate(input: TargetStep, { store }: NodeDependencies): Promise<Journal | undefined> {
  const journal = await store.journal();
  return journal?.target === input.target ? journal : undefined;
}
