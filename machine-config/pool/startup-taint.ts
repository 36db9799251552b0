import { isUpdated } from './availability.js';
import type { NodeFacts, PoolFacts } from './facts.js';

/** All startup taints have it: so the admission policy knows which ones a control worker may take off. */
export const STARTUP_TAINT_PREFIX = 'drydock/';
export const DEFAULT_STARTUP_TAINT = `${STARTUP_TAINT_PREFIX}not-configured`;
const EFFECT = 'NoSchedule';

interface Taint {
  readonly key: string;
  readonly effect: string;
}

const isStartupTaint = ({ key, effect }: Taint, name: string): boolean => key === name && effect === EFFECT;

/** Whether the node came with the taint that keeps pods away until it is configured. */
export function hasStartupTaint(taints: readonly Taint[] | undefined, name: string): boolean {
  return taints?.some((taint) => isStartupTaint(taint, name)) === true;
}

export function withoutStartupTaint<T extends Taint>(taints: readonly T[], name: string): T[] {
  return taints.filter((taint) => !isStartupTaint(taint, name));
}

/**
 * Whether a node has become what its pool wants it to be, so that pods may come: it runs the pool's config and says so
 * itself. A newer config that it is to be updated to later is no reason to keep pods away any longer, and neither is a
 * pool that is paused: it has been configured once.
 */
export function isConfigured(node: NodeFacts, pool: PoolFacts | undefined): boolean {
  return pool?.target !== undefined && isUpdated(node, pool.target);
}
