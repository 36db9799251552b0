import { z } from 'zod';
import { labelSelectorSchema } from './label-selector.js';
import { objectMetadataSchema } from './object-metadata.js';
import { rolloutPolicySchema } from './rollout-policy.js';
import {
  atomicList,
  intOrString,
  keyedList,
  objectName,
  timestamp,
  withRules,
  withTransitionRule,
} from './structural.js';

export const POOL_CONDITION_TYPES = [
  'Updated',
  'Updating',
  'NodeDegraded',
  'RenderDegraded',
  'ImageBuildDegraded',
  'PinnedImageSetsDegraded',
  'PoolSynchronizerDegraded',
  'Degraded',
  /** Nothing starts: reason and message say why. */
  'Waiting',
  /** The failure budget is used up. */
  'Halted',
  /** Nodes of the control plane are updated one at a time. */
  'ControlPlane',
  /** Another custom pool selects nodes of this one. */
  'MembershipConflict',
  'BuildPending',
  'Building',
  'BuildSuccess',
  'BuildFailed',
  'BuildInterrupted',
] as const;
export type PoolConditionType = (typeof POOL_CONDITION_TYPES)[number];

const objectReferenceFields = {
  apiVersion: z.string().exactOptional(),
  kind: z.string().exactOptional(),
  namespace: z.string().exactOptional(),
  name: z.string().exactOptional(),
  uid: z.string().exactOptional(),
  resourceVersion: z.string().exactOptional(),
  fieldPath: z.string().exactOptional(),
};
const objectReference = z.strictObject(objectReferenceFields).meta({ 'x-kubernetes-map-type': 'atomic' });
export type ObjectReference = z.infer<typeof objectReference>;

const poolConfiguration = z.strictObject({
  ...objectReferenceFields,
  source: atomicList(objectReference)
    .meta({ description: 'The MachineConfigs that the rendered config was merged from, in order.' })
    .exactOptional(),
});
/** A rendered config by name, and what it was merged from. */
export type PoolConfiguration = z.infer<typeof poolConfiguration>;

const osImageStream = z.strictObject({ name: objectName });

export const machineConfigPoolSpecSchema = z.strictObject({
  machineConfigSelector: labelSelectorSchema
    .meta({ description: 'The MachineConfigs of this pool; an empty selector selects none.' })
    .exactOptional(),
  nodeSelector: labelSelectorSchema
    .meta({ description: 'The nodes of this pool; an empty selector selects none.' })
    .exactOptional(),
  paused: z
    .boolean()
    .meta({ description: 'While true no node update of this pool starts; running ones finish.' })
    .exactOptional(),
  maxUnavailable: intOrString
    .meta({
      description: 'How many nodes of the pool may be unavailable at once: a number or a percentage. Default 1.',
    })
    .exactOptional(),
  configuration: poolConfiguration
    .meta({ description: 'The rendered config that the nodes shall run. Written by the controller.' })
    .exactOptional(),
  pinnedImageSets: keyedList(z.strictObject({ name: objectName }), ['name'], 100).exactOptional(),
  osImageStream: osImageStream.exactOptional(),
  rollout: rolloutPolicySchema
    .meta({
      description: 'How a rollout of this pool goes: order, stages, windows, gates, limits of a drain and of failures.',
    })
    .exactOptional(),
});
export type MachineConfigPoolSpec = z.infer<typeof machineConfigPoolSpecSchema>;

const poolCondition = z.object({
  type: z.string(),
  status: z.enum(['True', 'False', 'Unknown']),
  lastTransitionTime: timestamp.nullable().exactOptional(),
  reason: z.string().exactOptional(),
  message: z.string().exactOptional(),
});
export type MachineConfigPoolCondition = z.infer<typeof poolCondition>;

const certificateExpiry = z.object({
  bundle: z.string(),
  subject: z.string(),
  expiry: timestamp.nullable().exactOptional(),
});

