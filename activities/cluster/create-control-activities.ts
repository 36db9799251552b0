import type { ControlActivities } from '../../workflows/contract/activities.js';
import { Assignments } from './assign.js';
import { renewBootstrapToken } from './bootstrap-token.js';
import { checkChildren } from './check-children.js';
import { clearReboot } from './clear-reboot.js';
import { collectRendered } from './collect-rendered.js';
import type { ControlDependencies } from './control-dependencies.js';
import { TurnPlanner } from './plan-turn.js';
import { reconcileSources } from './reconcile-sources.js';
import { renderPool } from './render-pool.js';
import { StopSwitch } from './stop-switch.js';
import { syncPool } from './sync-pool.js';

/** The activities of the control worker. */
export function createControlActivities(dependencies: ControlDependencies): ControlActivities {
  const assignments = new Assignments(dependencies);
  const turns = new TurnPlanner(dependencies);
  const stopSwitch = new StopSwitch(dependencies);
  return {
    planTurn: (input) => turns.planTurn(input),
    assign: (input) => assignments.assign(input),
    clearReboot: (input) => clearReboot(dependencies, input, stopSwitch),
    renderPool: (input) => renderPool(dependencies, input),
    collectRendered: (input) => collectRendered(dependencies, input),
    reconcileSources: (input) => reconcileSources(dependencies, input),
    syncPool: (input) => syncPool(dependencies, input),
    checkChildren: (input) => checkChildren(dependencies, input),
    renewBootstrapToken: (input) => renewBootstrapToken(dependencies, input),
  };
}
