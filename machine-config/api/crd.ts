import { z } from 'zod';
import { machineConfigColumns, nodeColumns, poolColumns, sourceColumns, type PrinterColumn } from './crd-columns.js';
import { containerRuntimeConfigSchema } from './container-runtime-config.js';
import { controllerConfigSchema } from './controller-config.js';
import type { ApiFlavour, ResourceKind } from './flavour.js';
import {
  IMAGE_DIGEST_MIRROR_SET,
  IMAGE_TAG_MIRROR_SET,
  imageDigestMirrorSetSchema,
  imageTagMirrorSetSchema,
} from './image-mirrors.js';
import { kubeletConfigSchema } from './kubelet-config.js';
import { machineConfigNodeSchema } from './machine-config-node.js';
import { machineConfigPoolSchema } from './machine-config-pool.js';
import { machineConfigSchema } from './machine-config.js';
import { machineConfigurationSchema } from './machine-configuration.js';

/** Structural schema as a CRD carries it. */
export type StructuralSchema = Record<string, unknown>;

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
    definition({
      resource: flavour.controllerConfig,
      schema: controllerConfigSchema,
      description: 'ControllerConfig says how the nodes are set up and where their configs come from.',
      shortNames: [],
      columns: [],
      status: true,
      labels,
    }),
    definition({
      resource: flavour.kubeletConfig,
      schema: kubeletConfigSchema,
      description: 'KubeletConfig holds settings of the kubelets of some pools.',
      shortNames: [],
      columns: sourceColumns,
      status: true,
      labels,
    }),
    definition({
      resource: flavour.containerRuntimeConfig,
      schema: containerRuntimeConfigSchema,
      description: 'ContainerRuntimeConfig holds settings of the container runtime of some pools.',
      shortNames: ['ctrcfg'],
      columns: sourceColumns,
      status: true,
      labels,
    }),
  ];
}

/**
 * The CustomResourceDefinitions that belong to no flavour, and that a cluster may have from elsewhere: then they stay as
 * they are.
 */
export function sharedDefinitions(): CustomResourceDefinition[] {
  const common = { columns: sourceColumns, status: true, labels: {} };
  return [
    definition({
      ...common,
      resource: IMAGE_DIGEST_MIRROR_SET,
      schema: imageDigestMirrorSetSchema,
      description: 'ImageDigestMirrorSet says where images are looked for that are named by digest.',
      shortNames: ['idms'],
    }),
    definition({
      ...common,
      resource: IMAGE_TAG_MIRROR_SET,
      schema: imageTagMirrorSetSchema,
      description: 'ImageTagMirrorSet says where images are looked for that are named by tag.',
      shortNames: ['itms'],
    }),
  ];
}
