import type { ControlActivities } from '../../workflows/contract/activities.js';
import { assign } from './assign.js';
import { checkChildren } from './check-children.js';
import type { ControlDependencies } from './control-dependencies.js';
import { planTurn } from './plan-turn.js';
import { renderPool } from './render-pool.js';
import { syncPool } from './sync-pool.js';

/** The activities of the control worker. */
export function createControlActivities(dependencies: ControlDependencies): ControlActivities {
  return {
    planTurn: (input) => Promise.resolve().then(() => planTurn(dependencies, input)),
    assign: (input) => assign(dependencies, input),
    renderPool: (input) => renderPool(dependencies, input),
    syncPool: (input) => syncPool(dependencies, input),
    checkChildren: (input) => checkChildren(dependencies, input),
  };
}
