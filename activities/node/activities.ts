import type { NodeActivities } from '../../workflows/contract/activities.js';
import { apply } from './apply.js';
import { cordon } from './cordon.js';
import type { NodeDependencies } from './dependencies.js';
import { drain } from './drain.js';
import { NodeMemory } from './node-memory.js';
import { prepare } from './prepare.js';
import { confirm, reboot } from './reboot.js';
import { release, uncordon } from './uncordon.js';

/** The activities of one node's worker. Every one may be killed at any point and run again, also beside an old attempt. */
export function createNodeActivities(given: NodeDependencies): NodeActivities {
  const deps: NodeDependencies = { ...given, memory: given.memory ?? new NodeMemory() };
  return {
    prepare: (input) => prepare(input, deps),
    cordon: (input) => cordon(input, deps),
    drain: (input) => drain(input, deps),
    apply: (input) => apply(input, deps),
    reboot: (input) => reboot(input, deps),
    confirm: (input) => confirm(input, deps),
    uncordon: (input) => uncordon(input, deps),
    release: (input) => release(input, deps),
  };
}
