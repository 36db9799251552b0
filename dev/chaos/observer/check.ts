import { EMPTY_CONFIG_NAME } from '../../../machine-config/api/flavour.js';
import type { SeenChange, SeenNode, World } from './world.js';

/** What the observer finds is not as it must be. */
export interface Finding {
  /** The nodes concerned. */
  readonly nodes: readonly string[];
  readonly sentence: string;
}

/** One promise of Drydock, checked on every change. */
export interface Check {
  readonly promise: string;
  /**
   * @param world as it is after the change
   * @param at epoch milliseconds
   */
  see(change: SeenChange, world: World, at: number): readonly Finding[];
}

/** What the node runs; of one that was never given any, the name of the empty one. */
export function currentOf({ current }: SeenNode): string {
  return current === '' ? EMPTY_CONFIG_NAME : current;
}

/** The config that the node is on its way to; undefined: it is on its way to none. */
export function underWay(node: SeenNode): string | undefined {
  const current = currentOf(node);
  if (node.applying !== '' && node.applying !== current) return node.applying;
  return node.desired !== '' && node.desired !== current ? node.desired : undefined;
}

/** Drydock has taken it out of service, or is about to. */
export function isTaken(node: SeenNode): boolean {
  return node.cordonedFor !== '' || underWay(node) !== undefined;
}
