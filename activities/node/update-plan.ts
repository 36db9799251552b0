import type { MachineConfig } from '../../machine-config/api/machine-config.js';
import { NotPossibleHere } from '../host/entry.js';
import { isEmpty, planUpdate, type UpdatePlan } from '../host/plan.js';
import { verifyHost, type DriftItem } from '../host/verify.js';
import { configOnDisk, fetchRendered } from './configs.js';
import type { NodeDependencies } from './dependencies.js';
import { failure } from './failures.js';
import type { OwnNode } from './own-node.js';

/** So many items of drift are named in a reason. */
const MOST_NAMED = 5;

/**
 * Plans the update of this host to `target` and checks all that can be checked beforehand: the config is trusted, the
 * change possible on a running node and on this host, and the disk as its present config says. A forced update does not
 * ask for the last. The host's lock must be held. Throws UntrustedConfig, Unreconcilable, Drifted; NotPossibleHere.
 */
export async function planFor(target: string, own: OwnNode, deps: NodeDependencies): Promise<UpdatePlan> {
  const { host, store, flavour } = deps;
  const forced = own.facts.force !== undefined;
  const next = await fetchRendered(target, deps);
  const onDisk = await configOnDisk(own.current, deps);
  const obstacles = deps.irreconcilable(onDisk, next);
  if (obstacles.length > 0) {
    throw failure('Unreconcilable', `a running node cannot be brought to ${target}: ${obstacles.join('; ')}`);
  }
  const plan = () => planUpdate({ host, store, current: onDisk, target: next, sshUser: flavour.sshUser, forced });
  const drift = forced || onDisk === undefined ? [] : await driftFrom(onDisk, deps);
  if (drift.length === 0) return plan();
  const settled = await planOnDisk(next, plan, deps);
  if (settled !== undefined) return settled;
  throw failure(
    'Drifted',
    `the disk is not as ${onDisk?.metadata.name ?? ''} says: ${inWords(drift)}; put it back as declared, or declare what is there`,
  );
}

async function driftFrom(config: MachineConfig, deps: NodeDependencies): Promise<DriftItem[]> {
  const { host, store, flavour } = deps;
  const journal = await store.journal();
  const booted = !(journal?.needsReboot === true && journal.bootId === (await host.bootId()));
  return verifyHost(config, { host, sshUser: flavour.sshUser, booted });
}

/** The plan, if the target is exactly what is on the disk: then it declares what was changed, and nothing is in its way. */
async function planOnDisk(
  next: MachineConfig,
  plan: () => Promise<UpdatePlan>,
  deps: NodeDependencies,
): Promise<UpdatePlan | undefined> {
  try {
    if ((await driftFrom(next, deps)).length > 0) return undefined;
    const planned = await plan();
    return isEmpty(planned) ? planned : undefined;
  } catch (error) {
    // What stands in the way of the target is for later; first the disk has to be as somebody declared it.
    if (error instanceof NotPossibleHere) return undefined;
    throw error;
  }
}

export function inWords(drift: readonly DriftItem[]): string {
  const named = drift.slice(0, MOST_NAMED).map(({ path, words }) => `${path}: ${words}`);
  const more = drift.length > MOST_NAMED ? [`and ${drift.length - MOST_NAMED} more`] : [];
  return [...named, ...more].join('; ');
}
