import { z } from 'zod';
import type { ApiFlavour, ResourceKind } from './flavour.js';
import { machineConfigNodeSchema, type NodeConditionType } from './machine-config-node.js';
import { machineConfigPoolSchema } from './machine-config-pool.js';
import { machineConfigSchema } from './machine-config.js';
import { machineConfigurationSchema } from './machine-configuration.js';

/** Structural schema as a CRD carries it. */
export type StructuralSchema = Record<string, unknown>;

export interface PrinterColumn {
  readonly name: string;
  readonly type: 'string' | 'integer' | 'date';
  readonly jsonPath: string;
  readonly description?: string;
  /** 1: only `kubectl get -o wide` shows it. */
  readonly priority?: 1;
}

export interface CrdVersion {
  readonly name: string;
  readonly served: boolean;
  readonly storage: boolean;
  readonly schema: { readonly openAPIV3Schema: StructuralSchema };
  readonly subresources?: { readonly status: object };
  readonly additionalPrinterColumns?: readonly PrinterColumn[];
}

/** The part of a CustomResourceDefinition that we set. */
export interface CustomResourceDefinition {
  readonly apiVersion: 'apiextensions.k8s.io/v1';
  readonly kind: 'CustomResourceDefinition';
  readonly metadata: { name: string; labels: Record<string, string> };
  readonly spec: {
    readonly group: string;
    readonly scope: 'Cluster';
    readonly names: {
      readonly kind: string;
      readonly listKind: string;
      readonly plural: string;
      readonly singular: string;
      readonly shortNames?: readonly string[];
    };
    readonly versions: readonly CrdVersion[];
  };
}

/** Tells our CRDs from those that another system brought under the same names. */
export const MANAGED_BY_LABEL = 'app.kubernetes.io/managed-by';
export const MANAGED_BY_DRYDOCK = 'drydock';

const INT32_MAX = 2 ** 31 - 1;
const RANGE_ENDS: readonly unknown[] = [INT32_MAX, -INT32_MAX - 1, Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER];

/** zod states the range of the number type; Kubernetes calls it a format. Called again for each wrapper of a number. */
function renameIntegerRange(schema: StructuralSchema): void {
  if (schema.type !== 'integer' || schema.format !== undefined) return;
  schema.format = schema.maximum === INT32_MAX ? 'int32' : 'int64';
  if (RANGE_ENDS.includes(schema.minimum)) delete schema.minimum;
  if (RANGE_ENDS.includes(schema.maximum)) delete schema.maximum;
}

/** Turns what zod wrote for one node of the schema into what Kubernetes calls structural. */
function makeStructural(schema: StructuralSchema): void {
  if (schema.properties !== undefined || schema['x-kubernetes-preserve-unknown-fields'] === true) {
    delete schema.additionalProperties;
  }
  // An empty list of properties is one that the API server does not keep: the next install would find a difference.
  if (Object.keys(schema.properties ?? { some: true }).length === 0) delete schema.properties;
  if (schema['x-kubernetes-int-or-string'] === true) delete schema.anyOf;
  renameIntegerRange(schema);
}

function structuralSchema(schema: z.ZodType): StructuralSchema {
  const root = z.toJSONSchema(schema, {
    target: 'openapi-3.0',
    io: 'input',
    reused: 'inline',
    override: ({ jsonSchema }) => makeStructural(jsonSchema as StructuralSchema),
  });
  const required = (root.required ?? []).filter((field) => field !== 'metadata');
  return {
    ...Object.fromEntries(Object.entries(root).filter(([key]) => key !== 'required' && key !== '$schema')),
    // The API server brings its own schema of these three and lets a CRD say nothing more about them.
    properties: {
      ...root.properties,
      apiVersion: { type: 'string' },
      kind: { type: 'string' },
      metadata: { type: 'object' },
    },
    ...(required.length > 0 ? { required } : {}),
  };
}

interface CrdSource {
  readonly resource: ResourceKind;
  readonly schema: z.ZodType;
  readonly description: string;
  readonly shortNames: readonly string[];
  readonly columns: readonly PrinterColumn[];
  readonly status: boolean;
  readonly labels: Record<string, string>;
}

function definition(source: CrdSource): CustomResourceDefinition {
  const { group, version, plural, kind } = source.resource;
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.${group}`, labels: { [MANAGED_BY_LABEL]: MANAGED_BY_DRYDOCK, ...source.labels } },
    spec: {
      group,
      scope: 'Cluster',
      names: {
        kind,
        listKind: `${kind}List`,
        plural,
        singular: kind.toLowerCase(),
        ...(source.shortNames.length > 0 ? { shortNames: source.shortNames } : {}),
      },
      versions: [
        {
          name: version,
          served: true,
          storage: true,
          schema: { openAPIV3Schema: { description: source.description, ...structuralSchema(source.schema) } },
          ...(source.status ? { subresources: { status: {} } } : {}),
          ...(source.columns.length > 0 ? { additionalPrinterColumns: source.columns } : {}),
        },
      ],
    },
  };
}

const age: PrinterColumn = { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' };

function conditionColumn(type: string, description: string): PrinterColumn {
  return { name: type, type: 'string', jsonPath: `.status.conditions[?(@.type=="${type}")].status`, description };
}

function countColumn(name: string, field: string, description: string): PrinterColumn {
  return { name, type: 'integer', jsonPath: `.status.${field}`, description };
}

const poolColumns: readonly PrinterColumn[] = [
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

const nodeColumns: readonly PrinterColumn[] = [
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

function machineConfigColumns(flavour: ApiFlavour): readonly PrinterColumn[] {
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

/** The CustomResourceDefinitions of a flavour, made from the zod schemas and nothing else. */
export function customResourceDefinitions(flavour: ApiFlavour): CustomResourceDefinition[] {
  const labels: Record<string, string> = flavour.name === 'openshift' ? { 'openshift.io/operator-managed': '' } : {};
  return [
    definition({
      resource: flavour.machineConfig,
      schema: machineConfigSchema,
      description: 'MachineConfig is one declared piece of node configuration.',
      shortNames: ['mc'],
      columns: machineConfigColumns(flavour),
      status: false,
      labels,
    }),
    definition({
      resource: flavour.machineConfigPool,
      schema: machineConfigPoolSchema,
      description: 'MachineConfigPool is a group of nodes and the MachineConfigs that apply to it.',
      shortNames: ['mcp'],
      columns: poolColumns,
      status: true,
      labels,
    }),
    definition({
      resource: flavour.machineConfiguration,
      schema: machineConfigurationSchema,
      description: 'MachineConfiguration holds the cluster-wide settings; its one object is named cluster.',
      shortNames: [],
      columns: [],
      status: true,
      labels: {},
    }),
    definition({
      resource: flavour.machineConfigNode,
      schema: machineConfigNodeSchema,
      description: 'MachineConfigNode tells how far one node is with its config.',
      shortNames: [],
      columns: nodeColumns,
      status: true,
      labels,
    }),
  ];
}
