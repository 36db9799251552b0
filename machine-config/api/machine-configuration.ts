import { z } from 'zod';
import {
  defaultDisruptionSchema,
  nodeDisruptionPolicySchema,
  nodeDisruptionPolicyStatusSchema,
} from './node-disruption-policy.js';
import { bootImageSkewSchema, bootImageSkewStatusSchema, managedBootImagesSchema } from './boot-images.js';
import { objectMetadataSchema } from './object-metadata.js';
import { keyedList, openObject, setList, timestamp, withRules } from './structural.js';

/** The one MachineConfiguration there is. */
export const MACHINE_CONFIGURATION_NAME = 'cluster';

const logLevel = z.enum(['', 'Normal', 'Debug', 'Trace', 'TraceAll']).meta({ default: 'Normal' });

export const machineConfigurationSpecSchema = z.strictObject({
  managementState: z
    .string()
    .regex(/^(Managed|Unmanaged|Force|Removed)$/, { error: 'must be Managed, Unmanaged, Force or Removed' })
    .exactOptional(),
  logLevel: logLevel.exactOptional(),
  operatorLogLevel: logLevel.exactOptional(),
  unsupportedConfigOverrides: openObject('Kept for manifests that carry it; without effect.')
    .nullable()
    .exactOptional(),
  observedConfig: openObject('Kept for manifests that carry it; without effect.').nullable().exactOptional(),
  forceRedeploymentReason: z.string().exactOptional(),
  failedRevisionLimit: z.int32().exactOptional(),
  succeededRevisionLimit: z.int32().exactOptional(),
  nodeDisruptionPolicy: nodeDisruptionPolicySchema
    .meta({ description: 'What a change of a file, a unit or the SSH keys costs a node, in place of a reboot.' })
    .exactOptional(),
  defaultNodeDisruptionPolicySpecAction: defaultDisruptionSchema
    .meta({ description: 'What a change of a file or unit costs that nodeDisruptionPolicy does not name.' })
    .exactOptional(),
  irreconcilableValidationOverrides: z
    .strictObject({
      storage: setList(z.enum(['Disks', 'FileSystems', 'Raid']), { min: 1, max: 3 })
        .meta({ description: 'Changes of storage that are accepted although existing nodes cannot follow them.' })
        .exactOptional(),
    })
    .exactOptional(),
  rollout: z
    .strictObject({
      maxPools: z
        .int32()
        .min(1)
        .meta({ description: 'How many pools may have nodes in an update at once; no limit when absent.' })
        .exactOptional(),
    })
    .meta({ description: 'What holds for the rollouts of all pools.' })
    .exactOptional(),
  managedBootImages: managedBootImagesSchema.exactOptional(),
  bootImageSkewEnforcement: bootImageSkewSchema.exactOptional(),
});
export type MachineConfigurationSpec = z.infer<typeof machineConfigurationSpecSchema>;

const condition = z.object({
  type: z.string().max(316),
  status: z.enum(['True', 'False', 'Unknown']),
  observedGeneration: z.int().min(0).exactOptional(),
  lastTransitionTime: timestamp,
  reason: z.string().min(1).max(1024),
  message: z.string().max(32_768),
});

export const machineConfigurationStatusSchema = z.object({
  observedGeneration: z.int().exactOptional(),
  conditions: keyedList(condition, ['type']).exactOptional(),
  nodeDisruptionPolicyStatus: nodeDisruptionPolicyStatusSchema
    .meta({ description: 'The policy in force: the defaults merged with those of the spec.' })
    .exactOptional(),
  managedBootImagesStatus: managedBootImagesSchema.exactOptional(),
  bootImageSkewEnforcementStatus: bootImageSkewStatusSchema.exactOptional(),
});
export type MachineConfigurationStatus = z.infer<typeof machineConfigurationStatusSchema>;

/** Cluster-wide settings. Cluster-scoped, a singleton named `cluster`. */
export const machineConfigurationSchema = withRules(
  z.strictObject({
    apiVersion: z.string().exactOptional(),
    kind: z.literal('MachineConfiguration').exactOptional(),
    metadata: objectMetadataSchema,
    spec: machineConfigurationSpecSchema,
    status: machineConfigurationStatusSchema.exactOptional(),
  }),
  {
    cel: `self.metadata.name == '${MACHINE_CONFIGURATION_NAME}'`,
    holds: ({ metadata }) => metadata.name === MACHINE_CONFIGURATION_NAME,
    message: `there is one MachineConfiguration, and its name is "${MACHINE_CONFIGURATION_NAME}"`,
  },
);
export type MachineConfiguration = z.infer<typeof machineConfigurationSchema>;