const count = z.int().min(0);
const poolSynchronizerStatus = withRules(
  z.object({
    poolSynchronizerType: z.enum(['PinnedImageSets']),
    machineCount: count,
    updatedMachineCount: count,
    readyMachineCount: count,
    availableMachineCount: count,
    unavailableMachineCount: count,
    observedGeneration: withTransitionRule(
      count,
      'self >= oldSelf || (self == 0 && oldSelf > 0)',
      'observedGeneration may not go back, except to 0',
    ).exactOptional(),
  }),
  {
    cel: 'self.machineCount >= self.updatedMachineCount',
    holds: (status) => status.machineCount >= status.updatedMachineCount,
    message: 'machineCount is at least updatedMachineCount',
  },
  {
    cel: 'self.machineCount >= self.availableMachineCount',
    holds: (status) => status.machineCount >= status.availableMachineCount,
    message: 'machineCount is at least availableMachineCount',
  },
  {
    cel: 'self.machineCount >= self.unavailableMachineCount',
    holds: (status) => status.machineCount >= status.unavailableMachineCount,
    message: 'machineCount is at least unavailableMachineCount',
  },
  {
    cel: 'self.machineCount >= self.readyMachineCount',
    holds: (status) => status.machineCount >= status.readyMachineCount,
    message: 'machineCount is at least readyMachineCount',
  },
  {
    cel: 'self.availableMachineCount >= self.readyMachineCount',
    holds: (status) => status.availableMachineCount >= status.readyMachineCount,
    message: 'availableMachineCount is at least readyMachineCount',
  },
);

const poolRollout = z.object({
  target: z.string().meta({ description: 'The rendered config that it brings, or brought, to the nodes.' }),
  from: z
    .string()
    .meta({ description: 'The config that the pool was last wholly rolled out to before.' })
    .exactOptional(),
  startedAt: timestamp,
  finishedAt: timestamp.meta({ description: 'When every node ran the target; absent while it runs.' }).exactOptional(),
  outcome: z
    .enum(['Running', 'Completed', 'Superseded', 'Halted', 'RolledBack'])
    .meta({ description: 'Superseded: another target came before it was done.' }),
  updated: count.meta({ description: 'Nodes that ran the target when it ended, or run it now.' }),
  failed: count,
  approvals: atomicList(z.object({ stage: z.string(), by: z.string(), at: timestamp })).exactOptional(),
});
/** One rollout of a pool, as its status remembers it. */
export type PoolRollout = z.infer<typeof poolRollout>;

/** Not strict: a status is read from clusters whose version we do not choose, and nobody writes one by hand. */
export const machineConfigPoolStatusSchema = z.object({
  observedGeneration: z
    .int()
    .meta({ description: 'The generation of the pool that this status describes.' })
    .exactOptional(),
  configuration: poolConfiguration
    .meta({ description: 'The rendered config that all nodes were last brought to.' })
    .exactOptional(),
  machineCount: z.int32().meta({ description: 'Nodes of the pool.' }).exactOptional(),
  updatedMachineCount: z.int32().meta({ description: 'Nodes that run the wanted config.' }).exactOptional(),
  readyMachineCount: z.int32().meta({ description: 'Nodes that run the wanted config and are ready.' }).exactOptional(),
  unavailableMachineCount: z.int32().meta({ description: 'Nodes that are unavailable.' }).exactOptional(),
  degradedMachineCount: z
    .int32()
    .meta({ description: 'Nodes that could not reach or keep their config.' })
    .exactOptional(),
  conditions: atomicList(poolCondition).exactOptional(),
  rollouts: atomicList(poolRollout)
    .meta({ description: 'The last ten rollouts, the present one last.' })
    .exactOptional(),
  certExpirys: atomicList(certificateExpiry).exactOptional(),
  poolSynchronizersStatus: keyedList(poolSynchronizerStatus, ['poolSynchronizerType']).exactOptional(),
  osImageStream: osImageStream.exactOptional(),
});
export type MachineConfigPoolStatus = z.infer<typeof machineConfigPoolStatusSchema>;

/** A group of nodes, the MachineConfigs that apply to it, and how they may be rolled out. Cluster-scoped. */
export const machineConfigPoolSchema = z.strictObject({
  apiVersion: z.string().exactOptional(),
  kind: z.literal('MachineConfigPool').exactOptional(),
  metadata: objectMetadataSchema,
  spec: machineConfigPoolSpecSchema,
  status: machineConfigPoolStatusSchema.exactOptional(),
});
export type MachineConfigPool = z.infer<typeof machineConfigPoolSchema>;
