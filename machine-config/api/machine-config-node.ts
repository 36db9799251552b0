import { z } from 'zod';
import { objectMetadataSchema } from './object-metadata.js';
import { atomicList, keyedList, objectName, timestamp, withRules, withTransitionRule } from './structural.js';

/** Stands where the field has no name yet: a node without a pool, or one that was never granted a config. */
export const NOT_YET_SET = 'not-yet-set';

/** The stages of an update first, each before its parts, as the reference system names them. */
export const NODE_CONDITION_TYPES = [
  'UpdatePrepared',
  'UpdateExecuted',
  'Cordoned',
  'Drained',
  'AppliedFilesAndOS',
  'RebootedNode',
  'UpdatePostActionComplete',
  'Resumed',
  'UpdateComplete',
  'Uncordoned',
  'Updated',
  'NodeDegraded',
] as const;
export type NodeConditionType = (typeof NODE_CONDITION_TYPES)[number];

const reference = z.strictObject({ name: objectName });

export const machineConfigNodeSpecSchema = z.strictObject({
  node: reference.meta({ description: 'The Node that this object tells of; it has the same name.' }),
  pool: reference.meta({ description: `The pool of the node; ${NOT_YET_SET} for one that is in none.` }),
  configVersion: z
    .strictObject({ desired: objectName })
    .meta({ description: `The rendered config that the node was granted; ${NOT_YET_SET} until then.` }),
});
export type MachineConfigNodeSpec = z.infer<typeof machineConfigNodeSpecSchema>;

const condition = z.object({
  type: z.string().max(316),
  status: z.enum(['True', 'False', 'Unknown']),
  observedGeneration: z.int().min(0).exactOptional(),
  lastTransitionTime: timestamp,
  reason: z.string().min(1).max(1024),
  message: z.string().max(32_768),
});
export type MachineConfigNodeCondition = z.infer<typeof condition>;

const generation = z.int().min(1);

const pinnedImageSet = z.object({
  name: objectName,
  currentGeneration: generation.exactOptional(),
  desiredGeneration: generation.exactOptional(),
  lastFailedGeneration: generation.exactOptional(),
  lastFailedGenerationError: z.string().max(32_768).exactOptional(),
});

const irreconcilableChange = z.object({
  fieldPath: z.string().min(1).max(70),
  diff: z.string().min(1).max(4096),
});

/** Not strict: a status is read from clusters whose version we do not choose, and nobody writes one by hand. */
export const machineConfigNodeStatusSchema = z.object({
  conditions: keyedList(condition, ['type'], 20).exactOptional(),
  observedGeneration: withTransitionRule(
    generation,
    'self >= oldSelf',
    'observedGeneration may not go back',
  ).exactOptional(),
  configVersion: z
    .object({
      current: z.string().max(253).exactOptional(),
      desired: objectName,
    })
    .meta({ description: 'The rendered configs that the node runs, and that its update has begun to bring.' })
    .exactOptional(),
  pinnedImageSets: keyedList(pinnedImageSet, ['name'], 100).exactOptional(),
  irreconcilableChanges: atomicList(irreconcilableChange).exactOptional(),
});
export type MachineConfigNodeStatus = z.infer<typeof machineConfigNodeStatusSchema>;

/** How far one node is with its config: what its annotations say, in conditions. Cluster-scoped. */
export const machineConfigNodeSchema = withRules(
  z.strictObject({
    apiVersion: z.string().exactOptional(),
    kind: z.literal('MachineConfigNode').exactOptional(),
    metadata: objectMetadataSchema,
    spec: machineConfigNodeSpecSchema,
    status: machineConfigNodeStatusSchema.exactOptional(),
  }),
  {
    cel: 'self.metadata.name == self.spec.node.name',
    holds: ({ metadata, spec }) => metadata.name === spec.node.name,
    message: 'spec.node.name must be the name of the object',
  },
);
export type MachineConfigNode = z.infer<typeof machineConfigNodeSchema>;
