import type { PoolReport } from '../../client/pool-report.js';
import type { ObservedNode } from './observer.js';

/** `rendered-worker-1a2b` for the whole hash. */
function short(config: string): string {
  return config.replace(/-([0-9a-f]{4})[0-9a-f]{28}$/, '-$1');
}

/** One line a node, as it is now. */
export function describeNode(node: ObservedNode): string {
  const where = node.desired === '' || node.desired === node.current ? '' : ` → ${short(node.desired)}`;
  const out = [node.schedulable ? '' : 'cordoned', node.ready ? '' : 'NotReady'].filter((part) => part !== '');
  return [
    '  ',
    node.name.padEnd(12),
    node.state.padEnd(9),
    (out.join(', ') || 'in service').padEnd(20),
    `${short(node.current)}${where}`,
  ].join(' ');
}

export function describePools(pools: readonly PoolReport[]): string {
  return pools
    .map(({ name, updated, degraded, updatedMachineCount, machineCount, target }) => {
      const state = degraded ? 'Degraded' : updated ? 'Updated' : 'Updating';
      return `pool ${name.padEnd(7)} ${state.padEnd(9)} ${updatedMachineCount} of ${machineCount} on ${short(target ?? 'nothing yet')}`;
    })
    .join('\n');
}
