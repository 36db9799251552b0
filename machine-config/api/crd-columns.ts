import type { ApiFlavour } from './flavour.js';
import type { NodeConditionType } from './machine-config-node.js';

/** What `kubectl get` shows of a kind. */
export interface PrinterColumn {
  readonly name: string;
  readonly type: 'string' | 'integer' | 'date';
  readonly jsonPath: string;
  readonly description?: string;
  /** 1: only `kubectl get -o wide` shows it. */
  readonly priority?: 1;
}

const age: PrinterColumn = { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' };

function conditionColumn(type: string, description: string): PrinterColumn {
  return { name: type, type: 'string', jsonPath: `.status.conditions[?(@.type=="${type}")].status`, description };
}

function countColumn(name: string, field: string, description: string): PrinterColumn {
  return { name, type: 'integer', jsonPath: `.status.${field}`, description };
}

export const poolColumns: readonly PrinterColumn[] = [
  {
    name: 'Config',
    type: 'string',
    jsonPath: '.status.configuration.name',
    description: 'The rendered config that all nodes were last brought to',
  },
  conditionColumn('Updated', 'Whether all nodes run the wanted config'),
  conditionColumn('Updating', 'Whether nodes are being brought to the wanted config'),
  conditionColumn('Degraded', 'Whether rendering or a node failed'),
  countColumn('MachineCount', 'machineCount', 'Nodes of the pool'),
  countColumn('ReadyMachineCount', 'readyMachineCount', 'Nodes that run the wanted config and are ready'),
  countColumn('UpdatedMachineCount', 'updatedMachineCount', 'Nodes that run the wanted config'),
  countColumn('DegradedMachineCount', 'degradedMachineCount', 'Nodes that could not reach or keep their config'),
  age,
];

function stageColumn(name: string, type: NodeConditionType, description: string): PrinterColumn {
  return { ...conditionColumn(type, description), name, priority: 1 };
}

export const nodeColumns: readonly PrinterColumn[] = [
  { name: 'PoolName', type: 'string', jsonPath: '.spec.pool.name', description: 'The pool of the node' },
  {
    name: 'DesiredConfig',
    type: 'string',
    jsonPath: '.spec.configVersion.desired',
    description: 'The rendered config that the node was granted',
  },
  {
    name: 'CurrentConfig',
    type: 'string',
    jsonPath: '.status.configVersion.current',
    description: 'The rendered config that the node runs',
  },
  conditionColumn('Updated', 'Whether the node runs what it was granted'),
  age,
  stageColumn('UpdatePrepared', 'UpdatePrepared', 'Whether the update was planned and may begin'),
  stageColumn('UpdateExecuted', 'UpdateExecuted', 'Whether the change is on the disk'),
  stageColumn('UpdatePostActionComplete', 'UpdatePostActionComplete', 'Whether services took the change over'),
  stageColumn('UpdateComplete', 'UpdateComplete', 'Whether the update is complete'),
  stageColumn('Resumed', 'Resumed', 'Whether the node works again'),
  stageColumn('UpdatedFilesAndOS', 'AppliedFilesAndOS', 'Whether files and operating system are changed'),
  stageColumn('CordonedNode', 'Cordoned', 'Whether the node was cordoned'),
  stageColumn('DrainedNode', 'Drained', 'Whether the node was drained'),
  stageColumn('RebootedNode', 'RebootedNode', 'Whether the node was rebooted'),
  stageColumn('UncordonedNode', 'Uncordoned', 'Whether the cordon was lifted'),
];

/** Of every kind that MachineConfigs are generated from. */
export const sourceColumns: readonly PrinterColumn[] = [
  conditionColumn('Accepted', 'Whether MachineConfigs are generated from it as it is now'),
  {
    name: 'Message',
    type: 'string',
    jsonPath: '.status.conditions[?(@.type=="Accepted")].message',
    description: 'Why not',
    priority: 1,
  },
  age,
];

export function machineConfigColumns(flavour: ApiFlavour): readonly PrinterColumn[] {
  return [
    {
      name: 'GeneratedByController',
      type: 'string',
      // A dot inside a key has to be escaped in a JSON path.
      jsonPath: `.metadata.annotations.${flavour.generatedByAnnotation.replaceAll('.', '\\.')}`,
      description: 'Version of the controller that generated this config',
    },
    {
      name: 'IgnitionVersion',
      type: 'string',
      jsonPath: '.spec.config.ignition.version',
      description: 'Version of the Ignition config',
    },
    age,
  ];
}
