import { z } from 'zod';
import { objectMetadataSchema } from './object-metadata.js';
import { atomicList, keyedList, objectName, openObject, timestamp, withRules, type Rule } from './structural.js';

/** The one ControllerConfig there is. */
export const CONTROLLER_CONFIG_NAME = 'machine-config-controller';

export const NODE_FLAVOURS = ['kubeadm', 'openshift'] as const;
/** How the nodes were made, and so where their kubelet reads its configuration. */
export type NodeFlavour = (typeof NODE_FLAVOURS)[number];

export const CONTAINER_RUNTIMES = ['containerd', 'crio'] as const;
export type ContainerRuntime = (typeof CONTAINER_RUNTIMES)[number];

const TEMPLATE_SOURCES = ['none', 'builtin', 'configMap', 'folder'] as const;

const namespacedName = z.strictObject({ namespace: objectName, name: objectName });

const absolutePath = z
  .string()
  .max(4096)
  .regex(/^\/[^/]+(\/[^/]+)*$/, { error: 'must be an absolute path without a slash at its end' });

interface TemplatesFields {
  source: string;
  version?: string;
  configMap?: object;
  folder?: string;
}
const goesWith = (field: 'version' | 'configMap' | 'folder', source: string): Rule<TemplatesFields> => ({
  cel: `self.source == '${source}' ? has(self.${field}) : !has(self.${field})`,
  holds: (templates) => (templates.source === source) === (templates[field] !== undefined),
  message: `${field} is needed with source ${source}, and not allowed with any other`,
});

/** Where the configs `00-<role>` and `01-<role>-…` come from. */
const templatesSchema = withRules(
  z.strictObject({
    source: z
      .enum(TEMPLATE_SOURCES)
      .meta({ description: 'none: no configs from templates. builtin: those that Drydock brings, in one version.' }),
    version: z
      .string()
      .regex(/^v[1-9][0-9]{0,3}$/, { error: 'must be a version of the built-in templates, such as v1' })
      .meta({ description: 'Version of the built-in templates. It stays until somebody writes another one.' })
      .exactOptional(),
    configMap: namespacedName
      .meta({ description: 'Each key is the path of a template with "__" for "/": worker__00-worker__files__a.yaml.' })
      .exactOptional(),
    folder: absolutePath.meta({ description: 'Folder on the host of the control worker.' }).exactOptional(),
  }),
  goesWith('version', 'builtin'),
  goesWith('configMap', 'configMap'),
  goesWith('folder', 'folder'),
);
export type TemplatesSource = z.infer<typeof templatesSchema>;

const MAX_MODE = 0o7777;

const certificateSchema = withRules(
  z.strictObject({
    secret: namespacedName.exactOptional(),
    configMap: namespacedName.exactOptional(),
    key: z
      .string()
      .max(253)
      .regex(/^[-._a-zA-Z0-9]+$/, { error: 'must be a key of the Secret or ConfigMap' }),
    path: absolutePath.meta({ description: 'The file that the node worker writes.' }),
    mode: z
      .int32()
      .min(0)
      .max(MAX_MODE)
      .meta({ description: 'In decimal, as Ignition has it. Default 420 (0644), from a Secret 384 (0600).' })
      .exactOptional(),
  }),
  {
    cel: 'has(self.secret) != has(self.configMap)',
    holds: ({ secret, configMap }) => (secret === undefined) !== (configMap === undefined),
    message: 'either secret or configMap is needed, and not both',
  },
);
/** A file of nodes that follows a Secret or ConfigMap without a rollout. */
export type NodeCertificate = z.infer<typeof certificateSchema>;

const bytes = z.string().meta({ format: 'byte' });
const kept = (what: string) => openObject(`${what} Handed to templates.`).nullable();
const bundleFiles = atomicList(z.strictObject({ file: z.string(), data: bytes }));

