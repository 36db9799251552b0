import type { ApiFlavour } from '../../machine-config/api/flavour.js';
import type { LabelRequirement, LabelSelector } from '../../machine-config/api/label-selector.js';
import type { MachineConfigPool } from '../../machine-config/api/machine-config-pool.js';
import type { MachineConfig } from '../../machine-config/api/machine-config.js';
import {
  MACHINE_CONFIGURATION_NAME,
  type MachineConfiguration,
} from '../../machine-config/api/machine-configuration.js';

export const BUILT_IN_ROLES = ['master', 'worker'] as const;
export type BuiltInRole = (typeof BUILT_IN_ROLES)[number];

const CONTROL_PLANE = 'node-role.kubernetes.io/control-plane';
const MASTER = 'node-role.kubernetes.io/master';

type Labels = Readonly<Record<string, string>>;

/** Windows nodes have no systemd, virtual ones no operating system at all: neither belongs to a pool. */
const MANAGEABLE: readonly LabelRequirement[] = [
  { key: 'kubernetes.io/os', operator: 'NotIn', values: ['windows'] },
  { key: 'type', operator: 'NotIn', values: ['virtual-kubelet'] },
];

/**
 * The node selectors of the built-in pools. A selector cannot say "or": control-plane nodes are told by the label
 * `control-plane`, or by `master` where the whole cluster knows no other. Where both are in use, the nodes that carry
 * only `master` are in no pool, which is said in a note.
 */
export function rolesOf(nodeLabels: readonly Labels[]): {
  selectors: Record<BuiltInRole, LabelSelector>;
  notes: string[];
} {
  const onlyMaster = nodeLabels.filter((labels) => MASTER in labels && !(CONTROL_PLANE in labels)).length;
  const anyControlPlane = nodeLabels.some((labels) => CONTROL_PLANE in labels);
  const roleLabel = onlyMaster > 0 && !anyControlPlane ? MASTER : CONTROL_PLANE;
  const notes =
    onlyMaster > 0 && anyControlPlane
      ? [
          `${onlyMaster} ${onlyMaster === 1 ? 'node has' : 'nodes have'} the label ${MASTER} without ${CONTROL_PLANE} and ${onlyMaster === 1 ? 'is' : 'are'} in no pool; add the second label to have them in pool master`,
        ]
      : [];
  const selectors = {
    master: { matchExpressions: [{ key: roleLabel, operator: 'Exists' as const }, ...MANAGEABLE] },
    worker: {
      matchExpressions: [
        { key: CONTROL_PLANE, operator: 'DoesNotExist' as const },
        { key: MASTER, operator: 'DoesNotExist' as const },
        ...MANAGEABLE,
      ],
    },
  };
  return { selectors, notes };
}

/** Pool `master` or `worker`, with the MachineConfigs that carry its role. */
export function builtInPool(
  flavour: ApiFlavour,
  role: BuiltInRole,
  { selector, paused }: { selector: LabelSelector; paused: boolean },
): MachineConfigPool {
  return {
    metadata: {
      name: role,
      labels: { [flavour.builtInPoolLabel]: '', [`pools.operator.${flavour.group}/${role}`]: '' },
    },
    spec: {
      machineConfigSelector: { matchLabels: { [flavour.roleLabel]: role } },
      nodeSelector: selector,
      paused,
    },
  };
}

/** A config that changes nothing: without one, a pool would have nothing to render. */
export function emptyConfig(flavour: ApiFlavour, role: BuiltInRole): MachineConfig {
  return {
    metadata: { name: `00-${role}`, labels: { [flavour.roleLabel]: role } },
    spec: { config: { ignition: { version: '3.4.0' } } },
  };
}

export function clusterConfiguration(): MachineConfiguration {
  return { metadata: { name: MACHINE_CONFIGURATION_NAME }, spec: { managementState: 'Managed' } };
}
