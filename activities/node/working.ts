import type { NodeFacts } from '../../machine-config/pool/facts.js';
import type { NodeDependencies } from './dependencies.js';

/**
 * The state Working, for the first write of an update to the Node; nothing where it says so already. A failed node says
 * that it is until an update succeeds.
 */
export function sayWorking({ state }: NodeFacts, { flavour }: NodeDependencies): Record<string, string> {
  if (state === 'Working' || state === 'Degraded' || state === 'Unreconcilable') return {};
  return { [flavour.annotations.state]: 'Working' };
}