/** Of other systems' ControllerConfigs: Drydock itself uses none of it, templates may. */
const foreignFields = {
  clusterDNSIP: z.string().exactOptional(),
  cloudProviderConfig: z.string().exactOptional(),
  kubeAPIServerServingCAData: bytes.nullable().exactOptional(),
  rootCAData: bytes.nullable().exactOptional(),
  cloudProviderCAData: bytes.nullable().exactOptional(),
  additionalTrustBundle: bytes.nullable().exactOptional(),
  imageRegistryBundleUserData: bundleFiles.exactOptional(),
  imageRegistryBundleData: bundleFiles.exactOptional(),
  images: z.record(z.string(), z.string()).exactOptional(),
  baseOSContainerImage: z.string().exactOptional(),
  baseOSExtensionsContainerImage: z.string().exactOptional(),
  osImageURL: z.string().exactOptional(),
  releaseImage: z.string().exactOptional(),
  platform: z.string().exactOptional(),
  etcdDiscoveryDomain: z.string().exactOptional(),
  pullSecret: openObject('Reference of the pull secret.').exactOptional(),
  internalRegistryPullSecret: bytes.nullable().exactOptional(),
  ipFamilies: z.string().exactOptional(),
  networkType: z.string().exactOptional(),
  network: kept('Network settings.').exactOptional(),
  proxy: kept('Proxies.').exactOptional(),
  infra: kept('The infrastructure.').exactOptional(),
  dns: kept('DNS settings.').exactOptional(),
};

export const controllerConfigSpecSchema = z.strictObject({
  nodeFlavour: z
    .enum(NODE_FLAVOURS)
    .meta({ description: 'How the nodes were made; says how kubelet settings are written. Default kubeadm.' })
    .exactOptional(),
  containerRuntime: z
    .enum(CONTAINER_RUNTIMES)
    .meta({ description: 'The container runtime of the nodes. Default containerd.' })
    .exactOptional(),
  templates: templatesSchema
    .meta({ description: 'Templates of the configs 00-<role> and 01-<role>-<name>. Default: none.' })
    .exactOptional(),
  templateValues: openObject('Values for the templates, as values.NAME there.').exactOptional(),
  keepRenderedConfigs: z
    .int32()
    .min(0)
    .max(1000)
    .meta({ description: 'How many rendered configs of a pool are kept that nothing names any more. Default 10.' })
    .exactOptional(),
  certificates: keyedList(certificateSchema, ['path'], 100)
    .meta({ description: 'Files that the node workers keep as a Secret or ConfigMap says, without a rollout.' })
    .exactOptional(),
  ...foreignFields,
});
export type ControllerConfigSpec = z.infer<typeof controllerConfigSpecSchema>;

const condition = z.object({
  type: z.string(),
  status: z.enum(['True', 'False', 'Unknown']),
  lastTransitionTime: timestamp.nullable(),
  reason: z.string().exactOptional(),
  message: z.string().exactOptional(),
});
export type ControllerConfigCondition = z.infer<typeof condition>;

const controllerCertificate = z.object({
  subject: z.string(),
  signer: z.string(),
  notBefore: timestamp.nullable().exactOptional(),
  notAfter: timestamp.nullable().exactOptional(),
  bundleFile: z.string(),
});

/** Not strict, as every status: nobody writes one by hand. */
export const controllerConfigStatusSchema = z.object({
  observedGeneration: z.int().exactOptional(),
  conditions: keyedList(condition, ['type']).exactOptional(),
  controllerCertificates: atomicList(controllerCertificate).exactOptional(),
});

/** What the sources of configs have in common. Cluster-scoped, a singleton named `machine-config-controller`. */
export const controllerConfigSchema = withRules(
  z.strictObject({
    apiVersion: z.string().exactOptional(),
    kind: z.literal('ControllerConfig').exactOptional(),
    metadata: objectMetadataSchema,
    spec: controllerConfigSpecSchema,
    status: controllerConfigStatusSchema.exactOptional(),
  }),
  {
    cel: `self.metadata.name == '${CONTROLLER_CONFIG_NAME}'`,
    holds: ({ metadata }) => metadata.name === CONTROLLER_CONFIG_NAME,
    message: `there is one ControllerConfig, and its name is "${CONTROLLER_CONFIG_NAME}"`,
  },
);
export type ControllerConfig = z.infer<typeof controllerConfigSchema>;

/** As if there were one where there is none. */
export function nodeFlavourOf(config: Pick<ControllerConfig, 'spec'> | undefined): NodeFlavour {
  return config?.spec.nodeFlavour ?? 'kubeadm';
}

/** As nodeFlavourOf. */
export function containerRuntimeOf(config: Pick<ControllerConfig, 'spec'> | undefined): ContainerRuntime {
  return config?.spec.containerRuntime ?? 'containerd';
}
