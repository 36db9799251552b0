import type { MachineConfig } from '../../machine-config/api/machine-config.js';
import { checkReconcilable } from '../../machine-config/change/check-reconcilable.js';
import { EMPTY_CONTENT } from '../../machine-config/change/content.js';
import { readSpec } from '../../machine-config/render/spec.js';

/**
 * Why a running node cannot be brought from one rendered config to another; empty: it can. A node without a config was
 * installed by other means and is running, too, so what only a first boot does is refused for it as well.
 */
export function irreconcilable(old: MachineConfig | undefined, next: MachineConfig, sshUser: string): string[] {
  const before = old === undefined ? EMPTY_CONTENT : readSpec(old.spec);
  const answer = checkReconcilable(before, readSpec(next.spec), { sshUser });
  return answer.ok ? [] : [`${answer.field} ${answer.message}`];
}
