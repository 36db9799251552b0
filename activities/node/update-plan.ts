import type { MachineConfig } from '../../machine-config/api/machine-config.js';
import { planUpdate, type UpdatePlan } from '../host/plan.js';
import { verifyHost, type DriftItem } from '../host/verify.js';
import { configOnDisk, fetchRendered } from './configs.js';
import type { NodeDependencies } from './dependencies.js';
import { failure } from './failures.js';
import type { OwnNode } from './own-node.js';

/** So many items of drift are named in a reason. */
const MOST_NAMED = 5;

/**
 * Plans the update of this host to `target` and checks all that can be checked beforehand: the config is trusted, the
 * change possible on a running node and on this host, and the disk as its present config says.
 * The host's lock must be held. Throws UntrustedConfig, Unreconcilable, Drifted; NotPossibleHere.
 */
export async function planFor(target: string, own: OwnNode, deps: NodeDependencies): Promise<UpdatePlan> {
  const { host, store, flavour } = deps;
  const next = await fetchRendered(target, deps);
  const onDisk = await configOnDisk(own.current, deps);
  const obstacles = deps.irreconcilable(onDisk, next);
  if (obstacles.length > 0) {
    throw failure('Unreconcilable', `a running node cannot be brought to ${target}: ${obstacles.join('; ')}`);
  }
  if (onDisk !== undefined) await refuseDrift(onDisk, deps);
  return planUpdate({ host, store, current: onDisk, target: next, sshUser: flavour.sshUser });
}

async function refuseDrift(onDisk: MachineConfig, deps: NodeDependencies): Promise<void> {
  const { host, store, flavour } = deps;
  const journal = await store.journal();
  const booted = !(journal?.needsReboot === true && journal.bootId === (await host.bootId()));
  const drift = await verifyHost(onDisk, { host, sshUser: flavour.sshUser, booted });
  if (drift.length === 0) return;
  throw failure(
    'Drifted',
    `the disk is not as ${onDisk.metadata.name} says: ${inWords(drift)}; put it back as declared, or declare what is there`,
  );
}

export function inWords(drift: readonly DriftItem[]): string {
  const named = drift.slice(0, MOST_NAMED).map(({ path, words }) => `${path}: ${words}`);
  const more = drift.length > MOST_NAMED ? [`and ${drift.length - MOST_NAMED} more`] : [];
  return [...named, ...more].join('; ');
}
